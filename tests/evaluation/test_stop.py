"""Stop rules: a number of items, the width of the interval, or a cost."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from fewbench.errors import EvaluationError, FieldError, MethodError, ScoresError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.opening import Stop
from fewbench.methods import Answers, find_method
from fewbench.scores import Benchmark, Scale
from fewbench.scores.roles import as_sources
from fewbench.testing import simulate
from fewbench.uncertainty.held_out import no_errors
from fewbench.uncertainty.intervals import Scored
from fewbench.uncertainty.judge import Judge
from fewbench.uncertainty.sampling import exact_interval


@pytest.fixture(scope="module")
def table():
    return simulate(22, 400, seed=3)


def answer(evaluation, targets):
    """Answer all that is asked; return how often each target was asked."""
    rounds = dict.fromkeys(evaluation.targets, 0)
    while asked := evaluation.ask():
        for name, items in asked.items():
            row = targets.take(models=targets.model_positions([name]))
            evaluation.tell_table(row.take(items=targets.positions(items)), name)
            rounds[name] += 1
    return rounds


def test_a_narrow_interval_ends_the_run(sources, targets, tmp_path):
    stop = Stop(half_width=0.08)
    evaluation = Evaluation(sources, "random", targets=targets.model_ids, stop=stop)
    evaluation.save(tmp_path)
    rounds = answer(evaluation, targets)
    assert evaluation.finished() == list(targets.model_ids)
    for name, said in evaluation.estimate().items():
        assert rounds[name] > 1
        assert (said.interval.high - said.interval.low) / 2 <= 0.08 + 1e-9
        assert said.items_run < 400
        assert not any("items answered" in one for one in said.warnings)
        n = said.items_run
        batch = 10 if n < 110 else round(n / 11)  # a tenth of those answered before
        fewer = evaluation.record.answered(name)[:-batch]  # one batch less was not enough
        less = Evaluation(sources, "random", targets=[name], stop=stop)
        less.ask()
        row = targets.take(models=targets.model_positions([name]))
        less.tell_table(row.take(items=fewer), name)
        assert not less.is_narrow(name)
        assert any("the interval's width decides" in one for one in less.estimate()[name].warnings)
    assert Evaluation.open(tmp_path, sources).ask() == {}


def test_a_width_ends_no_run_before_ten_answers(targets):
    """Constants.md says so: with fewer, an interval is narrow by chance."""
    evaluation = Evaluation(
        targets.benchmark, "random", targets=["model-20"], stop=Stop(half_width=0.45)
    )
    ended = []
    while not ended or not ended[-1]:
        (item,) = evaluation.ask(at_most=1)["model-20"]
        evaluation.tell("model-20", {item: 1.0})
        ended.append(evaluation.is_narrow("model-20"))
    assert ended == [False] * 9 + [True]


def test_a_half_width_is_on_the_scale_of_the_scores(sources, targets):
    """Marks from 0 to 10: half a mark ends a run where .05 ends that of shares."""
    answered = []
    for high in (1, 10):
        scale = Scale(0, high)
        evaluation = Evaluation(
            replace(sources, scale=scale), "random", targets=["model-20"],
            stop=Stop(half_width=0.05 * high),
        )  # fmt: skip
        answer(evaluation, replace(targets, scale=scale))
        answered.append(evaluation.record.answered("model-20").tolist())
        assert evaluation.is_narrow("model-20")
    assert answered[0] == answered[1]
    assert len(answered[0]) < 400


def test_a_wide_interval_ends_with_the_items(sources, targets):
    stop = Stop(items=50, half_width=0.001)
    evaluation = Evaluation(sources, "random", targets=["model-20"], stop=stop)
    answer(evaluation, targets)
    one = evaluation.estimate()["model-20"]
    assert one.items_run == 50
    plain = exact_interval(one.answers_right, 50, 400, 0.9)
    assert (one.interval.low, one.interval.high) == plain  # the looks cost no width


@pytest.mark.parametrize(
    ("n_items", "most", "half_width", "step"),
    [(150, 100, 0.08, 0), (1000, 80, 0.1, 0), (400, 60, 0.12, 1)],
)
def test_a_run_that_its_width_ends_covers_every_score(n_items, most, half_width, step):
    """The exact coverage: the distribution of right answers over all looks, for many scores."""
    benchmark = Benchmark(pd.DataFrame({"task": "all"}, [f"i{at}" for at in range(n_items)]))
    judge = Judge(
        find_method("random"),
        as_sources(benchmark),
        most,
        lambda _: no_errors([most], 1),
        half_width,
    )
    right = np.round(np.linspace(0.02, 0.98, 41) * n_items)
    chances = np.zeros((len(right), most + 1))  # of numbers of right answers in runs still going
    chances[:, 0] = 1
    covered, answered, next_look = np.zeros(len(right)), np.zeros(len(right)), 10
    for n in range(1, most + 1):
        hit = np.clip((right[:, None] - np.arange(most + 1)) / (n_items - n + 1), 0, 1)
        chances = chances * (1 - hit) + np.roll(chances * hit, 1, axis=1)
        if n < min(next_look, most):
            continue
        next_look += step or max(10, round(0.1 * n))
        for hits in np.flatnonzero(chances.max(axis=0) > 1e-9):
            answers = Answers(np.arange(n), (np.arange(n)[None] < hits).astype(float))
            one = Scored(answers, np.full(2, hits / n))
            uncertainty = judge.uncertainty(one)
            if n < most and not uncertainty.ends_run:
                continue
            low, high = uncertainty.interval(0.9)
            inside = (low - 1e-9 <= right / n_items) & (right / n_items <= high + 1e-9)
            covered += chances[:, hits] * inside
            answered += chances[:, hits] * n
            chances[:, hits] = 0
    assert covered.min() > 0.89
    assert covered.mean() > 0.93
    halves = {n: np.diff(exact_interval(n // 2, n, n_items, 0.9))[0] / 2 for n in range(10, most)}
    fixed = next((n for n, half in halves.items() if half <= half_width), most)
    assert answered.max() < 1.25 * fixed  # not twice as many, as if all looks were at any time


@pytest.mark.parametrize("method", ["random", "fluid"])
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
        assert 5 < len(record.answered(name)) < 20 + 12
        cost = evaluation.estimate()[name].cost
        assert (cost.spent, cost.full, cost.is_limit) == (spent, costs.sum(), len(left) > 0)
        assert len(left) > 0 or not evaluation.method.extends  # else more could be run


@pytest.mark.parametrize(
    ("method", "n_sources"), [("random", 20), ("fewbench", 0), ("fewbench", 20)]
)
def test_a_larger_cost_goes_on_with_all_answers(targets, table, tmp_path, method, n_sources):
    """Estimates of a sample are then those of an evaluation that had that cost from the start."""
    costs = np.random.default_rng(0).integers(1, 9, 400).astype(float)
    sources = table.take(models=range(n_sources))
    priced = replace(sources, items=sources.items.assign(cost=costs))
    name = targets.model_ids[0]
    settings = {"method": method, "targets": [name]}
    whole = Evaluation(priced, **settings, stop=Stop(cost=200))
    answer(whole, targets)
    evaluation = Evaluation(priced, **settings, stop=Stop(cost=60, unit="$"))
    evaluation.save(tmp_path)
    for cost in (120, 200):
        answer(evaluation, targets)
        before = evaluation.record.answered(name).tolist()
        assert evaluation.cost(name).is_limit
        evaluation = Evaluation.open(tmp_path, priced, stop=Stop(cost=cost))
        assert evaluation.record.answered(name).tolist() == before
    answer(evaluation, targets)
    assert evaluation.record.answered(name).tolist()[: len(before)] == before
    reopened = Evaluation.open(tmp_path, priced)
    assert reopened.stop == Stop(cost=200, unit="$")
    found, wanted = (each.estimate()[name] for each in (reopened, whole))
    assert found.interval == evaluation.estimate()[name].interval
    assert 150 < found.cost.spent <= 200
    if method == "random" or not n_sources:
        assert (found.interval, found.items_run) == (wanted.interval, wanted.items_run)
    assert Evaluation.open(tmp_path, priced, stop=Stop(cost=20)).ask() == {}
    with pytest.raises(EvaluationError, match="20 items"):
        Evaluation.open(tmp_path, priced, stop=Stop(items=20))
    if n_sources:  # of items that were chosen for a limit, a larger one allows no others
        fixed = Evaluation(priced, "kmedoids-ridge", targets=[name], stop=Stop(cost=60))
        answer(fixed, targets)
        said = str(fixed.cost(name).model_copy(update={"is_limit": True}))
        assert said.endswith("chosen for this limit: for more, use another folder.")
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "unsupported"):
        Evaluation.open(tmp_path, priced, stop=Stop(tokens=20))


def test_a_run_that_a_cost_ends_estimates_without_bias():
    """Expensive items are wrong; a cheaper item in place of one too expensive would be right."""
    rng = np.random.default_rng(0)
    costs = rng.lognormal(0, 0.8, 60)
    items = pd.DataFrame({"task": "all", "cost": costs}, [f"i{at}" for at in range(60)])
    truth = (costs < np.median(costs)).astype(float)
    means, cheaper = [], []
    for seed in range(400):
        stop = Stop(cost=5 * costs.mean())
        evaluation = Evaluation(Benchmark(items), "random", seed=seed, stop=stop)
        while asked := evaluation.ask():
            evaluation.tell("target", {item: truth[int(item[1:])] for item in asked["target"]})
        order = evaluation.record.asked("target")
        answered = evaluation.record.answered("target")
        means.append(truth[answered].mean())
        spent, replaced = 0.0, []
        for item in order:
            if spent + costs[item] <= stop.cost:
                spent, replaced = spent + costs[item], [*replaced, item]
        cheaper.append(truth[replaced].mean())
    error = np.std(means) / 20
    assert abs(np.mean(means) - truth.mean()) < 2.5 * error
    assert np.mean(cheaper) - truth.mean() > 4 * error


@pytest.mark.parametrize(
    ("cost", "number", "unit"),
    [
        ("75", 75, ""),
        ("75 $", 75, "$"),
        ("$7.5", 7.5, "$"),
        ("90s", 90, "s"),
        ("1.5k $", 1500, "$"),
        ("2k", 2000, ""),
        (75, 75, ""),
    ],
)
def test_a_cost_may_name_its_unit(cost, number, unit):
    stop = Stop.model_validate({"cost": cost})
    assert (stop.cost, stop.unit) == (number, unit)


@pytest.mark.parametrize("cost", ["cheap", "$", "7 5", "-3", "1.2.3 $"])
def test_what_is_no_cost(cost):
    with pytest.raises(ValidationError):
        Stop.model_validate({"cost": cost})


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ({}, "no column 'cost'.*--items FILE"),
        ({"Cost": 1.0}, "no column 'cost'.*did you mean Cost"),
        ({"cost": [-1.0] + [1.0] * 399}, "1 item without a cost of 0 or more in .*: 'item-0"),
        ({"cost": ["dear"] + [1.0] * 399}, "1 item without a cost"),
        ({"cost": [np.inf, np.nan] + [1.0] * 398}, "2 items without a cost"),
        ({"cost": [1e308, 5e-324] + [1.0] * 398}, "2 items without a cost.*at most 1e\\+100"),
        ({"cost": 0.0}, "all items cost 0"),
    ],
)
def test_costs_that_are_missing(sources, costs, said):
    priced = replace(sources, items=sources.items.assign(**costs))
    with pytest.raises(ScoresError, match=said):
        Evaluation(priced, "random", stop=Stop(cost=5))


def test_what_cannot_be_a_stop(sources):
    with pytest.raises(FieldError, match="half_width"):
        Stop()
    with pytest.raises(FieldError, match=r"^Stop: cost: Input should be greater than 0$"):
        Stop(cost=-1)
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "conflict"):
        Evaluation(sources, "random")
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "conflict"):
        Evaluation(sources, "random", 5, stop=Stop(items=5))
    with pytest.raises(MethodError, check=lambda error: error.kind == "missing"):
        Evaluation(sources, "kmedoids-ridge", stop=Stop(half_width=0.1))
