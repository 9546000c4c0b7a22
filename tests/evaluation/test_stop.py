"""Stop rules: a number of items, the width of the interval, or a cost."""

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from fewbench.errors import EvaluationError, MethodError, ScoresError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.opening import Stop
from fewbench.testing import simulate


@pytest.fixture(scope="module")
def table():
    return simulate(22, 400, seed=3)


@pytest.fixture(scope="module")
def sources(table):
    return table.take(models=np.arange(20))


@pytest.fixture(scope="module")
def targets(table):
    return table.take(models=[20, 21])


def answer(evaluation, targets):
    """Answer all that is asked; return how often each target was asked."""
    rounds = dict.fromkeys(evaluation.targets, 0)
    while asked := evaluation.ask():
        for name, items in asked.items():
            row = targets.take(models=targets.model_positions([name]))
            evaluation.tell_table(row.take(items=targets.positions(items)), name)
            rounds[name] += 1
    return rounds


def test_items_are_a_budget(sources):
    one = Evaluation(sources, "random-ridge", 9, ["new"])
    other = Evaluation(sources, "random-ridge", targets=["new"], stop=Stop(items=9))
    assert other.ask() == one.ask()
    assert len(one.ask()["new"]) == 9


def test_a_narrow_interval_ends_the_run(sources, targets, tmp_path):
    stop = Stop(half_width=0.08)
    evaluation = Evaluation(sources, "random", targets=targets.model_ids, stop=stop)
    evaluation.save(tmp_path)
    batch = len(evaluation.ask()[targets.model_ids[0]])
    rounds = answer(evaluation, targets)
    assert evaluation.finished() == list(targets.model_ids)
    for name, said in evaluation.estimate().items():
        assert rounds[name] > 1
        assert (said.interval.high - said.interval.low) / 2 <= 0.08
        assert said.items_run < 400
        assert not any("items answered" in one for one in said.warnings)
        fewer = evaluation.record.answered(name)[:-batch]  # one batch less was not enough
        less = Evaluation(sources, "random", targets=[name], stop=stop)
        less.ask()
        row = targets.take(models=targets.model_positions([name]))
        less.tell_table(row.take(items=fewer), name)
        ends = less.estimate()[name].interval
        assert (ends.high - ends.low) / 2 > 0.08
        assert any("the interval's width decides" in one for one in less.estimate()[name].warnings)
    assert Evaluation.open(tmp_path, sources).ask() == {}


def test_a_wide_interval_ends_with_the_items(sources, targets):
    stop = Stop(items=50, half_width=0.001)
    evaluation = Evaluation(sources, "random", targets=["model-20"], stop=stop)
    answer(evaluation, targets)
    assert evaluation.estimate()["model-20"].items_run == 50


@pytest.mark.parametrize("method", ["random", "flash-helm"])
def test_a_cost_is_never_exceeded(sources, targets, method):
    costs = np.random.default_rng(0).integers(1, 9, 400).astype(float)
    priced = replace(sources, items=sources.items.assign(cost=costs))
    stop = Stop(cost=100)
    evaluation = Evaluation(priced, method, targets=targets.model_ids, stop=stop)
    answer(evaluation, targets)
    assert evaluation.finished() == list(targets.model_ids)
    for name in targets.model_ids:
        record = evaluation.record
        spent = costs[record.answered(name)].sum()
        assert spent <= 100
        left = record.open(name)
        if len(left):
            assert spent + costs[left[0]] > 100
    assert 20 - 10 < len(record.answered(name)) < 20 + 10


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ({}, "no column 'cost'.*--items FILE"),
        ({"Cost": 1.0}, "no column 'cost'.*did you mean Cost"),
        ({"cost": [-1.0] + [1.0] * 399}, "1 item without a cost of 0 or more in .*: 'item-0"),
        ({"cost": ["dear"] + [1.0] * 399}, "1 item without a cost"),
        ({"cost": [np.inf, np.nan] + [1.0] * 398}, "2 items without a cost"),
        ({"cost": 0.0}, "all items cost 0"),
    ],
)
def test_costs_that_are_missing(sources, costs, said):
    priced = replace(sources, items=sources.items.assign(**costs))
    with pytest.raises(ScoresError, match=said):
        Evaluation(priced, "random", stop=Stop(cost=5))


def test_what_cannot_be_a_stop(sources):
    with pytest.raises(ValidationError):
        Stop()
    with pytest.raises(EvaluationError, match="one of budget and stop is needed"):
        Evaluation(sources, "random")
    with pytest.raises(EvaluationError, match="one of budget and stop is needed"):
        Evaluation(sources, "random", 5, stop=Stop(items=5))
    with pytest.raises(MethodError, match="needs a number of items"):
        Evaluation(sources, "kmedoids-ridge", stop=Stop(half_width=0.1))
