"""Functions, programs and endpoints that answer items."""

import asyncio
import json
import sys
import threading
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

import fewbench
from fewbench.errors import FewbenchError, ModelError, RunError
from fewbench.evaluation import Stop
from fewbench.runners.asking import Patience, Prices
from fewbench.runners.command import CommandRunner
from fewbench.runners.driving import run_with
from fewbench.runners.endpoint import RESPONSES, EndpointRunner
from fewbench.runners.function import FunctionRunner
from fewbench.runners.models.model import Chosen, TooLong, TryAgain, Usage, Written
from fewbench.runners.questions import TEMPLATES
from fewbench.runners.run import Run
from fewbench.scores.table import PROMPTS
from fewbench.testing import simulate

TABLE = simulate(17, 60, 2, seed=5)
SOURCES, NEW = TABLE.take(models=range(16)), TABLE.take(models=[16])
TRUTH = dict(zip(NEW.item_ids.tolist(), NEW.values[0].tolist(), strict=True))
TEXTS = TABLE.items["text"]


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
        ({"answer": None}, "no function"),
        ({"answer": {"other": later}}, "no function answers for 'target'"),
        ({"answer": later, "concurrency": 0}, "concurrency"),
        ({"answer": lambda items: 1.0, "batched": True}, "returned float for a batch"),
        ({"answer": later, "batch": 0}, "batch=0"),
    ):
        with pytest.raises(RunError, match=said):
            fewbench.run(SOURCES, "random", 8, **given)
    found = fewbench.run(SOURCES, "random", 8, lambda items: {}, batched=True)
    assert found.is_failed
    assert "no answer and no reason given" in found.stopped


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
    return run_with(runner, SOURCES, "random", n, **settings)


def test_a_program_answers_lines():
    body = "assert asked['target'] == 'target' and asked['task'].startswith('task-')"
    found = run_program(program(body), batch=4)
    target = found.targets["target"]
    assert (target.items_run, target.cost, target.tokens) == (9, 4.5, 27)
    assert (target.full_cost, target.full_tokens) == (30, 180)
    assert "cost 4.5; the full evaluation would cost about 30" in repr(found)


def test_a_program_that_dies_on_an_item_is_started_again():
    bad = SOURCES.item_ids[0]
    body = f"if item == {bad!r}: os._exit(7)"
    found = run_program(program(body), n=60, batch=20, tries=2)
    target = found.targets["target"]
    assert target.failed == {bad: "the program ended with exit code 7"}
    assert target.items_run == 59
    assert not found.is_failed


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
    for body, said in (
        ("print('loading …', flush=True)", "printed 'loading …', which is no answer"),
        ("item = 'elsewhere'", "answered the item 'elsewhere', which it was not asked"),
        ("print(json.dumps({'item': item, 'cost': -1}), flush=True)", "which is no answer"),
        ("print(json.dumps({'item': item, 'score': 7}), flush=True); continue", r"outside 0\.\.1"),
    ):
        with pytest.raises(FewbenchError, match=said):
            run_program(program(body))
    hanging = CommandRunner(
        [sys.executable, "-S", "-c", "import time; time.sleep(60)"], timeout=0.2
    )
    assert "printed nothing for too long" in run_program(hanging).stopped
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
    then = "score 0" if score == 0 else r"error '\?'"
    with pytest.raises(RunError, match=f"two answers: score 1, then {then}") as found:
        run_program(runner, n=8, batch=4)
    assert "--correct" in found.value.hint


# -- endpoints ---------------------------------------------------------------------------------


class Fake:
    """Knows the answers; `coming` are errors of the next calls."""

    name = "fake"

    def __init__(self, coming=(), text="{}"):
        self.coming, self.asked, self.text = list(coming), [], text

    async def prepare(self, log_probabilities=True):
        return {"scoring": "top"}

    def _item(self, prompt):
        (item,) = [item for item, text in TEXTS.items() if text in prompt]
        if self.coming and (error := self.coming.pop(0)):
            raise error
        self.asked.append(item)
        return item

    async def choose(self, prompt, options):
        assert options == [" A", " B"]
        right = TRUTH[self._item(prompt)]
        return Chosen((-0.1, -2.0) if right else (-2.0, -0.1), Usage(100, 1, 1))

    async def write(self, prompt, stop, most):
        right = TRUTH[self._item(prompt)]
        return Written(self.text.format("A" if right else "B"), Usage(0, 0, 1))

    async def close(self):
        pass


def lines_of(path, **changed):
    lines = [
        {"id": item, "question": text, "options": ["yes", "no"], "answer": "A"} | changed
        for item, text in TEXTS.items()
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.fixture
def items(tmp_path):
    return lines_of(tmp_path / "items.jsonl")


def endpoint(items, model, *more, **settings):
    settings = {"patience": Patience(tries=2, first=0.001, longest=0.001)} | settings
    return EndpointRunner(items, {"target": model}, TEMPLATES["mmlu"], *more, **settings)


def test_multiple_choice_by_log_probabilities_with_costs(items, tmp_path):
    model = Fake()
    runner = endpoint(items, model, prices=Prices(1e4, 0), log=tmp_path / "run")
    overview = runner.overview(SOURCES, Stop(items=9))
    assert "to run: 9 items, about" in overview
    assert "full evaluation: 60 items, about" in overview
    assert TEXTS.iloc[0] in overview
    found = run_with(runner, SOURCES, "random", 9, folder=tmp_path / "run")
    target = found.targets["target"]
    assert (target.cost, target.tokens, target.items_run) == (9.0, 909, 9)
    plain = fewbench.run(SOURCES, "random", 9, TRUTH.get)
    assert target.estimate == plain.targets["target"].estimate
    kept = [json.loads(line) for line in (tmp_path / "run" / RESPONSES).open()]
    assert {one["item"] for one in kept} == set(model.asked)


@pytest.mark.parametrize(
    ("metric", "text", "pattern"),
    [
        ("letter", "I think that the answer is ({}).", None),
        ("letter", "{}", None),
        ("exact-match", "thinking A B … Final: {}.", r"Final: (\w)"),
        ("exact-match", " {} ", None),
    ],
)
def test_written_answers(tmp_path, metric, text, pattern):
    options = ["yes", "no"] if metric == "letter" else None
    path = lines_of(tmp_path / "items.jsonl", options=options)
    runner = endpoint(path, Fake(text=text), metric, pattern=pattern)
    found = run_with(runner, SOURCES, "random", 20)
    plain = fewbench.run(SOURCES, "random", 20, TRUTH.get)
    assert found.targets["target"].estimate == plain.targets["target"].estimate
    assert found.targets["target"].tokens > 100  # estimated, as the server counts none


def test_trouble_with_an_endpoint(items, tmp_path):
    again = [TryAgain("busy"), None, TryAgain("busy"), TooLong()]
    found = run_with(endpoint(items, Fake(again)), SOURCES, "random", 20, tries=1)
    (why,) = found.targets["target"].failed.values()
    assert why == "the prompt does not fit into the model's context"
    assert found.targets["target"].items_run == 19
    model = Fake([ModelError("no permission")])
    with pytest.raises(ModelError, match="no permission"):
        run_with(endpoint(items, model, concurrency=1), SOURCES, "random", 20)
    model = Fake([None] * 6 + [ModelError("no money left")])
    given = {"folder": tmp_path / "run", "batch": 4}
    log = {"log": tmp_path / "run", "concurrency": 1}
    found = run_with(endpoint(items, model, **log), SOURCES, "random", 20, **given)
    assert found.is_failed
    assert "no money left" in found.stopped
    assert found.targets["target"].items_run == 6
    found = run_with(endpoint(items, model, **log), SOURCES, "random", 20, **given)
    assert found.targets["target"].items_run == len(model.asked) == 20  # none twice


def test_items_that_are_not_those_of_the_scores_are_refused_before_anything_is_asked(tmp_path):
    path = tmp_path / "items.jsonl"

    def lines(change):
        lines_of(path)
        return [change(dict(json.loads(line))) for line in path.read_text().splitlines()]

    def first(**changed):
        def change(line):
            return line | changed if line["id"] == "item-0" else line

        return lines(change)

    cases = {
        "1 item of 60 are missing: 'item-0'; its other ids are such as 'q0'": first(id="q0"),
        "60 items of 60 are missing": lines(lambda line: line | {"task": "other"}),
        "'item-0' appears twice": [*first(), first()[0]],
        "metric accuracy, but 1 item with no options: 'item-0'": first(options=None),
        "1 item of 60 with another text than in the scores": first(question="What?"),
        "line 1: give either a question or a prompt": first(prompt="What?"),
        "unknown field 'choices'": first(choices=["a"]),
        "the answer 'C' is none of the 2 options": first(answer="C"),
    }
    for said, case in cases.items():
        path.write_text("\n".join(map(json.dumps, case)))
        model = Fake()
        with pytest.raises(FewbenchError) as error:
            run_with(endpoint(path, model), SOURCES, "random", 9)
        assert said in str(error.value)
        assert not model.asked
    for settings, said in (({"pattern": "("}, "pattern"), ({"concurrency": 0}, "concurrency")):
        with pytest.raises(RunError, match=said):
            endpoint(path, Fake(), "letter", **settings)


def test_other_prompts_than_those_of_the_sources_are_refused_or_flagged(items):
    prompts = {item: f"Please answer.\n{text}" for item, text in TEXTS.items()}
    hashes = [sha256(prompts[item].encode()).hexdigest() for item in TEXTS.index]
    hashed = replace(SOURCES, items=SOURCES.items.assign(**{PROMPTS: hashes}))
    with pytest.raises(
        RunError, match=r"prompts differ from the source models'.*accept-differences"
    ):
        run_with(endpoint(items, Fake()), hashed, "random", 9)
    runner = endpoint(items, Fake(), accept_differences=True)
    found = run_with(runner, hashed, "random", 9, accept_differences=True)
    assert any("another prompt" in one for one in found.targets["target"].estimate.warnings)
    lines = [
        {"id": item, "prompt": prompt, "options": ["yes", "no"], "answer": 0}
        for item, prompt in prompts.items()
    ]
    items.write_text("\n".join(map(json.dumps, lines)))
    found = run_with(endpoint(items, Fake()), hashed, "random", 9)
    assert not any("prompts" in one for one in found.targets["target"].estimate.warnings)


def test_option_probabilities_reach_the_method(tmp_path):
    table = simulate(25, 40, 2, options=2, seed=3)
    items = tmp_path / "items.jsonl"
    lines = [
        {"id": item, "prompt": TEXTS.iloc[at], "options": ["yes", "no"], "answer": "A"}
        for at, item in enumerate(table.item_ids)
    ]
    items.write_text("\n".join(map(json.dumps, lines)))
    sources = replace(table.take(models=range(24)), items=table.items.drop(columns="text"))
    with Run.open(sources, "random", Stop(items=9)) as run:
        runner = endpoint(items, Fake())
        runner.prepare(sources, ["target"])
        asked = run.next("target")
        found = runner.answer("target", asked)
        run.take("target", found.answers, probabilities=found.probabilities)
        told = run.evaluation.record.answers("target").probabilities
    runner.close()
    assert np.allclose(np.sort(told[0], axis=1), [[0.13, 0.87]], atol=0.01)
