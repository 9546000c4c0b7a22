"""fewbench track."""

import csv
import json

import pytest

from fewbench.scores import save_scores
from fewbench.testing import simulate_run

TABLE = simulate_run(5, 60, n_models=14, rise=0.4, seed=1)
ONE = ["--item", "id", "--score", "points"]


@pytest.fixture
def sources(tmp_path):
    return save_scores(TABLE.take(models=range(14)), tmp_path / "scores.parquet")


@pytest.fixture
def told(tmp_path):
    """Write a checkpoint's answers to all items, or to some."""

    def write(row, items=None):
        path = tmp_path / f"answers-{row}.csv"
        values = TABLE.to_frame().iloc[14 + row]
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["id", "points"])
            rows.writerows([item, values.get(item, 1)] for item in items or TABLE.item_ids)
        return path

    return write


def test_a_run_is_followed_in_a_folder(ok, cli, sources, told, tmp_path):
    ok("start", sources, "-n", "20", "-m", "random", "-t", "step-100", "-o", "follow/step-100")
    items = ok("track", "follow", "--add", "step-100").split()
    assert len(items) == 20
    said = ok("track", "follow", "--add", "step-100", told(0, items[:15]), *ONE)
    assert "recorded 15 answers of step-100. Next: fewbench ask" in said
    assert "recorded 5 answers" in ok("track", "follow", "--add", "step-100", told(0, items), *ONE)
    assert "recorded 60 answers" in ok("track", "follow", "--add", "step-200", told(1), *ONE)
    ok("track", "follow", "--add", "last", told(4, items), *ONE)
    step = ("--steps", "last=500")
    assert "--run: no effect with a folder" in cli("track", "follow", "--run", "x").err
    macro = ok("track", "follow", "--average", "macro", *step)
    assert "mean over task scores (macro)" in macro
    text = ok("track", "follow", *step, "--change", "0.3", "--report", "curve.csv")
    assert text.startswith("On these 60 items, last scores an estimated ")
    assert "if run again: it is the best with probability " in " ".join(text.split())
    assert "Items that the next checkpoint needs: about " in text
    with open(tmp_path / "curve.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["checkpoint"] for row in rows] == ["step-100", "step-200", "last"]
    assert [row["is_known"] for row in rows] == ["False", "True", "False"]
    found = json.loads(ok("track", "follow", "--json", *step))
    assert [one["step"] for one in found["points"]] == [100, 200, 500]
    assert found["changes"][-1]["verdict"] in {"better", "undecided"}
    for words, said in (
        (("follow", "--report", "curve.csv"), "already exists"),
        (("follow", told(1)), "the checkpoint of the answers is not named"),
        (("follow", "--add", "step-100", told(0, ["q"]), *ONE), "hint"),
        (("follow", "--steps", "7"), "NAME=NUMBER"),
        (("follow", "--steps", "last=soon"), "is not a number"),
        (("follow", "--add", "x", "--steps", "x=7"), "--steps: no effect with --add"),
        (
            ("follow", "--add", "x", "--level", "0.8", "--report", "x.md"),
            "--level, --report: no effect",
        ),
        (("follow", "--item", "id", "--right", "PASS"), "--item, --right: no effect without --add"),
        ((sources,), "add --run NAME"),
        (("follow", "--add", "//"), "'//' cannot name a folder"),
        (("nowhere",), "nowhere"),
    ):
        wrong = cli("track", *words)
        assert (wrong.code, said in wrong.err) == (2, True), (words, wrong.err)
        assert "Traceback" not in wrong.err


def test_the_first_checkpoint_in_full_and_tests_against_it(ok, cli, sources, told):
    ok("start", sources, "-n", "20", "-m", "random", "-t", "step-100", "-o", "follow/step-100")
    whole = cli("track", "follow", "--add", "step-100", told(0), *ONE)
    assert "recorded 60 answers of step-100" in whole.out
    assert "note: the file has 100% of the items: step-100 ran in full" in whole.err
    items = ok("track", "follow", "--add", "step-200").split()
    assert len(items) == 20
    ok("track", "follow", "--add", "step-200", told(1, items), *ONE)
    text = ok("versus", "follow/step-200", "follow/step-100")
    assert "Items: step-200 20, step-100 60, both 20, of 60" in text
    assert ok("versus", "follow/step-200", "step-100") == text  # by its name beside
    ok("versus", "follow/step-200", "step-100", "--next-items", "3", "--ask")
    assert len(ok("ask", "follow/step-200").split()) == 3
    ranks = ok("rank", "follow/step-200", "follow/step-100")
    assert ok("rank", "follow/step-200", "--models", "step-100") == ranks
    assert cli("rank", "follow/step-200", "--models", "step-200").kind == "repeated"
    assert "name evaluations in it: follow/step-" in cli("rank", "follow").err
    gate = cli("gate", "follow/step-200", "--not-below", "step-100", "--margin", "0.5")
    assert "not worse than step-100" in gate.out


def test_a_checkpoint_of_a_run_s_folder_in_full(ok, cli, sources, told):
    ok("start", sources, "-n", "20", "-t", "step-100", "-o", "run")
    items = ok("ask", "run", "--at-most", "20").split()
    while items:
        ok("tell", "run", told(0, items), *ONE, "-t", "step-100")
        items = ok("ask", "run").split()
    whole = cli("track", "run", "--add", "step-200", told(1), *ONE)
    assert "recorded 60 answers of step-200. Next: fewbench track run" in whole.out
    assert "step-200 ran in full, as a source model" in whole.err
    points = json.loads(ok("track", "run", "--json"))["points"]
    assert [point["is_known"] for point in points] == [False, True]


def test_checkpoints_in_the_scores_file(ok, tmp_path):
    path = save_scores(TABLE, tmp_path / "all.parquet")
    text = ok("track", path, "--run", "run")
    assert " of 5 tested changes are real (at 90%, all together)." in text
    assert "all items ran" in text
