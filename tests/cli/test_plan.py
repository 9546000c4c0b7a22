"""fewbench plan: the answer first, then how sure it is; JSON, a page, and named mistakes."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from fewbench.scores import save_scores
from fewbench.show.html import body_of
from fewbench.testing import simulate


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A table on which a few items tell the ability of a model, with costs."""
    rng = np.random.default_rng(0)
    ability, difficulty = rng.normal(size=60), rng.normal(size=120)
    right = ability[:, None] + 0.3 * rng.normal(size=(60, 120)) > difficulty
    table = simulate(60, 120, seed=0)
    items = table.items.assign(tokens=[10.0] * 60 + [90.0] * 60)
    table = replace(table, values=right.astype(float), items=items)
    return save_scores(table, tmp_path_factory.mktemp("graded") / "graded.parquet")


QUICK = ("--methods", "greedy-ridge", "--expect", "like", "--repeats", 3, "--workers", 1)


def halves(out):
    """The lines of the first answer and of the last."""
    early, late = out.split("\n\n", 1)
    return early.splitlines(), late.splitlines()


def test_the_first_line_is_the_answer(ok, graded):
    words = ("plan", graded, "--error", 0.05, *QUICK)
    early, lines = halves(ok(*words))
    assert early[0].startswith("First answer, from a few held-out models: Run ")
    assert lines[0].startswith("Run ")
    assert " items with greedy-ridge: expected error " in lines[0]
    assert "(half width " in lines[0]
    assert lines[1].startswith("How sure: the error is between ")
    assert any(line.startswith("Random sampling needs ") for line in lines)
    items = lines[0].split()[1]
    assert lines[-1] == (
        f"Next: fewbench start {graded} --method greedy-ridge --budget {items} -o DIR"
    )
    assert any(line.startswith("Like the source models") for line in lines)
    assert len(lines) <= 10
    lines = halves(ok(*words, "--details"))[1]  # from the cache
    assert any(line.startswith("A new model, all ") for line in lines)
    assert any(line.startswith("Source models  ") for line in lines)


def test_costs_are_in_the_unit_of_their_column(ok, graded):
    words = ("plan", graded, "--budget", 20, "--details", *QUICK)
    out = ok(*words, "--costs", "tokens")
    assert re.search(r"\nCost +Tokens  Cost of a full run\n", out)
    assert re.search(r"\nA new model, all 120 items +6,000 +100\.0%\n", out)
    assert re.search(r"\nA new model, 20 items with greedy-ridge +[\d,]+ +\d+\.\d%\n", out)
    assert re.search(r"\nThe 60 source models, if you run them +360,000 +–\n", out)
    assert "Running the source models pays after" in " ".join(out.split())
    priced = ok(*words, "--price", 0.5)
    assert re.search(r"\nA new model, all 120 items +60 +100\.0%\n", priced)
    assert re.search(r"\nA new model, 20 items with greedy-ridge +10 +16\.7%\n", priced)
    assert "The price is 0.5 for a unit of the costs (items)." in priced


def test_json_and_files(cli, ok, graded, tmp_path):
    words = ("plan", graded, "--budget", 20, *QUICK)
    made = json.loads(ok(*words, "--json", "--report", "plan.json"))
    assert made == json.loads((tmp_path / "plan.json").read_text())
    assert made["forecasts"][0]["items"] == 20
    said = cli(*words, "--report", "plan.html")  # from the cache
    assert "wrote plan.html" in said.err
    page = body_of((tmp_path / "plan.html").read_text())
    assert made["answer"] in page
    assert "Error and items" in page
    assert "Number of source models" in page
    assert "NaN" not in page
    assert cli(*words, "--report", "plan.html").code == 2  # exists already


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "nothing to plan for (hint: give one: --error,"),
        ("--error 0.1 --budget 5", "2 goals are given: 'error', 'budget'"),
        ("--error 3", "between 0 and 1"),
        ("--error 0.1 --expect famly", "'like', 'family'"),
        ("--error 0.1 --methods gredy-ridge", "did you mean greedy-ridge"),
        ("--error 0.1 --costs token", "did you mean tokens"),
        ("--error 0.1 --report plan.pdf", "ends in .html, .md, .json or .csv"),
        ("--error 0.1 --repeats 1", "3 or more"),
        ("--budget 120", "needs no plan"),
        ("--cost 75", "the items have no column 'cost'"),
        ("--cost cheap", "'cheap' is not an amount"),
        ("--cost 7$ --costs tokens --error 0.1", "2 goals are given: 'error', 'cost'"),
        ("--budget 75$", "take a sum of money as --cost"),
    ],
)
def test_mistakes(cli, graded, words, said):
    shown = cli("plan", graded, *words.split())
    assert shown.code == 2
    assert said in shown.err
    assert shown.err.startswith("fewbench: error: ")
    assert shown.err.count("\n") == 1


def test_the_command_plans_from_a_sparse_table(ok, tmp_path):
    table = simulate(12, 400, seed=1)
    run = np.random.default_rng(0).random(table.values.shape) < 0.3
    cells = np.where(run, table.values, np.nan)
    path = save_scores(replace(table, values=cells), tmp_path / "s.parquet")
    out = ok("plan", path, "--half-width", 0.05)
    assert out.startswith("Run ")
    assert f"Next: fewbench start {path} --budget " in out
    assert json.loads(ok("plan", path, "--budget", 60, "--json"))["expected"]["items"] == 60


def test_the_command_plans_from_a_file_of_items(ok, tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("id,task,tokens\n" + "".join(f"q{n},t{n % 3},{n + 1}\n" for n in range(300)))
    out = " ".join(ok("plan", path, "--half-width", 0.05, "--costs", "tokens").split())
    assert "items of 300: half width 5.0 pp" in out
    assert "No model ran the items" in out
    assert "Cost of a run: " in out
    assert "Cost of a run: 100 at the price" in ok("plan", path, "--budget", 50, "--price", 2)
    page = tmp_path / "plan.html"
    ok("plan", path, "--budget", 50, "--report", page)
    assert "Run 50 items of 300" in body_of(page.read_text())


def test_a_table_that_supports_only_random_sampling(ok, tmp_path):
    rng = np.random.default_rng(0)
    table = simulate(40, 200, seed=0)
    answers = rng.random((40, 200)) < rng.uniform(0.1, 0.9, 40)[:, None]
    path = save_scores(replace(table, values=answers.astype(float)), tmp_path / "s.parquet")
    lines = halves(ok("plan", path, "--error", 0.04, "--details", *QUICK))[1]
    assert " items with random: " in lines[0]
    assert lines[1].startswith("Use random sampling: no method is significantly better")
    assert "support nothing better than random sampling" in " ".join(lines)


def test_two_models_without_source_models(ok):
    """80% of pairs at 90%: 6.18 times the variance of a pair's difference, over its square."""
    made = json.loads(ok("plan", 500, "--difference", 0.1, "--json"))
    assert [(row["share"], row["items"]) for row in made["apart"]] == [
        (0.2, 118),
        (0.3, 180),
        (0.5, 303),
    ]
    assert "Run 118 items of 500, the same with both models" in ok("plan", 500, "--difference", 0.1)
    assert "All 60 items are too few" in ok("plan", 60, "--difference", 0.1)
    assert "half width 5.0 pp" in ok("plan", 500, "--half-width", 0.05)
