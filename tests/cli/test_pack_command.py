"""fewbench pack, and packs in place of scores."""

import csv
import json
import sys

import pytest

from fewbench.packs import open_pack
from fewbench.scores import save_scores
from fewbench.testing import simulate

ANSWER = (
    "import json, sys\n"
    "for line in sys.stdin:\n"
    "    item = json.loads(line)['item']\n"
    "    print(json.dumps({'item': item, 'score': int(item[-1]) % 2}), flush=True)\n"
)


@pytest.fixture
def scores(tmp_path):
    return save_scores(simulate(16, 60, 2, seed=1), tmp_path / "table.parquet")


def test_pack_start_tell_estimate_refresh(cli, ok, scores, tmp_path):
    said = ok("pack", scores, "-m", "random-ridge", "-n", 9, "-o", "a.few", "--license", "MIT")
    assert said.startswith("9 of 60 items in place of all.\n")
    assert "\nMethod: random-ridge\n" in said
    assert "Stronger than all source models" in said
    assert "Next: fewbench start a.few -o run" in said
    shown = json.loads(ok("pack", "show", "a.few", "--json"))
    assert (shown["license"], shown["benchmarks"][0]["items"]) == ("MIT", 9)
    assert shown["bytes"] < 60_000
    for source, run, more in (
        ("a.few", "by-pack", []),
        (scores, "by-table", ["-n", 9, "-m", "random-ridge"]),
    ):
        ok("start", source, "-o", run, *more)
        items = ok("ask", run).split()
        with (tmp_path / "answers.csv").open("w", newline="") as file:
            rows = [("item", "score"), *((item, int(item[-1]) % 2) for item in items)]
            csv.writer(file).writerows(rows)
        ok("tell", run, "answers.csv", "--item", "item", "--score", "score")
    estimates = [json.loads(ok("estimate", run, "--json")) for run in ("by-pack", "by-table")]
    assert estimates[0] == estimates[1]
    (tmp_path / "answer.py").write_text(ANSWER)
    program = ("--", sys.executable, "answer.py")
    ran = json.loads(ok("run", "command", "a.few", "-o", "ran", "--json", *program))
    assert ran["targets"]["answer"]["estimate"]["score"] == estimates[0]["target"]["score"]
    ok("pack", "make", scores, "-m", "fewbench", "-n", 9, "-o", "b.few", "--no-backtest")
    moved = json.loads(ok("pack", "refresh", "by-pack", "b.few", "--json"))["target"]
    assert moved["before"] == estimates[0]["target"]["score"]
    assert "Estimated from 9 of 60 items" in ok("pack", "refresh", "by-pack", "b.few")


def test_mistakes(cli, ok, scores):
    made = ("pack", scores, "-m", "random", "-n", 5, "--no-backtest", "--by", "task", "-o", "a.few")
    said = ok(*made)
    assert "task-1" in said
    assert "Next: fewbench start a.few:task-0 -o run" in said
    ok("start", "a.few:task-1", "-o", "run")
    assert len(ok("ask", "run").split()) == 5
    assert open_pack("a.few:task-1").scores().n_items == 41
    for words, said in (
        (made, "a.few already exists"),
        (("pack", scores, "-o", "a.zip"), "a pack's name ends in .few"),
        (("pack", scores, "--by", "subject", "-o", "b.few"), "no column 'subject'"),
        (("start", "a.few", "-o", "other"), "name one: a.few:task-0"),
        (("start", "a.few:task-0", "-n", 4, "-o", "other"), "made for 5 items, not 4"),
        (("start", "none.few", "-o", "other"), "none.few: no such file"),
        (("compare", "a.few:task-0", "--methods", "random", "--budgets", 5), "5 chosen items only"),
        (("pack", "show", scores), "not a pack"),
        (("pack", "refresh", "run", "a.few:task-0"), "no answers are recorded"),
    ):
        found = cli(*words)
        assert found.code != 0
        assert said in found.err, words
        assert "Traceback" not in found.err
