"""fewbench versus and gate."""

import json

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
    text = ok("versus", "run:new", "run:step:2", "--margin", "0.5", "--items")
    assert "new is better than step:2 (at 90%)" in text
    assert "McNemar's exact test: new alone right on 6, step:2 alone on 0" in text
    assert "p values adjusted by Holm" in text
    assert ok("versus", "run:new", "step:2").splitlines()[0] == text.splitlines()[0]
    found = json.loads(ok("versus", "run:new", "model-01", "--json", "--sequential"))
    assert (found["b"], found["looks"]) == ("model-01", [10, 12])
    assert "known" in ok("versus", "model-01", "model-02", "--scores", scores)
    ok("versus", "run:new", "model-01", "-o", "found.csv")
    assert (tmp_path / "found.csv").read_text().startswith("task,difference,low,high,verdict")
    assert "already exists" in cli("versus", "run:new", "model-01", "-o", "found.csv").err
    ok("versus", "run:new", "model-01", "-o", "found.csv", "--force")


def test_a_gate_exits_by_its_verdict(run, cli, tmp_path):
    said = cli("gate", "run:new", "--at-least", "0.2", "-o", "gate.md")
    assert (said.code, said.out.split(":")[0]) == (0, "pass")
    assert "### fewbench gate: pass" in (tmp_path / "gate.md").read_text()
    assert cli("gate", "run", "-t", "step:2", "--at-least", "0.99").code == 1
    said = cli("gate", "run:step:2", "--at-least", "0.5", "--json")
    assert (said.code, json.loads(said.out)["verdict"]) == (3, "undecided")
    said = cli("gate", "run:step:2", "--not-below", "run:new", "--margin", "0.1")
    assert (said.code, said.out.split(":")[0]) == (1, "fail")


def test_mistakes(run, cli, scores):
    for words, said in (
        (("gate", "run", "--at-least", "0.5"), "2 targets"),
        (("gate", "nowhere", "--at-least", "0.5"), "nowhere"),
        (("gate", "run:new"), "nothing to check"),
        (("gate", "run:new", "--at-least", "0.5", "-o", "x.txt"), ".json or .md"),
        (("gate", "run:new", "--not-below", "run:new"), "its own baseline"),
        (("versus", "run:new", "model-1"), "did you mean"),
        (("versus", "a", "b"), "no scores"),
        (("versus", "run:new", "model-01", "-o", "x.txt"), ".json or .csv"),
        (("versus", "run:new", "model-01", "--adjust", "x"), "holm or bh"),
    ):
        found = cli(*words)
        assert (found.code, said in found.err) == (2, True), found.err
        assert "Traceback" not in found.err


def test_a_ranking(run, ok, cli, tmp_path):
    text = ok("rank", "run", "--model", "model-01", "-o", "ranks.csv")
    assert text.startswith("best 1: 'new'")
    assert (tmp_path / "ranks.csv").read_text().startswith("target,score,rank,rank_low")
    found = json.loads(ok("rank", "run", "--top", "1", "--json"))
    assert [one["target"] for one in found["targets"]] == ["new", "step:2"]
    assert "the best 2 of 2" in cli("rank", "run", "--top", "2").err
