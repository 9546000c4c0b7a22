"""The best of several models of every runner: each model runs on in turn, one loaded at a time."""

import importlib.util
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest

import fewbench
from fewbench.decide.best import Search, run_best
from fewbench.errors import RunError
from fewbench.evaluation import Evaluation
from fewbench.runners.driving import Answered, Runner, run_with
from fewbench.runners.each import EachRunner
from fewbench.testing import simulate

QUIZ = Path(__file__).with_name("inspect_quiz.py")
TABLE = simulate(4, 200, seed=3)


class Loading(Runner):
    """A model that must be loaded, and knows how often it was."""

    name = "loading"
    loaded: ClassVar[set[str]] = set()

    def __init__(self, model, items=None):
        self.facts, self.model, self.times = {"model": model}, model, 0
        self.row = TABLE.to_frame().loc[model]
        self.items = items

    def benchmark(self):
        return TABLE.benchmark if self.items is None else TABLE.take(items=self.items).benchmark

    def release(self):
        self.loaded.discard(self.model)

    def answer(self, target, items):
        self.times += self.model not in self.loaded
        self.loaded.add(self.model)
        assert self.loaded == {self.model}
        return Answered(self.row[list(items)].to_dict())


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def search(names, **settings):
    return Search(targets=tuple(names), **settings)


def test_one_model_is_loaded_at_a_time_and_batches_make_loading_pay(tmp_path):
    times = {}
    for batch in (None, 30):
        runners = {name: Loading(name) for name in TABLE.model_ids}
        run = partial(run_with, EachRunner(runners))
        wanted = search(TABLE.model_ids, answers=500, batch=batch)
        found = run_best(run, None, wanted, folder=tmp_path / f"run-{batch}")
        assert found.winners == (max(TABLE.model_ids, key=dict(
            zip(TABLE.model_ids, TABLE.full_scores(), strict=True)).get),)  # fmt: skip
        times[batch] = sum(runner.times for runner in runners.values())
    assert times[30] < times[None]
    facts = [entry.facts for entry in Evaluation.open(tmp_path / "run-30").batches if entry.facts]
    assert [one["model"] for one in facts] == list(TABLE.model_ids)


def test_targets_with_different_items_are_refused(tmp_path):
    runners = {name: Loading(name, range(at + 90)) for at, name in enumerate(TABLE.model_ids)}
    with pytest.raises(RunError, check=lambda error: error.kind == "conflict"):
        run_best(
            partial(run_with, EachRunner(runners)), None, search(TABLE.model_ids, answers=99),
            folder=tmp_path / "run",
        )  # fmt: skip
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not importlib.util.find_spec("inspect_ai"), reason="needs inspect-ai")
@pytest.mark.filterwarnings("ignore:The 'initial' parameter:DeprecationWarning")
def test_models_of_inspect_wait_for_each_other_in_one_eval(tmp_path):
    from fewbench.runners.inspect.runner import run_inspect

    loaded(QUIZ)  # it registers the scripted model
    names = ["scripted/good-18", "scripted/near-16", "scripted/bad-0"]
    words = [f"{QUIZ}@quiz", "--model", ",".join(names)]
    run = partial(run_inspect, arguments=words, quiet=True)
    first = run_best(run, None, search(names, answers=30), folder=tmp_path / "run")
    assert first.answers <= 30
    found = run_best(run, None, search(names, answers=60), folder=tmp_path / "run")
    assert names[2] not in found.winners
    assert first.answers < found.answers <= 60
    assert len({one.items_run for one in found.targets}) > 1


def test_models_of_lm_eval_run_on_in_turn(tmp_path):
    pytest.importorskip("lm_eval", reason="needs the extra lm-eval")
    from fewbench.runners.lm_eval.runner import LmEvalRunner

    made = loaded(Path(__file__).parents[2] / "scripts/make_runs.py")
    made.write_tasks(tmp_path, 24)
    names = made.models(3)
    runners = {
        name: LmEvalRunner(
            ["--include_path", str(tmp_path / "tasks"), "--tasks", "made_choice"],
            models={name: made.scripted(name)},
            folder=tmp_path / "run" / "lm_eval",
        )
        for name in names
    }
    run = partial(run_with, EachRunner(runners))
    found = run_best(run, None, search(names, answers=60), folder=tmp_path / "run")
    assert found.answers <= 60
    assert {one.items_run for one in found.targets} != {8}
    logged = list((tmp_path / "run" / "lm_eval").rglob("results_*.json"))
    assert len(logged) == len(names)


def test_functions_of_one_name_each_and_a_runner_of_all():
    rows = TABLE.to_frame()
    models = {name: rows.loc[name].to_dict().get for name in TABLE.model_ids}
    as_functions = fewbench.best(TABLE.benchmark, models, 300)
    runner = EachRunner({name: Loading(name) for name in TABLE.model_ids})
    as_runner = fewbench.best(TABLE.benchmark, runner, 300, names=TABLE.model_ids)
    assert as_runner.targets == as_functions.targets
