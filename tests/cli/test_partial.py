"""Answers that are incomplete, wrong at first, or not to be had; folders that are damaged."""

import json
import shutil
from dataclasses import replace

import numpy as np

from fewbench.scores import save_scores
from fewbench.testing import simulate

ONE = ["--item", "id", "--score", "points"]
LONG = ["--model", "llm", *ONE]


def estimate(ok, *words):
    return json.loads(ok("estimate", "run", "--json", *words))


def test_a_missing_answer_is_said_and_can_be_skipped(ok, cli, scores, answers, asked):
    ok("start", scores, "-m", "greedy-ridge", "-n", "10", "-o", "run")
    items = asked()["target"]
    ok("tell", "run", answers(dict.fromkeys(items[:9], 1)), *ONE)
    found = estimate(ok)["target"]
    assert found["items_run"] == 9
    assert any("9 of 10 items answered" in warning for warning in found["warnings"])
    assert "skipped 1 item. Next: fewbench estimate" in ok("tell", "run", "--skip", items[9])
    assert cli("ask", "run").out == ""
    warnings = estimate(ok)["target"]["warnings"]
    assert any("1 item skipped" in warning for warning in warnings)
    assert not any("9 of 10" in warning for warning in warnings)
    assert cli("tell", "run", "--skip", items[0]).kind == "unknown"
    said = cli("tell", "run", answers({items[9]: 1}), *ONE)
    assert f"note: '{items[9]}' skipped earlier; the estimate uses them now" in said.err
    assert estimate(ok)["target"]["items_run"] == 10


def test_a_wrong_answer_is_corrected_and_the_old_one_kept(
    ok, cli, scores, answers, asked, tmp_path
):
    ok("start", scores, "-m", "random", "-n", "10", "-o", "run")
    items = asked()["target"]
    ok("tell", "run", answers(dict.fromkeys(items, 1)), *ONE)
    other = answers({items[0]: 0})
    assert cli("tell", "run", other, *ONE).kind == "taken"
    assert "corrected 1 answer" in ok("tell", "run", other, *ONE, "--correct")
    assert estimate(ok)["target"]["score"] < 1
    written = (tmp_path / "run" / "answers.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in written.splitlines()]
    assert [line["scores"] for line in lines if "scores" in line] == [[1.0] * 10, [0.0]]


def test_finished_targets_are_printed_and_the_others_listed(ok, cli, scores, answers, asked):
    ok("start", scores, "-m", "random", "-n", "6", "-t", "a", "-t", "b", "-t", "c", "-o", "run")
    items = asked()["a"]
    told = [["a", item, 1] for item in items] + [["b", item, 0] for item in items[:2]]
    ok("tell", "run", answers(told), *LONG)
    said = cli("estimate", "run")
    assert said.code == 0
    assert said.out.startswith("a scores ")
    assert "b scores" not in said.out
    assert "2 of 6 items" in said.err
    assert "0 of 6 items" in said.err
    assert "2 of 6 items answered" in estimate(ok, "-t", "b")["b"]["warnings"][0]
    assert cli("tell", "run", "--skip", items[0]).kind == "missing"


def test_a_table_with_a_row_per_item(ok, scores, asked, tmp_path):
    ok("start", scores, "-m", "random", "-n", "3", "-t", "a", "-t", "b", "-o", "run")
    items = asked()["a"]
    rows = "\n".join(f"{item},1,0" for item in items)
    (tmp_path / "wide.csv").write_text(f"question,a,b\n{rows}\n", encoding="utf-8")
    assert "recorded 6 answers" in ok(
        "tell", "run", "wide.csv", "--transposed", "--item", "question"
    )
    assert [one["score"] for one in estimate(ok).values()] == [1.0, 0.0]


def test_a_damaged_folder_is_repaired(ok, cli, scores, answers, asked, tmp_path):
    ok("start", scores, "-m", "random", "-n", "4", "-o", "run")
    items = asked()["target"]
    ok("tell", "run", answers(dict.fromkeys(items[:2], 1)), *ONE)
    ok("tell", "run", answers(dict.fromkeys(items[2:], 1)), *ONE)
    journal = tmp_path / "run" / "answers.jsonl"
    whole = journal.read_bytes()
    lines = whole.splitlines(keepends=True)
    journal.write_bytes(lines[0] + b"{broken\n" + lines[2])
    damaged = cli("ask", "run")
    assert "line 2" in damaged.err
    assert "fewbench repair run" in damaged.err
    assert "dropped 1 damaged line" in ok("repair", "run")
    assert asked()["target"] == items[:2]
    assert b"{broken" in (tmp_path / "run" / "answers.jsonl.damaged").read_bytes()
    assert "nothing is damaged" in ok("repair", "run")
    (tmp_path / "run" / "evaluation.json").write_text("xx", encoding="utf-8")
    lost = cli("repair", "run")
    assert (lost.code, lost.out) == (2, "")
    assert "evaluation.json is lost or damaged" in lost.err
    assert "still contains 2 answers of 'target'" in lost.err
    ok("start", scores, "-m", "random", "-n", "4", "-o", "new")  # what the hint says to do
    shutil.copy(journal, tmp_path / "new")
    assert "nothing is damaged" in ok("repair", "new")
    assert cli("ask", "new").out.split() == items[:2]


def test_a_table_with_holes_goes_through_every_command(ok, cli, answers, asked):
    table = simulate(20, 80, seed=3)
    values = table.values.copy()
    values[np.random.default_rng(0).random(values.shape) < 0.02] = np.nan
    save_scores(replace(table, values=values), "holes.parquet")
    missing = int(np.isnan(values).sum())
    lost = int(np.isnan(values).any(axis=0).sum())
    said = ok("audit", "holes.parquet", "--details")
    assert f"--drop incomplete would leave out {lost} of 80 items" in " ".join(said.split())
    few = ("-m", "greedy-ridge", "--repeats", 3)
    pack = ("pack", "holes.parquet", *few, "-n", 20, "-o", "a.few", "--no-backtest", "--json")
    for words in (("compare", "holes.parquet", *few, "-n", 20, "--json"), pack):
        assert f"{missing} cells are missing (" in ok(*words), words[0]
    ok("start", "a.few", "-t", "a", "-t", "b", "-o", "run")
    rows = [[name, item, at % 3 > n] for n, (name, own) in enumerate(asked().items())
            for at, item in enumerate(own)]  # fmt: skip
    ok("tell", "run", answers([[name, item, int(right)] for name, item, right in rows]), *LONG)
    assert len(json.loads(ok("rank", "run", "--json"))["targets"]) == 2
    ok("start", "holes.parquet", *few[:2], "-n", 20, "-t", "a", "-t", "b", "-o", "own")
    ok("tell", "own", answers([[name, item, int(right)] for name, item, right in rows]), *LONG)
    ranked = json.loads(ok("rank", "own", "--models", "model-03", "--json"))
    assert len(ranked["targets"]) == 3
    assert any("model-03" in one and "were filled in" in one for one in ranked["warnings"])
    said = ok("audit", "holes.parquet", "--drop", "incomplete", "-o", "whole.parquet")
    assert f"incomplete: {lost} of 80 items left out" in said
