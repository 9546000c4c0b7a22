"""The whole job of a trainer: several runs in one folder, from the first command to the last."""

import csv
import json
import sys

import numpy as np
import pytest

import fewbench
from fewbench.evaluation import Evaluation

N, STEPS = 480, (1000, 2000, 4000, 8000)
PROGRAM = """
import json, sys
right = json.load(open("right.json"))
for line in sys.stdin:
    asked = json.loads(line)
    score = right[asked["target"]][int(asked["item"])]
    print(json.dumps({"item": asked["item"], "score": score}), flush=True)
"""


@pytest.fixture
def truth(tmp_path):
    """Write the items, of a group of 8 subjects and a task, and a program; return all answers."""
    rng = np.random.default_rng(11)
    difficulty = rng.normal(size=N)
    with open("items.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "task", "group"])
        for n in range(N):
            rows.writerow([n, f"subject-{n // 40}", "mmlu"] if n < 320 else [n, "math", ""])
    right = {}
    for run, top in {"a": 1.8, "b": 1.8, "slow": 0.4}.items():
        own = rng.normal(size=N)
        for step in STEPS:
            ability = top * (1 - np.exp(-step / 2500)) - 0.8
            apart = ability - difficulty + 0.7 * own + 0.3 * rng.normal(size=N)
            right[f"{run}/step-{step}"] = (apart > 0).astype(float)
    (tmp_path / "right.json").write_text(json.dumps({k: [*v] for k, v in right.items()}))
    (tmp_path / "answer.py").write_text(PROGRAM)
    return right


def run(names, *words, program="answer.py"):
    targets = [word for name in names for word in ("-t", name)]
    return ("run", "command", "items.csv", *targets, *words, "--", sys.executable, program)


def test_three_runs_from_the_first_command_to_the_last(ok, cli, truth, tmp_path):
    # A forgotten flag: the program fails at once, and nothing is answered.
    (tmp_path / "broken.py").write_text("raise SystemExit(1)")
    names = [*truth]
    assert cli(*run(names[:1], "-n", 60, "-o", "runs", program="broken.py")).code == 1
    refused = cli(*run(names[:1], "-n", 160, "-o", "runs"))
    assert refused.code == 2
    assert "--fresh" in refused.err
    ok(*run(names[:6], "-n", 160, "-o", "runs", "--fresh"))
    ok(*run(names[6:], "-n", 160, "-o", "runs"))
    refused = cli(*run(names[:1], "-n", 60, "-o", "runs"))  # now there is something to protect
    assert "--fresh" not in refused.err

    found = json.loads(ok("track", "runs", "--json"))
    scores = {name: right.mean() for name, right in truth.items()}
    points = {point["checkpoint"]: point for point in found["points"]}
    assert [point["run"] for point in found["points"]] == ["a"] * 4 + ["b"] * 4 + ["slow"] * 4
    assert np.mean([
        points[name]["interval"]["low"] <= score <= points[name]["interval"]["high"]
        for name, score in scores.items()
    ]) >= 0.75  # fmt: skip
    for change in found["changes"]:  # within a run, none of the wrong sign
        before, after = change["before"], change["after"]
        assert before.split("/")[0] == after.split("/")[0]
        sign = {"better": 1, "worse": -1, "undecided": 0}[change["verdict"]]
        assert sign * (scores[after] - scores[before]) >= 0
    standing = {each["run"]: each for each in found["runs"]}
    assert {each["step"] for each in standing.values()} == {STEPS[-1]}
    assert standing["slow"]["is_behind"]
    assert not standing["a"]["is_behind"]
    assert not standing["b"]["is_behind"]
    assert sum(each["chance_ahead"] for each in standing.values()) == pytest.approx(1, abs=1e-3)
    assert {change["benchmark"] for change in found["benchmark_changes"]} == {"mmlu", "math"}
    text = " ".join(ok("track", "runs", "--report", "curve.html").split())
    assert "a: 4 checkpoints: rising, +" in text

    estimate = json.loads(ok("estimate", "runs:a/step-8000", "--json"))
    assert json.loads(ok("estimate", "runs", "-t", "a/step-8000", "--json")) == estimate
    decided = json.loads(ok("versus", "runs", "a/step-8000", "slow/step-8000", "--json"))
    assert [group["task"] for group in decided["groups"]] == ["mmlu", "math"]
    assert len(decided["tasks"]) == 9
    for group, part in zip(decided["groups"], (slice(0, 320), slice(320, N)), strict=True):
        true = (truth["a/step-8000"] - truth["slow/step-8000"])[part].mean()
        assert group["verdict"] == "better"
        assert group["interval"]["low"] <= true <= group["interval"]["high"]

    how = ("--margin", 0.03, "--looks", 4)
    codes = {
        name: [
            cli("gate", f"runs:{name}/step-{step}", "--not-below", f"a/step-{step}", *how).code
            for step in STEPS
        ]
        for name in ("b", "slow")
    }
    assert 1 not in codes["b"]
    assert codes["slow"][-1] == 1

    ok("add", "runs:a/step-8000", "-o", "mine.parquet")
    assert fewbench.load_scores("mine.parquet").model_ids == ["a/step-8000"]


def test_a_loop_in_python_runs_the_items_of_the_command_line(ok, truth):
    ok(*run(["a/step-1000"], "-n", 60, "-o", "runs"))
    items = fewbench.read_items("items.csv")

    def answer(item):
        return truth["a/step-2000"][int(item)]

    fewbench.run(items, budget=60, score={"a/step-2000": answer}, folder="runs")
    fewbench.run(items, budget=60, score={"a/step-2000": answer}, folder="alone")
    evaluation = Evaluation.open("runs")
    first, second = (set(evaluation.record.answered(name)) for name in evaluation.targets)
    assert first == second
    assert set(Evaluation.open("alone").record.answered("a/step-2000")) == first


def test_runs_in_folders_of_their_own(ok, cli, truth):
    for name in truth:
        folder, target = name.split("/")
        if folder != "b" and not (folder == "slow" and target == "step-8000"):
            right = truth[name]
            fewbench.run(
                fewbench.read_items("items.csv"), budget=80, folder=f"runs/{folder}",
                score={target: lambda item, right=right: right[int(item)]},
            )  # fmt: skip
    refused = cli("track", "runs", "--run", "a").err
    assert "--run: no effect with a folder" in refused
    assert "all its runs" in refused
    assert "Runs" not in ok("track", "runs/a")  # as the hint says
    found = fewbench.track("runs")
    assert [(each.run, each.step) for each in found.runs] == [("a", 4000), ("slow", 4000)]
    assert [point.checkpoint for point in found.points] == [
        *(f"a/step-{step}" for step in STEPS), *(f"slow/step-{step}" for step in STEPS[:3])
    ]  # fmt: skip
    for point in found.points:  # each from its own folder
        folder, target = point.checkpoint.split("/")
        own = Evaluation.open(f"runs/{folder}").estimate()[target]
        assert point.score == pytest.approx(own.score)
    assert all(change.before[0] == change.after[0] for change in found.changes)


def test_a_stopped_run_does_not_hold_the_others_at_its_end(ok, truth):
    live = [name for name in truth if not name.startswith("slow")]
    ok(*run([*live, "slow/step-1000"], "-n", 80, "-o", "runs"))
    first, second, stopped = fewbench.track("runs").runs
    assert {first.step, second.step} == {STEPS[-1]}
    decided = json.loads(ok("versus", "runs", first.checkpoint, second.checkpoint, "--json"))
    assert first.chance_ahead == pytest.approx(decided["chance_a_better"])
    assert second.is_behind == (decided["verdict"] == "better")
    assert (stopped.checkpoint, stopped.is_stopped) == ("slow/step-1000", True)
    assert stopped.behind_interval is stopped.chance_ahead is None
    text = " ".join(ok("track", "runs").split())
    assert "the highest of 2 runs at step 8,000" in text
    assert "slow: 1 checkpoint, stopped at step 1,000." in text


def test_a_fresh_run_that_is_refused_leaves_the_folder_as_it_was(ok, cli, truth, tmp_path):
    names = [*truth][:3]
    ok(*run(names, "-n", 60, "-o", "runs"))
    before = {each.name: each.read_bytes() for each in (tmp_path / "runs").glob("*.json*")}
    for again in (names[:1], names[:2]):
        refused = cli(*run(again, "-n", 80, "-o", "runs", "--fresh"))
        assert refused.code == 2
        assert "--fresh" not in refused.err
        after = {each.name: each.read_bytes() for each in (tmp_path / "runs").glob("*.json*")}
        assert after == before
        assert not [*tmp_path.glob("runs.*")]
    refused = cli(*run(names, "-n", 60, "-m", "none", "-o", "runs", "--fresh"))
    assert refused.code == 2
    assert Evaluation.open("runs").targets == tuple(names)
    ok(*run(names[:2], "-n", 60, "-o", "runs", "--fresh"))
    assert [each.name for each in tmp_path.glob("runs.*")] == ["runs.1"]


def test_what_cannot_start_over_is_not_told_to(ok, cli, truth):
    ok("start", "items.csv", "-n", 60, "-t", "a", "-t", "b", "-o", "runs")
    assert "--fresh" not in cli("start", "items.csv", "-n", 80, "-t", "a", "-o", "runs").err
    for words in ((), ("--fresh",)):  # b would keep its settings
        refused = cli(*run(["a"], "-n", 80, "-o", "runs", *words))
        assert refused.code == 2
        assert "--fresh" not in refused.err
    assert "--fresh" in cli(*run(["a", "b"], "-n", 80, "-o", "runs")).err
