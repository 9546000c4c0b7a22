"""From a table of questions to the items to run, as a user would."""

import csv
import json

import numpy as np

from fewbench.scores import load_scores

TOPICS = ["apples and pears", "trains, buses", "3 + 4 =", 'the moon\nand "stars"']


def write(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def results(tmp_path):
    rng = np.random.default_rng(0)
    items = [f"q{n:02}" for n in range(40)]
    rows = [[f"m{m}", item, int(rng.random() < 0.6)] for m in range(12) for item in items]
    write("results.csv", [["llm", "id", "ok"], *rows])
    return items


READ = ("--model", "llm", "--item", "id", "--score", "ok")


def test_questions_in_a_table_of_their_own(ok, cli, tmp_path):
    items = results(tmp_path)
    rows = [[item, f"What of {TOPICS[n % 4]}?"] for n, item in enumerate(items)]
    write("items.csv", [["item", "text"], *reversed(rows)])
    ok("import", "results.csv", *READ, "--items", "items.csv", "-o", "scores.parquet")
    scores = load_scores("scores.parquet")
    assert scores.items["text"].tolist() == [text for _, text in rows]
    chosen = ok("select", "scores.parquet", "--method", "clustering-semantic", "--budget", 4)
    assert sorted(items.index(item) % 4 for item in chosen.split()) == [0, 1, 2, 3]
    listed = json.loads(ok("audit", "scores.parquet", "--json"))["methods"]
    assert "fits" in {m["verdict"] for m in listed if m["method"] == "clustering-semantic"}


def test_questions_in_a_column_of_the_long_table(ok, tmp_path):
    items = results(tmp_path)
    with open("results.csv", newline="", encoding="utf-8") as file:
        (*_, head), *rows = [[*row] for row in csv.reader(file)]
    assert head == "ok"
    rows = [[*row, TOPICS[items.index(row[1]) % 4]] for row in rows]
    write("wide.csv", [["llm", "id", "ok", "text"], *rows])
    ok("import", "wide.csv", *READ, "--keep-item", "text", "-o", "scores.parquet")
    chosen = ok("select", "scores.parquet", "--method", "clustering-semantic", "--budget", 4)
    assert sorted(items.index(item) % 4 for item in chosen.split()) == [0, 1, 2, 3]


def test_embeddings_in_a_file_and_none_at_all(ok, cli, tmp_path):
    items = results(tmp_path)
    ok("import", "results.csv", *READ, "-o", "scores.parquet")
    np.savez("e.npz", items=items[::-1], embeddings=np.eye(4)[np.arange(40)[::-1] % 4])
    method = "semantic(embeddings=e.npz)+mean"
    chosen = ok("select", "scores.parquet", "--method", method, "--budget", 4)
    assert sorted(items.index(item) % 4 for item in chosen.split()) == [0, 1, 2, 3]
    said = cli("select", "scores.parquet", "--method", "clustering-semantic", "--budget", 4)
    assert said.code != 0
    assert "40 of 40 items have no text" in said.err
    assert "--items FILE" in said.err
    listed = json.loads(ok("audit", "scores.parquet", "--json"))["methods"]
    fit = next(m for m in listed if m["method"] == "clustering-semantic")
    assert fit["verdict"] == "cannot"
    assert fit["because"] == [
        "items without a text: nothing to cluster; import a column text, or give embeddings"
    ]
