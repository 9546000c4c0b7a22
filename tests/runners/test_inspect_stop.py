"""Early stopping of a user's own task in the real Inspect, with its mock model."""

import importlib.util
import random

import numpy as np
import pytest

from fewbench.evaluation import Evaluation, Stop

pytestmark = [
    pytest.mark.skipif(not importlib.util.find_spec("inspect_ai"), reason="needs inspect-ai"),
    # Of tenacity, as Inspect 0.3.285 uses it.
    pytest.mark.filterwarnings("ignore:The 'initial' parameter:DeprecationWarning"),
]
N = 80


def evaluate(folder, stop, *, is_shuffled=True, fails=(), **settings):
    """Run a task in which every fourth question is hard; return its log."""
    import inspect_ai
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.scorer import Score, accuracy, scorer
    from inspect_ai.solver import solver

    @scorer(metrics=[accuracy()], name="own_score")
    def scored():
        async def score(state, target):
            return Score(value=state.output.completion == "yes")

        return score

    @solver
    def answer():
        async def solve(state, generate):
            if state.sample_id in fails:
                raise RuntimeError("the service is down")
            state.output.completion = "no" if state.sample_id % 4 == 0 else "yes"
            return state

        return solve

    groups = ("easy", "hard")
    data = MemoryDataset(
        [Sample(id=n, input="?", metadata={"group": groups[n % 4 == 0]}) for n in range(N)]
    )
    if is_shuffled:
        data.shuffle(seed=2)
    task = inspect_ai.Task(data, solver=answer(), scorer=scored(), early_stopping=stop)
    given = {"model": "mockllm/model", "log_dir": str(folder), "display": "none"} | settings
    (log,) = inspect_ai.eval(task, **given)
    return log


def shuffled():
    """The order in which Inspect runs the samples."""
    order = list(range(N))
    random.Random(2).shuffle(order)
    return order


def test_a_task_ends_when_its_interval_is_narrow(tmp_path):
    from fewbench.inspect import EarlyStopping

    stop = EarlyStopping(0.14, group="group", folder=tmp_path / "run")
    log = evaluate(tmp_path, stop, max_samples=25)
    assert log.status == "success", log.error
    found = log.results.early_stopping.metadata
    ran = [sample.id for sample in log.samples]
    assert len(ran) == found["items_run"] < N == found["items_total"]
    assert len(log.results.early_stopping.early_stops) == N - len(ran)
    assert found["score"] == pytest.approx(np.mean([n % 4 != 0 for n in ran]), abs=0.03)
    assert found["low"] <= 0.75 <= found["high"]
    assert (found["high"] - found["low"]) / 2 <= 0.14
    # The first samples of the random order ran, and the folder gives the same estimate.
    order = shuffled()
    assert sorted(ran) == sorted(order[: len(ran)])
    saved = Evaluation.open(tmp_path / "run").estimate()["mockllm/model"]
    assert saved.score == found["score"] == stop.estimate.score
    assert set(saved.tasks) == {"easy", "hard"}
    assert saved.interval_kind == "exact"  # of a random sample
    assert saved.warnings == ()


def test_epochs_and_failed_samples(tmp_path):
    from fewbench.inspect import EarlyStopping

    stop = EarlyStopping(Stop(half_width=0.01, items=20))
    order = shuffled()
    fails = order[3], order[19]
    log = evaluate(tmp_path, stop, epochs=2, fails=fails, fail_on_error=False, max_samples=100)
    assert log.status == "success", log.error
    assert {sample.id for sample in log.samples} == set(order[:20])
    answers = stop.evaluation.record.answers("mockllm/model")
    assert answers.counts.tolist() == [[2] * 18]
    assert any("skipped" in warning for warning in stop.estimate.warnings)


@pytest.mark.parametrize(
    ("stop", "settings", "message"),
    [
        ({}, {"is_shuffled": False}, "not in random order"),
        ({}, {"limit": 5}, "--limit and --sample-id cannot be used"),
        ({"metric": "match"}, {}, "no 'match'; its scorers give 'own_score'"),
        ({"group": "topic"}, {}, "has no 'topic' in its metadata"),
    ],
)
def test_what_cannot_be_estimated_is_an_error(stop, settings, message, tmp_path):
    from fewbench.inspect import EarlyStopping

    log = evaluate(tmp_path, EarlyStopping(0.1, **stop), **settings)
    assert log.status == "error"
    assert message in log.error.message
    assert not log.samples
