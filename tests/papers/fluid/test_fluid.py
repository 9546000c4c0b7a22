"""Fluid benchmarking as a method: what it asks next, when it stops, what it makes of answers."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from fewbench.methods import Answers, find_method
from fewbench.scores import from_arrays
from fewbench.study.inference import expected_random_mae
from fewbench.testing import simulate
from fewbench.testing.conformance import Settings, play
from fewbench.uncertainty.replay import replay
from fewbench_papers.fluid.fluid import Fluid, _mean_off
from fewbench_papers.tinybenchmarks.item_response import source_model

PRINTED = {"random": 0.0, "estimate": "answers"}  # items and answers as in the paper
OPTIONS = [
    "fluid(random=0.0,estimate=answers)",
    "fluid(random=0.2,step=3)",
    "fluid(step=2,until=0.5)",
]


class TestOptions(Settings):
    estimates = False

    @pytest.fixture(params=OPTIONS)
    def method(self, request):
        return find_method(request.param)


def tables(n_targets=4, n_sources=30, **kind):
    table = simulate(n_sources + n_targets, 60, **kind)
    rows = np.arange(n_sources + n_targets)
    return table.take(models=rows[:n_sources]), table.take(models=rows[n_sources:])


def tell(session, targets, name, items):
    session.tell(name, Answers(items, targets.values[[targets.model_ids.index(name)]][:, items]))


def run(method, sources, targets, budget, seed=0):
    """Return the session at its end and the sizes of what was asked of the first target."""
    session = method.start(sources, budget, seed, targets.model_ids)
    sizes = []
    while wanted := session.ask():
        sizes.append(len(wanted.get(targets.model_ids[0], ())))
        for name, items in wanted.items():
            tell(session, targets, name, items)
    return session, sizes


@pytest.mark.parametrize("continuous", [False, True])
def test_as_the_paper_writes_it(continuous):
    """One item after another, the ability by a search, the information by its definition."""
    sources, targets = tables(continuous=continuous)
    fitted = source_model(sources, 1)
    a, b = fitted.model.discrimination[:, 0], fitted.model.intercept
    method = Fluid(random=0, estimate="expected")
    played = play(method, sources, targets, 15, tasks=True)
    for row, name in enumerate(targets.model_ids):
        right = targets.values[row] > fitted.cuts
        theta, asked = 0.0, []
        for _ in range(15):
            chance = 1 / (1 + np.exp(-(a * theta + b)))
            asked.append(
                max(
                    set(range(60)) - set(asked),
                    key=lambda i: a[i] ** 2 * chance[i] * (1 - chance[i]),
                )
            )
            sign = np.where(right[asked], 1, -1)

            def loss(x, own=asked, sign=sign):
                return np.log1p(np.exp(-sign * (a[own] * x + b[own]))).sum() + x**2 / 2

            theta = minimize_scalar(loss, bounds=(-5, 5), options={"xatol": 1e-9}).x
        assert played.asked[name].tolist() == asked
        expected = 1 / (1 + np.exp(-(a * theta + b)))
        assert played.prediction.scores[row] == pytest.approx(expected.mean(), abs=1e-5)
        assert played.prediction.tasks[row] == pytest.approx(
            [expected[sources.task_of == task].mean() for task in range(len(sources.tasks))],
            abs=1e-5,
        )


def test_how_many_at_a_time():
    sources, targets = tables()
    assert run(Fluid(), sources, targets, 10)[1] == [5, 1, 1, 1, 1, 1]
    assert run(Fluid(random=0.3, step=4), sources, targets, 20)[1] == [6, 4, 4, 4, 2]
    assert run(Fluid(random=1), sources, targets, 10)[1] == [10]
    assert run(Fluid(random=0), sources, targets, 5)[1] == [1] * 5
    assert run(Fluid(random=0, step=4), sources, targets, 10)[1] == [4, 4, 2]
    assert run(Fluid(random=0, step=80), sources, targets, 10)[1] == [10]


def test_stops_when_the_ability_is_known_well_enough():
    sources, targets = tables(n_targets=8, n_sources=60)
    method = Fluid(until=0.4)
    assert (method.whole_budget, Fluid().whole_budget) == (False, True)
    session = method.start(sources, 60, 0, targets.model_ids)
    stopped = {}
    while wanted := session.ask():
        for name, items in wanted.items():
            assert name not in stopped
            tell(session, targets, name, items)
            _, (error,) = session.abilities([name])
            if error <= 0.4:
                stopped[name] = error
    assert set(stopped) == set(targets.model_ids)
    whole = replay(Fluid(), sources, targets, 60, 0).items
    early = replay(method, sources, targets, 60, 0).items
    for long, short in zip(whole, early, strict=True):
        assert 0 < len(short) < 60
        assert long[: len(short)].tolist() == short.tolist()


def test_answers_count_for_themselves_unless_expected_scores_are_wanted():
    sources, targets = tables(n_tasks=3)
    sources, targets = sources.averaged("macro"), targets.averaged("macro")
    names = targets.model_ids
    told, asked = {}, {}
    for estimate in ("corrected", "answers", "expected"):
        session, _ = run(Fluid(estimate=estimate), sources, targets, 20)
        told[estimate] = session.predict(names)
        asked[estimate] = {name: session.record.asked(name) for name in names}
    for estimate in ("answers", "expected"):
        np.testing.assert_allclose(
            told[estimate].items @ sources.item_weights, told[estimate].scores
        )
    weights = sources.item_weights
    for row, name in enumerate(names):
        items = asked["answers"][name]
        assert items.tolist() == asked["expected"][name].tolist()
        left = np.setdiff1d(np.arange(60), items)
        one, other = (told[estimate].items[row] for estimate in ("answers", "expected"))
        assert one[items].tolist() == targets.values[row, items].tolist()
        assert ((other[items] > 0) & (other[items] < 1)).all()
        assert one[left].tolist() == other[left].tolist()
        corrected, own = one.copy(), weights[items]
        corrected[left] += _mean_off(one[items], other[items], own, 10)
        assert told["corrected"].scores[row] == pytest.approx(corrected @ weights)
        np.testing.assert_allclose(
            told["corrected"].tasks[row], sources.task_means(corrected[None])[0]
        )


def test_the_correction_is_the_mean_residual_taken_cautiously():
    answers, expected = np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.5, 0.25, 0.75, 0.5])
    assert _mean_off(answers, expected, np.ones(4), 0) == pytest.approx(0.25 * 4 / 24)
    weights = np.array([3.0, 1.0, 1.0, 1.0])  # as sure as 3 equal answers
    off = (3 * 0.5 - 0.25 + 0.25 + 0.5) / 6
    assert _mean_off(answers, expected, weights, 0) == pytest.approx(off * 3 / 23)
    assert _mean_off(answers[:0], expected[:0], weights[:0], 0) == 0


def test_random_items_outvote_the_others_where_chance_does_not_explain_the_gap():
    even, half = np.ones(80), np.full(80, 0.5)
    shown = np.concatenate([np.ones(40), half[40:]])
    gap, variance = 0.25, 0.25 / 40
    off = 0.25 * 80 / 100
    assert _mean_off(shown, half, even, 40) == pytest.approx(
        off + gap * (1 - 2 * variance / gap**2)
    )
    by_chance = np.concatenate([np.ones(20), np.zeros(18), half[38:]])
    assert _mean_off(by_chance, half, even, 40) == pytest.approx(0.0125 * 80 / 100)
    few = np.array([1.0, 1.0, 0.6, 0.6])  # both right: no variance, and yet not sure
    assert _mean_off(few, np.full(4, 0.6), np.ones(4), 2) == pytest.approx(0.2 * 4 / 24)


def test_what_one_ability_does_not_say_does_not_mislead():
    """Items that tell the sources apart say nothing of what the targets are better at."""
    rng = np.random.default_rng(0)
    ability = rng.normal(0, 2, 60)[:, None]
    telling = rng.random((60, 100)) < 1 / (1 + np.exp(rng.normal(0, 1, 100) - ability))
    answers = np.hstack([telling, rng.random((60, 200)) < 0.5]).astype(float)
    sources = from_arrays(answers, models=[f"past-{row}" for row in range(60)])
    answers = np.hstack([telling[:30], rng.random((30, 200)) < 0.9]).astype(float)
    targets = from_arrays(answers, models=[f"new-{row}" for row in range(30)])
    truth = targets.full_scores()

    def against_random(method, budget):
        said = replay(method, sources, targets, budget, 0).scores
        return np.abs(said - truth).mean() / expected_random_mae(targets, budget).mean()

    for budget in (10, 30, 80):
        assert against_random(Fluid(), budget) < 2.5
    assert against_random(Fluid(**PRINTED), 80) > 6
