"""fewbench versus and gate."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ONE = ["--item", "id", "--score", "points"]


@pytest.fixture
def run(ok, scores, answers, asked):
    """An evaluation of two targets; the first is right on everything."""
    ok("start", scores, "-m", "random", "-n", "12", "-t", "new", "-t", "step:2", "-o", "run")
    items = asked()["new"]
    ok("tell", "run", answers(dict.fromkeys(items, 1)), *ONE, "-t", "new")
    half = {item: at % 2 for at, item in enumerate(items)}
    ok("tell", "run", answers(half), *ONE, "-t", "step:2")
    return "run"


def test_two_targets_a_source_model_and_files(run, ok, cli, scores, tmp_path):
    text = ok("versus", "run:new", "run:step:2", "--margin", "0.5", "--details")
    assert text.startswith("new is better than step:2.\n")
    assert "Items that differ: 6 of 12: new scores higher on 6, step:2 on 0" in text
    assert "(Holm)" in text
    assert ok("versus", "run:new", "step:2").splitlines()[0] == text.splitlines()[0]
    found = json.loads(ok("versus", "run:new", "model-01", "--json", "--sequential"))
    assert (found["b"], found["checked_at"]) == ("model-01", [10, 12])
    assert "known" in ok("versus", "model-01", "model-02", "--scores", scores)
    ok("versus", "run:new", "model-01", "-o", "found.csv")
    assert (tmp_path / "found.csv").read_text().startswith("task,difference,low,high,verdict")
    assert "already exists" in cli("versus", "run:new", "model-01", "-o", "found.csv").err
    ok("versus", "run:new", "model-01", "-o", "found.csv", "--force")


def test_a_gate_exits_by_its_verdict(run, cli, tmp_path):
    said = cli("gate", "run:new", "--at-least", "0.2", "-o", "gate.md")
    assert (said.code, said.out.splitlines()[0]) == (0, "new passes.")
    assert "### fewbench gate: new passes" in (tmp_path / "gate.md").read_text()
    assert cli("gate", "run:step:2", "--at-least", "0.99").code == 1
    said = cli("gate", "run:step:2", "--at-least", "0.5", "--json")
    assert (said.code, json.loads(said.out)["verdict"]) == (3, "undecided")
    said = cli("gate", "run:step:2", "--not-below", "run:new", "--margin", "0.1")
    assert (said.code, said.out.splitlines()[0]) == (1, "step:2 fails.")


def test_mistakes(run, cli, scores):
    for words, said in (
        (("gate", "run", "--at-least", "0.5"), "2 targets"),
        (("gate", "nowhere", "--at-least", "0.5"), "nowhere"),
        (("gate", "run:new"), "no condition to check"),
        (("gate", "run:new", "--at-least", "0.5", "-o", "x.txt"), ".json or .csv"),
        (("gate", "run:new", "--not-below", "run:new"), "its own baseline"),
        (("versus", "run:new", "model-1"), "did you mean"),
        (("versus", "a", "b"), "or in scores"),
        (("versus", "run:new", "model-01", "-o", "x.txt"), ".json or .csv"),
        (("versus", "run:new", "model-01", "--adjust", "x"), "'holm', 'bh'"),
    ):
        found = cli(*words)
        assert (found.code, said in found.err) == (2, True), found.err
        assert "Traceback" not in found.err


def test_a_ranking(run, ok, cli, tmp_path):
    text = ok("rank", "run", "--models", "model-01", "-o", "ranks.csv")
    assert text.startswith("new ranks first")
    assert (tmp_path / "ranks.csv").read_text().startswith("target,score,rank,rank_low")
    found = json.loads(ok("rank", "run", "--top", "1", "--json"))
    assert [one["target"] for one in found["targets"]] == ["new", "step:2"]
    assert "top = 2 is not possible with 2" in cli("rank", "run", "--top", "2").err


def test_items_for_a_difference_and_the_next_ones(ok, cli, scores, answers, asked):
    ok("start", scores, "--for", "difference", "-n", "12", "-t", "a", "-t", "b", "-o", "run")
    for at in range(3):  # rounds of 5, 10 and 12
        items = asked()
        assert items["a"] == items["b"]
        for name in ("a", "b"):
            right = {item: (i + at + (name == "a")) % 2 for i, item in enumerate(items[name])}
            ok("tell", "run", answers(right), *ONE, "-t", name)
    assert not asked()
    text = ok("versus", "run:a", "run:b", "--next-items", "3", "--ask")
    said = next(line for line in text.splitlines() if line.startswith("Next items for both: "))
    more = said.removeprefix("Next items for both: ").split(", ")
    assert ok("ask", "run").split() == more
    for name in ("a", "b"):
        ok("tell", "run", answers(dict.fromkeys(more, 1)), *ONE, "-t", name)
    assert json.loads(ok("versus", "run:a", "run:b", "--json"))["items_common"] == 15
    text = ok("rank", "run", "--next-items", "4", "--ask")
    assert sum(len(items) for items in asked().values()) == 4, text
    for words, said in (
        (("start", scores, "--for", "fun", "-n", "5", "-o", "x"), "score or difference"),
        (("start", scores, "--for", "difference", "-m", "random", "-n", "5", "-o", "x"), "own"),
        (("versus", "a", "b", "--", "python"), "needs a folder"),
        (("versus", "a", "b", "--run", "x", "--ask", "--", "python"), "leave them out"),
        (("rank", "run", "--ask"), "--next-items"),
    ):
        assert said in cli(*words).err


PROGRAM = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    right = asked["target"] == "new" or int(asked["item"].split("-")[1]) % 4 == 0
    print(json.dumps({"item": asked["item"], "score": int(right)}), flush=True)
"""


def test_two_models_run_until_one_is_better(ok, scores, tmp_path):
    (tmp_path / "answer.py").write_text(PROGRAM)
    words = ("versus", "new", "old", "--run", "live", "--scores", scores, "-n", "40", "--json")
    found = json.loads(ok(*words, "--", sys.executable, "answer.py"))
    assert (found["verdict"], found["items_a"]) == ("better", found["items_b"])
    assert found["items_a"] < 40
    assert "new is better" in ok("versus", "live:new", "live:old", "--sequential")


def test_the_example_workflow(scores, tmp_path):
    """The steps of the documentation's workflow, with another number of items and model."""
    yaml = pytest.importorskip("yaml")
    page = (Path(__file__).parents[2] / "docs" / "decide.md").read_text(encoding="utf-8")
    workflow = yaml.safe_load(page.split("```yaml\n")[1].split("```")[0])
    assert workflow[True] == ["pull_request"]  # YAML 1.1 reads `on` as true
    steps = workflow["jobs"]["gate"]["steps"]
    script = steps[-1]["run"].replace("-n 320", "-n 20").replace("released-model", "model-12")
    (tmp_path / "scores.parquet").write_bytes(scores.read_bytes())
    (tmp_path / "answer.py").write_text(
        "import sys\nprint('item,score')\n"
        "for line in open(sys.argv[1]):\n    print(line.strip() + ',1')\n"
    )
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, words in (("fewbench", "-m fewbench"), ("python", "")):
        (bin_ / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (bin_ / name).chmod(0o755)
    summary = tmp_path / "summary.md"
    own = {"PATH": f"{bin_}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(summary)}
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]  # as GitHub runs it
    done = subprocess.run(bash, env=os.environ | own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "### fewbench gate: target passes" in summary.read_text()
