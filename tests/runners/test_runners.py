"""Functions and programs that answer items."""

import asyncio
import re
import sys
import threading

import numpy as np
import pytest

import fewbench
from fewbench.errors import RunError
from fewbench.evaluation import Evaluation, Stop
from fewbench.runners.command import CommandRunner
from fewbench.runners.driving import Answered, Runner, run_with
from fewbench.runners.function import FunctionRunner
from fewbench.runners.run import Run
from fewbench.scores import Scores
from fewbench.testing import simulate

TABLE = simulate(17, 60, 2, seed=5)
SOURCES, NEW = TABLE.take(models=range(16)), TABLE.take(models=[16])
TRUTH = dict(zip(NEW.item_ids.tolist(), NEW.values[0].tolist(), strict=True))


# -- functions ---------------------------------------------------------------------------------


async def later(item):
    await asyncio.sleep(0)
    return TRUTH[item]


class Callable:
    async def __call__(self, item):
        return TRUTH[item]


def batches(items):
    return {item: TRUTH[item] for item in items}


async def batches_later(items):
    return batches(items)


@pytest.mark.parametrize(
    ("answer", "settings"),
    [
        (TRUTH.get, {}),
        (TRUTH.get, {"concurrency": 3}),
        (later, {}),
        (later, {"concurrency": 4}),
        (Callable(), {}),
        (batches, {"batched": True}),
        (batches_later, {"batched": True}),
        ({"target": TRUTH.get}, {}),
    ],
)
def test_functions_of_every_kind_answer_alike(answer, settings):
    runner = FunctionRunner(answer, **settings)
    items = list(TRUTH)[:9]
    runner.prepare(SOURCES, ["target"])
    found = runner.answer("target", items)
    runner.close()
    assert dict(found.answers) == {item: TRUTH[item] for item in items}
    assert not found.failed
    assert found.stopped is None


def test_a_function_in_a_notebook_and_several_targets():
    async def cell():
        return fewbench.run(
            SOURCES, "random", 8, {"a": later, "b": TRUTH.get}, targets=["a", "b"], batch=5
        )

    before = threading.active_count()
    found = asyncio.run(cell())
    assert found.targets["a"].estimate.score == found.targets["b"].estimate.score
    assert threading.active_count() == before


def test_functions_that_cannot_answer():
    for given, said in (
        ({"score": None}, "no function"),
        ({"score": {"other": later}, "targets": ["new"]}, "no function answers for 'new'"),
        ({"score": later, "concurrency": 0}, "concurrency"),
        ({"score": lambda items: 1.0, "batched": True}, "returned float for a batch"),
        ({"score": later, "batch": 0}, "batch 0 is too low"),
    ):
        with pytest.raises(RunError, match=said):
            fewbench.run(SOURCES, "random", 8, **given)
    found = fewbench.run(SOURCES, "random", 8, lambda items: {}, batched=True)
    assert found.is_failed
    assert "no answer and no reason given" in found.stopped


def test_what_is_not_compared_is_counted_once():
    """Of items that sources ran, over all batches; nothing is compared of items that none ran."""
    table = simulate(8, 30, 1, seed=2)
    values = table.values.copy()
    values[:, 20:] = np.nan
    hashes = ["ab12@" if at < 10 else "" for at in range(30)]
    items = table.items.assign(prompt_hashes=hashes, task_settings="")
    sources = Scores(values, table.models, items)
    own = table.items.assign(prompt_hashes="ab12@", task_settings="")
    answers = Scores(table.values[:1], table.models[:1], own)
    with Run.open(sources, "random", 30, targets=[table.model_ids[0] + "-new"], batch=4) as run:
        (name,) = run.targets
        while asked := run.next(name):
            run.take(name, answers.take(items=answers.positions(asked)))
        found = run.result()
    told = [note for note in found.notes if "prompts" in note and "not compared" in note]
    assert found.targets[name].items_run == 30
    assert [note.partition(" are ")[0] for note in told] == ["prompts of 10 items"]
    assert run.result().notes == found.notes


def test_a_narrow_interval_is_a_note():
    by_width = Stop(items=60, half_width=0.15)
    found = run_with(FunctionRunner(lambda item: 1.0), SOURCES, "random", by_width)
    one = found.targets["target"]
    assert one.items_run < 60
    said = f"target: {one.items_run} of at most 60 items answered: the interval is narrow enough"
    assert said in found.notes
    assert not any("items answered" in warning for warning in one.estimate.warnings)


# -- programs ----------------------------------------------------------------------------------

PROGRAM = """
import json, os, sys
seen = set()
for line in sys.stdin:
    asked = json.loads(line)
    item = asked["item"]
    {body}
    found = {{"item": item, "score": len(item) % 2, "cost": 0.5, "tokens": 3}}
    print(json.dumps(found), flush=True)
"""


def program(body="pass"):
    return CommandRunner([sys.executable, "-S", "-c", PROGRAM.format(body=body)], timeout=20)


def run_program(runner, n=9, **settings):
    return run_with(runner, SOURCES, "random", n, targets=["target"], **settings)


def test_a_program_answers_lines():
    body = "assert asked['target'] == 'target' and asked['task'].startswith('task-')"
    found = run_program(program(body), batch=4)
    target = found.targets["target"]
    assert (target.items_run, target.cost, target.tokens) == (9, 4.5, 27)
    assert (target.full_cost, target.full_tokens) == (30, 180)
    assert " 4.5       30        25.5" in str(found)


def test_a_program_that_dies_on_an_item_is_started_again():
    bad = SOURCES.item_ids[0]
    body = f"if item == {bad!r}: os._exit(7)"
    found = run_program(program(body), n=60, batch=20, tries=2)
    target = found.targets["target"]
    assert target.failed == {bad: "the program ended with exit code 7"}
    assert target.items_run == 59
    assert not found.is_failed


@pytest.mark.parametrize("way", ["program", "function"])
def test_an_item_with_the_score_nan_is_skipped_and_the_others_count(way):
    bad = SOURCES.item_ids[0]
    line = "{'item': item, 'score': float('nan')}"
    body = f"if item == {bad!r}: print(json.dumps({line}), flush=True); continue"
    runner = program(body)
    if way == "function":
        runner = FunctionRunner(lambda item: float("nan") if item == bad else 1.0)
    target = run_program(runner, n=60).targets["target"]
    assert (target.items_run, target.failed) == (59, {bad: "its score is NaN"})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("os._exit(3)", "ended with exit code 3, twice in a row"),
        ("os.close(1); os.close(0); os._exit(0)", "ended with exit code 0, twice in a row"),
        ("os.kill(os.getpid(), 9)", "died by signal 9, twice in a row"),
    ],
)
def test_a_program_that_keeps_dying_ends_the_run(body, said):
    found = run_program(program(body))
    assert found.is_failed
    assert said in found.stopped
    assert not found.targets["target"].failed
    assert found.targets["target"].estimate is None


def test_lines_that_are_no_answers_are_named():
    """A log is shown, a wrong answer is its item's failure."""
    for body, said in (
        ("print('loading …', flush=True)", "printed 'loading …', which is not an answer"),
        ("print(json.dumps({'item': 'elsewhere'}))", "item 'elsewhere', which was not requested"),
        ('print(\'{"item": "q", "score": 1, "score": 0}\', flush=True)', "is not an answer"),
    ):
        found = run_program(program(body))
        assert found.targets["target"].items_run == 9
        assert any(said in note for note in found.notes), found.notes
    for wrong, said in (
        ("{'item': item, 'cost': -1}", "cost: "),
        ("{'item': item, 'score': 10**400}", "score: not a number"),
        ("{'item': item, 'score': 7}", r"score: outside 0\.\.1"),
    ):
        found = run_program(program(f"print(json.dumps({wrong}), flush=True); continue"))
        assert found.is_failed
        assert re.search(f"the program printed .*: {said}", found.stopped), found.stopped
    hanging = CommandRunner(
        [sys.executable, "-S", "-c", "import time; time.sleep(60)"], timeout=0.2
    )
    assert "printed nothing for 0.2 s (--timeout), twice in a row" in run_program(hanging).stopped
    for command in ([], ["/no/such/program"]):
        with pytest.raises(RunError, match=r"no program|cannot start /no/such/program"):
            run_program(CommandRunner(command))


@pytest.mark.parametrize("when", ["at once", "in the next batch", "at the end"])
@pytest.mark.parametrize("score", [1, 0, None])
def test_an_item_gets_one_answer(when, score):
    """A program that answers an item again, alike or not, in whatever order its lines arrive."""
    body = """
import json, sys
last = None
def tell(item, score):
    found = {"item": item, "cost": 1} | ({"error": "?"} if score is None else {"score": score})
    print(json.dumps(found), flush=True)
for at, line in enumerate(sys.stdin):
    item = json.loads(line)["item"]
    if at == 4 and WHEN == "in the next batch":
        tell(last, SCORE)
    tell(item, 1)
    if at == 1 and WHEN == "at once":
        tell(item, SCORE)
    last = item
if WHEN == "at the end":
    tell(last, SCORE)
    print("bye")
"""
    body = f"WHEN, SCORE = {when!r}, {score!r}\n{body}"
    runner = CommandRunner([sys.executable, "-S", "-c", body], timeout=20)
    if score == 1:
        target = run_program(runner, n=8, batch=4).targets["target"]
        assert (target.items_run, target.estimate.score, target.cost) == (8, 1.0, 8)
        return
    then = "score 0" if score == 0 else "error '?'"
    found = run_program(runner, n=8, batch=4)
    assert found.targets["target"].estimate.score == 1.0
    said = f"two answers: score 1, then {then}. The first counts"
    assert any(said in note for note in found.notes)


def test_an_item_without_a_score_in_a_table_of_answers_is_skipped_and_named():
    """As logs of a harness are taken; a row that is empty is a try like any other."""
    (name,), tries = NEW.model_ids, []
    bad = Evaluation(SOURCES, "random", 8, [name]).ask()[name][2]

    class Tables(Runner):
        name = "tables"

        def answer(self, target, items):
            tries.extend(item for item in items if item == bad)
            table = NEW.take(items=NEW.positions(items))
            values = np.where(table.item_ids == bad, np.nan, table.values)
            return Answered() if list(items) == [bad] else Answered(table.changed(values=values))

    found = run_with(Tables(), SOURCES, "random", 8, targets=[name]).targets[name]
    assert (found.items_run, found.failed) == (7, {bad: "no answer and no reason given"})
    assert len(tries) == 3
