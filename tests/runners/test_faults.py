"""Faults of a run: killed at any moment, two processes, items that fail, Ctrl-C."""

import asyncio
import json
import signal
import subprocess
import sys
import time
import warnings
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

import fewbench
from fewbench.errors import AnswersError, EstimateWarning, RunError
from fewbench.evaluation import Evaluation, Stop
from fewbench.evaluation.journal import ANSWERS, Journal
from fewbench.runners.command import CommandRunner
from fewbench.runners.driving import run_with
from fewbench.runners.run import Run
from fewbench.runners.run_folder import BusyError, undone_if_refused
from fewbench.testing import simulate

TABLE = simulate(17, 80, 2, seed=5)
SOURCES, NEW = TABLE.take(models=range(16)), TABLE.take(models=[16])
TRUTH = dict(zip(NEW.item_ids.tolist(), NEW.values[0].tolist(), strict=True))


def test_a_run_that_is_killed_loses_nothing_and_repeats_only_its_last_batch(tmp_path):
    program = Path(__file__).with_name("killed_runs.py")
    ran = subprocess.run(
        [sys.executable, program, tmp_path, "15"], capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    for runner, found in json.loads(ran.stdout).items():
        assert found["again"] == 0, runner
        assert found["most_lost"] <= 3, runner  # the batch in flight
        assert found["recorded"] > 10, runner
        assert found["same"], runner
        assert found["items"] == 40, runner


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"method": "stratified"}, "method: random, now stratified"),
        ({"method": "auto"}, "method: random, now auto"),
        ({"stop": Stop(items=8)}, "limits: at most 9 items, now at most 8 items"),
        ({"seed": 4}, "seed: 0, now 4"),
    ],
)
def test_other_settings_do_not_go_on(tmp_path, change, said):
    given = {"method": "random", "stop": Stop(items=9), "folder": tmp_path}
    Run.open(SOURCES, **given).close()
    with pytest.raises(RunError, match=said):
        Run.open(SOURCES, **given | change)


def test_another_level_goes_on_unless_it_decides_when_to_stop(tmp_path):
    for name, stop, other in (
        ("items", Stop(items=9), Stop(items=9, level=0.8)),
        ("width", Stop(items=9, half_width=0.1), Stop(items=9, half_width=0.1, level=0.8)),
    ):
        given = {"score": TRUTH.get, "folder": tmp_path / name}
        fewbench.run(SOURCES, "random", stop=stop, **given)
        if name == "width":
            with pytest.raises(RunError, match=r"±0\.1 at 90%, now .* ±0\.1 at 80%"):
                fewbench.run(SOURCES, "random", stop=other, score=TRUTH.get, folder=tmp_path / name)
            continue
        found = fewbench.run(SOURCES, "random", stop=other, score=TRUTH.get, folder=tmp_path / name)
        assert found.estimates["target"].level == 0.8


def test_an_item_that_fails_is_tried_again_then_skipped_and_named():
    asked = []

    def answer(item):
        asked.append(item)
        if item == bad:
            raise ValueError("no\nluck")
        return TRUTH[item]

    bad = Evaluation(SOURCES, "random", 12).ask()["target"][0]
    found = fewbench.run(SOURCES, "random", 12, answer, batch=4, tries=2)
    result = found.targets["answer"]
    assert result.failed == {bad: "ValueError: no"}
    assert asked.count(bad) == 2
    assert asked.index(bad) == 0
    assert asked[-1] == bad  # after all others
    assert result.items_run == 11
    assert any("1 item skipped" in one for one in result.estimate.warnings)
    assert f"1 item failed and skipped: '{bad}'" in str(found)
    assert not found.is_failed


@pytest.mark.parametrize("from_the_start", [True, False])
def test_a_model_that_fails_on_everything_ends_the_run_and_no_item_is_skipped(
    tmp_path, from_the_start
):
    def answer(item):
        if from_the_start or len(answered) >= 10:
            raise OSError("no server")
        answered.append(item)
        return TRUTH[item]

    answered = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EstimateWarning)
        found = fewbench.run(SOURCES, "random", 40, answer, folder=tmp_path, batch=5)
    said = [str(warning.message) for warning in caught]
    assert any("no estimate of answer: answer failed on" in text for text in said) == from_the_start
    if from_the_start:
        with pytest.raises(KeyError, match="'answer'"):
            found.estimates["answer"]
    assert found.is_failed
    assert "items in a row, first: OSError: no server" in found.stopped
    target = found.targets["answer"]
    # the first failures could be the items'; those later are the model's
    assert len(target.failed) == 0
    assert target.items_run == len(answered)
    whole = fewbench.run(SOURCES, "random", 40, TRUTH.get, folder=tmp_path, accept_changes=True)
    assert whole.targets["answer"].items_run == 40


@pytest.mark.parametrize(
    ("method", "n_items", "tries"),  # all at once, and one at a time
    [("random", 22, 1), ("random", 40, 3), ("fluid", 22, 3), ("fluid", 40, 1)],
)
def test_an_outage_after_some_answers_skips_no_item(tmp_path, method, n_items, tries):
    """Neither items that fail in it, nor those that had failed once while others were answered."""

    def answer(item):
        if len(answered) == 12:
            raise OSError("no server")
        if tries > 1 and len(asked) % 4 == 1 and item not in asked:
            asked.append(item)
            raise ValueError("busy")
        asked.append(item)
        answered.append(item)
        return TRUTH[item]

    asked, answered = [], []
    given = {"folder": tmp_path, "batch": 8, "tries": tries, "accept_changes": True}
    found = fewbench.run(SOURCES, method, n_items, answer, **given)
    assert found.is_failed
    assert "items in a row, first: OSError: no server" in found.stopped
    assert found.targets["answer"].failed == {}
    assert found.targets["answer"].items_run == 12
    whole = fewbench.run(SOURCES, method, n_items, TRUTH.get, **given)
    assert (whole.targets["answer"].items_run, whole.stopped) == (n_items, None)


def test_items_that_fail_for_ever_are_no_outage_however_many_and_can_be_asked_again(tmp_path):
    """They come last and in a row, but the model answered others after each had failed."""
    chosen = Evaluation(SOURCES, "random", 60).ask()["target"]
    bad = set(chosen[::4])

    def answer(item):
        return None if item in bad else TRUTH[item]

    given = {"folder": tmp_path, "batch": 8, "accept_changes": True}
    found = fewbench.run(SOURCES, "random", 60, answer, **given)
    assert set(found.targets["answer"].failed) == bad
    assert not found.is_failed
    asked = []
    fewbench.run(SOURCES, "random", 60, asked.append, **given)
    assert not asked
    whole = fewbench.run(SOURCES, "random", 60, TRUTH.get, retry_skipped=True, **given)
    assert whole.targets["answer"].items_run == 60


def test_a_second_process_is_refused_and_ctrl_c_ends_the_first_with_its_estimate(tmp_path):
    program = (
        "import sys, time, fewbench, json; from fewbench.testing import simulate\n"
        "def answer(item): print(item, flush=True); time.sleep(.02); return 1\n"
        "table = simulate(17, 80, 2, seed=5).take(models=range(16))\n"
        "found = fewbench.run(table, 'random', 60, answer, folder=sys.argv[1], batch=2)\n"
        "print(found.stopped, found.targets['answer'].items_run)"
    )
    given = {"method": "random", "stop": Stop(items=60), "folder": tmp_path / "run"} | {
        "targets": ["answer"]
    }
    arguments = [sys.executable, "-c", program, given["folder"]]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(7):
            process.stdout.readline()
        with pytest.raises(RunError, match=rf"run is at work .* \(process {process.pid} on "):
            Run.open(SOURCES, **given)
        process.send_signal(signal.SIGINT)
        why, n = process.stdout.read().splitlines()[-1].split()
    assert process.returncode == 0
    assert why == "interrupted"
    assert int(n) >= 6
    with Run.open(SOURCES, **given) as run:
        assert run.progress("answer", interval=False).answered == int(n)


@pytest.mark.parametrize("is_new", [True, False])
def test_a_run_that_is_refused_leaves_what_another_run_writes_meanwhile(tmp_path, is_new):
    place = tmp_path / "run"
    if not is_new:
        Run.open(SOURCES, "random", 8, place).close()
    with ExitStack() as refused:
        refused.enter_context(pytest.raises(BusyError))
        refused.enter_context(undone_if_refused(place, lambda: False))
        other = Run.open(SOURCES, "random", 8, place)
        other.take("target", dict.fromkeys(other.next("target"), 1.0), cost=1.0)
        Run.open(SOURCES, "random", 8, place)
    other.close()
    assert Evaluation.open(place, SOURCES).cost("target").spent == 1.0
    assert len(Evaluation.open(place, SOURCES).record.answered("target")) == 8


def test_a_run_that_is_refused_leaves_what_is_told_meanwhile(tmp_path):
    Run.open(SOURCES, "random", 8, tmp_path / "run").close()
    with suppress(RunError), undone_if_refused(tmp_path / "run", lambda: False):
        other = Evaluation.open(tmp_path / "run", SOURCES)
        other.tell("target", {other.ask()["target"][0]: 1.0})
        raise RunError("refused", hint="")
    assert len(Evaluation.open(tmp_path / "run", SOURCES).record.answered("target")) == 1


def test_limits_that_only_a_run_keeps(monkeypatch):
    def batches(stop, *, cost=0.0, tokens=0, seconds=0.0):
        clock = [1000.0]
        monkeypatch.setattr(time, "monotonic", lambda: clock[0])
        sizes = []
        with Run.open(SOURCES, "random", stop) as run:
            while items := run.next("target"):
                assert run.next("target") == items  # until they are taken
                sizes.append(len(items))
                clock[0] += seconds
                right = {item: TRUTH[item] for item in items}
                run.take("target", right, cost=cost * len(items), tokens=tokens * len(items))
                run.take("target", right)  # again: nothing changes
            return sizes, run.result().stopped, run.notes

    # One item first, then at most twice as many as were run, then ever fewer up to the limit.
    sizes, why, notes = batches(Stop(items=50, cost=3.0), cost=0.1)
    assert (sizes[:4], sum(sizes), notes) == ([1, 2, 6, 16], 30, [])
    assert why == "target: the cost limit of 3 was reached"
    sizes, why, _ = batches(Stop(items=50, tokens=990), tokens=30)
    assert (sizes[:4], sum(sizes)) == ([1, 2, 6, 18], 33)
    assert why == "target: the limit of 990 tokens was reached (to go on: more --tokens)"
    assert batches(Stop(items=20, cost=2.0), cost=0.1)[1] is None  # the items ended first
    sizes, why, _ = batches(Stop(items=50, seconds=60), seconds=30)
    assert sizes == [10, 10]
    assert why == "the limit of 1 minutes was reached (to go on: more --minutes)"
    for stop in (Stop(seconds=5), Stop(items=5, tokens=5), Stop(items=5, cost=5)):
        with pytest.raises(fewbench.FewbenchError):
            Evaluation(SOURCES, "random", stop=stop)


def test_a_limit_on_what_a_function_cannot_report_is_refused(tmp_path):
    asked = []
    for stop in (Stop(cost=5), Stop(items=20, cost=5), Stop(tokens=9), Stop(items=20, tokens=9)):
        with pytest.raises(fewbench.errors.RunError, check=lambda error: error.kind == "missing"):
            fewbench.run(SOURCES, "random", score=asked.append, stop=stop, folder=tmp_path / "run")
    assert not asked
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("score", "what"), [(0.0, "wrong"), (1.0, "right")])
def test_answers_that_are_all_wrong_or_all_right_are_a_warning(tmp_path, score, what):
    found = fewbench.run(SOURCES, "random", 40, lambda item: score, folder=tmp_path)
    said = f"all 40 answers are {what}: check how replies are read and scored"
    assert said in found.estimates["target"].warnings
    again = Evaluation.open(tmp_path, SOURCES)
    assert said in again.estimate()["target"].warnings
    compared = fewbench.versus(again, SOURCES.model_ids[0])
    assert any(said in one for one in compared.warnings) == (what == "wrong")
    mixed = fewbench.run(SOURCES, "random", 40, TRUTH.get)
    assert not any("all 40" in one for one in mixed.estimates["target"].warnings)


def test_answers_that_do_not_fit_are_refused_and_their_cost_is_kept(tmp_path):
    with Run.open(SOURCES, "random", Stop(items=9), tmp_path) as run:
        item, other = run.next("target")[:2]
        with pytest.raises(AnswersError, match=r"outside 0\.\.1"):
            run.take("target", {item: 7.0}, cost=2.0)
        run.take("target", {other: 1.0}, cost=0.5)
    with Run.open(SOURCES, "random", Stop(items=9), tmp_path) as run:
        assert run.result().spent.cost == 2.5
        assert other not in run.next("target")
    path = tmp_path / ANSWERS
    path.write_text(path.read_text() + "broken\n")
    with pytest.raises(fewbench.FewbenchError, match=r"answers\.jsonl.*line 5"):
        Run.open(SOURCES, "random", Stop(items=9), tmp_path)
    assert Journal(tmp_path).repair() == [5]
    with Run.open(SOURCES, "random", Stop(items=9), tmp_path) as run:
        assert run.result().spent.cost == 2.5


def test_answers_are_recorded_before_their_batch_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("fewbench.runners.driving.SOON", 0.0)
    recorded = []

    def score(item):
        opened = Evaluation.open(tmp_path, SOURCES) if len(recorded) else None
        recorded.append(0 if opened is None else len(opened.record.answered("score")))
        if len(recorded) % 5 == 0:
            raise ValueError("not now")
        return TRUTH[item]

    found = fewbench.run(SOURCES, "random", 20, score=score, folder=tmp_path, tries=9)
    assert found.targets["score"].items_run == 20
    answered = [at - at // 5 for at in range(len(recorded))]
    assert recorded == answered
    plain = fewbench.run(SOURCES, "random", 20, score=TRUTH.get)
    assert found.score == plain.score


def test_answers_of_an_async_function_are_recorded_before_their_batch_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("fewbench.runners.driving.SOON", 0.0)
    recorded = []

    async def score(item):
        await asyncio.sleep(0)
        if (tmp_path / "answers.jsonl").exists():
            opened = Evaluation.open(tmp_path, SOURCES)
            recorded.append(len(opened.record.answered("score")))
        return TRUTH[item]

    found = fewbench.run(SOURCES, "random", 20, score=score, folder=tmp_path)
    assert found.targets["score"].items_run == 20
    assert recorded == list(range(20))


def test_ctrl_c_within_a_batch_counts_its_cost_once(tmp_path, monkeypatch):
    monkeypatch.setattr("fewbench.runners.driving.SOON", 0.0)
    tell, calls = Evaluation.tell, []

    def interrupted(self, *given, **settings):
        calls.append(given)
        if len(calls) == 15:
            raise KeyboardInterrupt
        return tell(self, *given, **settings)

    monkeypatch.setattr(Evaluation, "tell", interrupted)
    monkeypatch.setenv("SLOW", "1")
    program = (
        "import json, os, sys, time\n"
        "for n, line in enumerate(sys.stdin):\n"
        "    item = json.loads(line)['item']\n"
        "    if n == 15 and 'SLOW' in os.environ: time.sleep(60)\n"
        "    print(json.dumps({'item': item, 'score': 1, 'cost': 1}), flush=True)\n"
    )
    runner = CommandRunner([sys.executable, "-c", program])
    found = run_with(runner, SOURCES, "random", Stop(items=40), folder=tmp_path)
    (target,) = found.targets.values()
    assert found.stopped == "interrupted"
    assert target.items_run == found.spent.cost == 15
    monkeypatch.undo()
    runner = CommandRunner([sys.executable, "-c", program])  # which may read other weights now
    found = run_with(runner, SOURCES, "random", Stop(items=40), folder=tmp_path)
    assert any("goes on from 15 earlier answers: if the program" in note for note in found.notes)


@pytest.mark.parametrize("wrong", [7.0, "yes", 0.5])
def test_a_wrong_score_costs_no_other_answer(tmp_path, wrong):
    given = {"score": lambda item: wrong if item == bad else TRUTH[item], "folder": tmp_path}
    bad = Evaluation(SOURCES, "random", 8).ask()["target"][4]
    with pytest.raises(fewbench.FewbenchError, match=bad):
        fewbench.run(SOURCES, "random", 8, **given)
    assert len(Evaluation.open(tmp_path, SOURCES).record.answered("target")) == 7


def test_a_target_with_the_items_of_another_run_goes_on_to_a_larger_cost(tmp_path):
    priced = replace(SOURCES, items=SOURCES.items.assign(cost=1.0))
    first, folder = tmp_path / "first", tmp_path / "second"
    fewbench.run(priced, "fewbench", score=TRUTH.get, stop=Stop(cost=33), folder=first)
    for cost in (15, 25, 25, 40):
        found = fewbench.run(
            priced,
            "fewbench",
            score=lambda item: 1 - TRUTH[item],  # leaves the items of the other
            stop=Stop(cost=cost),
            folder=folder,
            items_of=first,
        )
        assert found.targets["target"].items_run == cost
    assert any("target goes on from 25 earlier answers: if this" in text for text in found.warnings)
