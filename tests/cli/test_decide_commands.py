"""fewbench versus and gate."""

import functools
import inspect
import json
import sys
from pathlib import Path

import pytest

import fewbench
from fewbench.errors import EvaluationError

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
    assert "new is better than step:2." in " ".join(text.split())
    assert "Items that differ: 6 of 12: new scores higher on 6, step:2 on 0" in text
    assert "(Holm)" in text
    assert ok("versus", "run:new", "step:2").splitlines()[0] == text.splitlines()[0]
    assert ok("versus", "run", "new", "model-01") == ok("versus", "run:new", "model-01")
    found = json.loads(ok("versus", "run:new", "model-01", "--json", "--sequential"))
    assert (found["b"], found["checked_at"]) == ("model-01", [10, 12])
    assert "all items ran" in ok("versus", "model-01", "model-02", "--scores", scores)
    ok("versus", "run:new", "model-01", "--report", "found.csv")
    assert (tmp_path / "found.csv").read_text().startswith("task,difference,low,high,verdict")
    assert "already exists" in cli("versus", "run:new", "model-01", "--report", "found.csv").err
    ok("versus", "run:new", "model-01", "--report", "found.csv", "--force")


def test_a_gate_exits_by_its_verdict(run, cli, tmp_path):
    said = cli("gate", "run:new", "--at-least", "0.2", "--report", "gate.md")
    assert (said.code, said.out.startswith("new passes in general,")) == (0, True)
    assert "### fewbench gate: new passes" in (tmp_path / "gate.md").read_text()
    assert cli("gate", "run:step:2", "--at-least", "0.99").code == 1
    said = cli("gate", "run:step:2", "--at-least", "0.5", "--json")
    assert (said.code, json.loads(said.out)["verdict"]) == (3, "undecided")
    said = cli("gate", "run:step:2", "--not-below", "run:new", "--margin", "0.1")
    assert (said.code, said.out.startswith("step:2 fails in general,")) == (1, True)


def test_mistakes(run, cli, scores):
    for words, said in (
        (("gate", "run", "--at-least", "0.5"), "name one: run:new"),
        (("gate", "run", "-t", "new", "--at-least", "0.5"), "name the target as DIR:TARGET"),
        (("versus", "runs", "new", "step:2"), "runs: no such folder of an evaluation (hint: did"),
        (("gate", "nowhere", "--at-least", "0.5"), "nowhere"),
        (("gate", "run:new"), "no condition to check"),
        (("gate", "run:new", "--at-least", "0.5", "--report", "x.txt"), ".json or .csv"),
        (("gate", "run:new", "--not-below", "run:new"), "its own baseline"),
        (("versus", "run:new", "model-1"), "did you mean"),
        (("versus", "nowhere", "run:new"), "source model, and there is no folder nowhere"),
        (("versus", "a", "b"), "or in scores"),
        (("versus", "run:new", "model-01", "--report", "x.txt"), ".json or .csv"),
        (("versus", "run:new", "model-01", "--adjust", "x"), "'holm', 'bh'"),
    ):
        found = cli(*words)
        assert (found.code, said in found.err) == (2, True), found.err
        assert "Traceback" not in found.err


def test_an_undecided_gate_goes_on_in_the_same_folder(run, ok, cli, answers, asked):
    gate = ("gate", "run:step:2", "--at-least", "0.3")
    assert "epeat the command with --next-items " in cli(*gate).out
    assert "is missing" in cli(*gate, "--ask").err
    assert "fewbench ask run --target step:2" in cli(*gate, "--next-items", "5", "--ask").out
    items = asked()["step:2"]
    assert len(items) == 5
    bar = (*gate[:2], "--at-least", "0.01")
    ok("tell", "run", answers({items[0]: 1}), *ONE, "-t", "step:2")
    early = cli(*bar)
    assert (early.code, "13 answers so far" in early.out) == (0, True)
    ok("tell", "run", answers({items[2]: 1}), *ONE, "-t", "step:2")
    assert cli(*bar).code == 0  # what was asked and not answered is open, and far from the bar
    ok("tell", "run", answers(dict.fromkeys(items, 1)), *ONE, "-t", "step:2")
    assert cli(*bar).code == 0
    assert "17 of " in cli(*bar).out


def test_a_ranking(run, ok, cli, tmp_path):
    text = ok("rank", "run", "--models", "model-01", "--report", "ranks.csv")
    assert text.startswith("On these 40 items, new scores best, with an estimated 100.0%.")
    assert (tmp_path / "ranks.csv").read_text().startswith("target,score,low,high,rank")
    found = json.loads(ok("rank", "run", "--top", "1", "--json"))
    assert [one["target"] for one in found["targets"]] == ["new", "step:2"]
    assert "top = 2 is not possible with 2" in cli("rank", "run", "--top", "2").err


def test_items_for_a_difference_and_the_next_ones(ok, cli, scores, answers, asked):
    ok("start", scores, "--purpose", "difference", "-n", "12", "-t", "a", "-t", "b", "-o", "run")
    for at in range(3):  # rounds of 5, 10 and 12
        items = asked()
        assert items["a"] == items["b"]
        for name in ("a", "b"):
            right = {item: (i + at + (name == "a")) % 2 for i, item in enumerate(items[name])}
            ok("tell", "run", answers(right), *ONE, "-t", name)
    assert not asked()
    found = cli("versus", "run:a", "run:b", "--next-items", "3", "--ask")
    text = found.out
    assert "asked for more items: 3 of a, 3 of b. Next: " in found.err
    assert "Next: " not in text
    said = next(line for line in text.splitlines() if line.startswith("Next items for both: "))
    more = said.removeprefix("Next items for both: ").split(", ")
    assert ok("ask", "run").split() == more
    ok("tell", "run", answers({more[0]: 1}), *ONE, "-t", "a")
    assert "13 of 15 items answered" in ok("estimate", "run", "-t", "a")
    for name in ("a", "b"):
        ok("tell", "run", answers(dict.fromkeys(more, 1)), *ONE, "-t", name)
    assert json.loads(ok("versus", "run:a", "run:b", "--json"))["items_common"] == 15
    text = ok("rank", "run", "--next-items", "4", "--ask")
    assert sum(len(items) for items in asked().values()) == 4, text
    for words, said in (
        (("start", scores, "--purpose", "fun", "-n", "5", "-o", "x"), "score or difference"),
        (
            ("start", scores, "--purpose", "difference", "-m", "random", "-n", "5", "-o", "x"),
            "by the method fewbench",
        ),
        (("versus", "a", "b", "--", "python", "a.py"), "needs a folder"),
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


def test_no_option_of_versus_is_dropped_where_it_runs_the_models(cli, scores, monkeypatch):
    """Each option reaches the run, or is refused; this holds for options to come as well."""
    parameters = inspect.signature(fewbench.versus).parameters
    typed = {"level": 0.8, "margin": 0.05, "adjust": "bh", "next_items": 0}
    typed |= dict.fromkeys(("sequential", "ask", "fixed_items"), True)
    assert set(typed) == set(parameters) - {"a", "b", "scores", "warn"}  # warn is hidden
    reached = {}

    @functools.wraps(fewbench.run_versus)
    def ran(*_, **options):
        reached.update(options)
        raise EvaluationError("ran")

    monkeypatch.setattr("fewbench.decide.run_versus", ran)
    words = ("versus", "new", "old", "--run", "live", "--scores", scores)
    for name, value in typed.items():
        flag = f"--{name.replace('_', '-')}"
        said = cli(*words, flag, *([] if value is True else [value]), "--", "python").err
        if "error: ran" in said:
            assert reached[name] == value
        else:
            assert f"error: {flag}: no effect on a run" in said
    assert set(reached) >= {"level", "margin", "adjust"}
    said = cli("versus", "new", "old", "-n", 40, "--seed", 3)
    assert "error: --budget, --seed: no effect without a run" in said.err


NTH = """
import json, sys
for line in sys.stdin:
    item = json.loads(line)["item"]
    right = int(item.split("-")[1]) % int(sys.argv[1]) == 0
    print(json.dumps({"item": item, "score": right}), flush=True)
"""


@pytest.fixture
def checkpoint(cli, scores):
    """Run a checkpoint by a program that is right on every nth item."""

    def go(name, folder, nth, *words, method="fewbench"):
        given = ["run", "command", scores, "-m", method, "-t", name, "-o", folder, *words]
        return cli(*given, "--", sys.executable, "-S", "-c", NTH, nth)

    return go


def test_a_note_says_how_many_items_of_a_longer_run_a_new_target_runs(checkpoint, ok):
    assert checkpoint("ckpt-1", "run", 2, "-n", 12).code == 0
    ok("estimate", "run", "--next-items", "4", "--ask")
    assert checkpoint("ckpt-1", "run", 2, "-n", 12).code == 0
    more = "fewbench estimate run --target ckpt-2 --next-items 4 --ask"
    said = checkpoint("ckpt-2", "run", 3, "-n", 12)
    assert f"of ckpt-1 first, 12 of 16 (for the others, later: {more})" in said.err
    ok(*more.split()[1:])
    assert checkpoint("ckpt-2", "run", 3, "-n", 12).code == 0
    found = json.loads(ok("versus", "run", "ckpt-1", "ckpt-2", "--json"))
    assert (found["items_a"], found["items_b"], found["items_common"]) == (16, 16, 16)


def test_two_targets_of_one_folder(checkpoint, ok, cli):
    assert checkpoint("ckpt-1", "run", 2, "-n", 12).code == 0
    said = checkpoint("ckpt-2", "run", 3, "-n", 12)
    assert "note: ckpt-2 is new here: it runs the items of ckpt-1 first" in said.err
    assert said.out.startswith("ckpt-2 scores ")
    assert "ckpt-1" not in said.out
    kept = json.loads(Path("run", "result.json").read_text())["targets"]
    assert [one["items_run"] for one in kept.values()] == [12, 12]
    found = json.loads(ok("versus", "run", "ckpt-1", "ckpt-2", "--json"))
    assert (found["a"], found["b"], found["items_common"]) == ("ckpt-1", "ckpt-2", 12)
    assert found["pairing"] is None
    assert {one["target"] for one in json.loads(ok("rank", "run", "--json"))["targets"]} == {
        "ckpt-1",
        "ckpt-2",
    }
    assert len(json.loads(ok("track", "run", "--json"))["points"]) == 2
    known = json.loads(ok("versus", "run", "ckpt-1", "model-01", "--json"))
    assert (known["a"], known["b"], known["items_a"]) == ("ckpt-1", "model-01", 12)
    assert "'ckpt-9'" in cli("versus", "run", "ckpt-1", "ckpt-9").err
    assert "limits: at most 12 items, now at most 9 items" in checkpoint("x", "run", 2, "-n", 9).err


def test_targets_that_share_few_items_are_named_first(checkpoint, ok, cli, tmp_path):
    """By different seeds; the command that is printed pairs them."""
    checkpoint("old", "a", 2, "-n", 10, method="random")
    checkpoint("new", "b", 3, "-n", 10, "--seed", 7, method="random")
    words = [
        ["versus", "b", "a"],
        ["gate", "b", "--not-below", "a", "--margin", "0.05"],
        ["rank", "a", "b"],
    ]
    for command in words:
        said = cli(*command).out
        assert "share " in said.splitlines()[0], said
        assert (
            " of 10 items; on the same items their difference is more precise."
            in said.splitlines()[0]
        )
        (following,) = [line for line in said.splitlines() if "--items-of" in line]
    assert following.startswith("Next: fewbench run RUNNER ")
    assert following.endswith("-t new -o new-paired --items-of a -- …")
    before = json.loads(ok(*words[0], "--json"))
    assert checkpoint("new", "new-paired", 3, "--items-of", "a", method="auto").code == 0
    after = json.loads(ok("versus", "new-paired", "a", "--json"))
    assert (after["items_common"], after["pairing"]) == (10, None)
    assert before["items_common"] < 5
    for command in words:
        given = ["new-paired" if word == "b" else word for word in command]
        assert "share" not in cli(*given).out
    said = checkpoint("other", "c", 3, "-n", 10, "--items-of", "a", method="fluid")
    assert said.code == 2
    assert "a was run with method random, not fluid" in said.err
    assert not (tmp_path / "c" / "evaluation.json").exists()


def test_targets_join_by_hand(ok, scores, asked, answers):
    begin = ("start", scores, "-m", "fewbench", "-n", "12", "--no-check")
    ok(*begin, "-t", "one", "-o", "run")
    while items := asked("run").get("one"):
        ok("tell", "run", answers(dict.fromkeys(items, 1)), *ONE, "-t", "one")
    ok(*begin, "-t", "two", "-o", "run")
    ok(*begin, "-t", "three", "-o", "other", "--items-of", "run:one")
    ok("track", "run", "--add", "four")
    items = asked("run")
    assert len(items["two"]) == 5  # the first round
    assert items["two"] == items["four"] == asked("other")["three"]
