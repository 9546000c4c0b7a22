"""Fluid benchmarking as a method: what it asks next, when it stops, what it makes of answers."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from fewbench.errors import MethodError
from fewbench.evaluation import Evaluation
from fewbench.methods import Answers, find_method
from fewbench.methods.adaptive.fluid import Fluid, _mean_off
from fewbench.methods.item_response import source_model
from fewbench.scores import from_arrays
from fewbench.study.inference import expected_random_mae
from fewbench.testing import simulate
from fewbench.testing.conformance import Settings, play
from fewbench.uncertainty.replay import replay

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


def test_written_out_and_read_again():
    assert find_method("fluid").describe() == "fluid"
    for text in OPTIONS:
        assert find_method(text).describe() == text


@pytest.mark.parametrize(
    "wrong",
    [{"step": 0}, {"until": 0.0}, {"until": 2.0}, {"until": np.nan}],
)
def test_settings_out_of_range(wrong):
    (name,) = wrong
    with pytest.raises(MethodError, match=f"{name} is"):
        Fluid(**wrong).start(*tables()[:1], 5, 0, ["new"])


def test_words_that_mean_nothing():
    with pytest.raises(MethodError):
        Fluid(estimate="mean").start(*tables()[:1], 5, 0, ["new"])


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


def test_all_begin_alike_and_then_go_their_ways():
    sources, targets = tables(n_targets=8)
    said = replay(Fluid(random=0, step=5), sources, targets, 20, 0)
    assert all(items[:5].tolist() == said.items[0][:5].tolist() for items in said.items)
    assert len({tuple(sorted(items)) for items in said.items}) > 1


def test_strong_targets_are_asked_harder_items():
    sources, targets = tables(n_targets=2)
    values = np.stack([np.ones(60), np.zeros(60)])
    said = replay(Fluid(**PRINTED), sources, replace(targets, values=values), 20, 0)
    easy = sources.values.mean(axis=0)
    assert easy[said.items[0]].mean() < easy[said.items[1]].mean()


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


def test_the_budget_is_the_most_even_where_the_ability_is_not_known():
    said = replay(Fluid(until=0.01), *tables(), 7, 0)
    assert [len(items) for items in said.items] == [7] * 4


def test_the_seed_chooses_between_equal_items_only():
    sources, targets = tables()
    printed = Fluid(**PRINTED)
    some = [replay(printed, sources, targets, 12, seed).items[0].tolist() for seed in range(3)]
    assert some[0] == some[1] == some[2]
    same = replace(sources, values=np.ones_like(sources.values))
    others = [replay(printed, same, targets, 12, seed).items[0].tolist() for seed in range(3)]
    assert others[0] != others[1]


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


def test_better_than_random_items_at_a_few():
    errors = {"fluid": [], "fluid-as-printed": [], "random": []}
    for seed in range(4):
        sources, targets = tables(n_targets=15, n_sources=60, seed=seed)
        for name, found in errors.items():
            said = replay(find_method(name), sources, targets, 8, seed).scores
            found.append(np.abs(said - targets.full_scores()).mean())
    assert np.mean(errors["fluid"]) < 0.9 * np.mean(errors["random"])
    assert np.mean(errors["fluid-as-printed"]) < 0.8 * np.mean(errors["random"])


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


def test_resumed_between_items(tmp_path):
    sources, targets = tables(n_targets=2)
    names = targets.model_ids
    begun = Evaluation(sources, "fluid", 9, names)
    begun.save(tmp_path)
    for step in range(9):
        begun.tell_table(targets, names[0])
        if step % 3 == 0:  # the other one is behind
            begun.tell_table(targets, names[1])
        resumed = Evaluation.open(tmp_path, sources)
        assert resumed.ask() == begun.ask()
    assert list(begun.ask()) == [names[1]]
    assert resumed.estimate(targets=names[:1])[names[0]].score == (
        begun.estimate(targets=names[:1])[names[0]].score
    )


def test_needs_two_sources():
    sources, targets = tables()
    with pytest.raises(MethodError, match="2 source models"):
        replay(Fluid(), sources.take(models=[0]), targets, 5, 0)
