"""Budgets shared exactly on average, and draws with known probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.algorithms.sampling import NestedSample, allocate, draw, permanent_order

tasks = st.lists(
    st.tuples(st.integers(1, 20), st.one_of(st.just(0.0), st.floats(1e-3, 1e3))), min_size=1
)


@given(tasks, st.floats(0, 1), st.integers(0, 10**6))
def test_sums_to_the_budget_and_no_task_gets_more_than_it_has(tasks, share, seed):
    sizes, masses = np.array([size for size, _ in tasks]), np.array([mass for _, mass in tasks])
    budget = round(share * sizes.sum())
    counts = allocate(budget, masses, sizes, np.random.default_rng(seed))
    assert counts.sum() == budget
    assert (counts >= 0).all()
    assert (counts <= sizes).all()


@given(tasks, st.floats(0, 1), st.integers(0, 10**6))
def test_a_count_is_the_share_rounded_up_or_down(tasks, share, seed):
    sizes, masses = np.array([size for size, _ in tasks]), np.array([mass for _, mass in tasks])
    masses = masses + 1e-3
    budget = round(share * sizes.sum())
    counts = allocate(budget, masses, sizes, np.random.default_rng(seed))
    full = counts == sizes
    per_mass = (budget - sizes[full].sum()) / max(masses[~full].sum(), 1e-9)
    assert (abs(counts - per_mass * masses)[~full] < 2 + 1e-6).all()


@pytest.mark.parametrize(
    ("budget", "masses", "sizes", "expected"),
    [
        (3, [0.2, 0.3, 0.5], [9, 9, 9], [0.6, 0.9, 1.5]),
        (1, [1, 1, 1], [9, 9, 9], [1 / 3, 1 / 3, 1 / 3]),
        (7, [1, 1, 1], [1, 9, 9], [1, 3, 3]),
        (8, [1, 1, 1], [1, 9, 9], [1, 3.5, 3.5]),
        (6, [0, 1], [9, 4], [2, 4]),  # what has no mass takes only what is left
        (3, [0, 1], [9, 4], [0, 3]),
        (20, [5, 1, 2], [4, 10, 6], [4, 10, 6]),
    ],
)
def test_the_expected_count_is_the_exact_share(budget, masses, sizes, expected):
    rng = np.random.default_rng(0)
    drawn = np.array(
        [allocate(budget, np.array(masses), np.array(sizes), rng) for _ in range(2000)]
    )
    # A count takes two neighbouring values: its standard deviation is at most a half.
    np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=4.5 * 0.5 / np.sqrt(2000))
    assert (np.ptp(drawn, axis=0) <= 1).all()


def test_any_two_tasks_can_come_together():
    """Rounding in one fixed order would never take two neighbours."""
    rng = np.random.default_rng(0)
    pairs = {
        tuple(np.flatnonzero(allocate(2, np.ones(4), np.ones(4, int), rng))) for _ in range(99)
    }
    assert len(pairs) == 6


sizes = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12)


@given(sizes, st.floats(0, 1), st.integers(0, 10**6))
def test_as_many_as_asked_and_the_probabilities_add_up(sizes, share, seed):
    sizes, n = np.array(sizes), round(share * len(sizes))
    chosen, probabilities = draw(n, sizes, np.random.default_rng(seed))
    assert len(set(chosen.tolist())) == n
    assert probabilities.sum() == pytest.approx(n)
    assert (probabilities[chosen] > 0).all()
    sure = probabilities == 1.0
    assert set(np.flatnonzero(sure).tolist()) <= set(chosen.tolist())
    if n > 0 and not sure.all():  # what is not sure goes by size
        ratio = probabilities[~sure] / sizes[~sure]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)
        assert (probabilities <= 1.0).all()


def test_units_come_as_often_as_their_probabilities_say():
    sizes, rng, draws = np.array([5.0, 1, 1, 2, 2, 0.5]), np.random.default_rng(0), 20_000
    counts, expected = np.zeros(6), draw(3, sizes, rng)[1]
    assert expected[0] == 1.0
    for _ in range(draws):
        counts[draw(3, sizes, rng)[0]] += 1
    error = np.sqrt(expected * (1 - expected) / draws) + 1e-12
    assert (np.abs(counts / draws - expected) < 4 * error).all()


def test_an_item_of_hardly_any_size_counts_as_a_hundredth():
    sizes = np.array([1.0, 1e-12, 1.0, 1.0])
    sample = NestedSample(np.arange(4), sizes)
    assert sorted(sample.take(4).tolist()) == [0, 1, 2, 3]
    assert sample.chances(1)[1] == pytest.approx(0.01 / 3, rel=0.5)


@given(sizes, st.integers(0, 12), st.integers(0, 12))
def test_a_nested_sample_begins_as_the_smaller_one_does(sizes, few, more):
    """Of items in any order; what is not in the order is never drawn."""
    sizes = np.array(sizes)
    order = np.random.default_rng(0).permutation(len(sizes))[: max(1, len(sizes) - 1)]
    sample = NestedSample(order, sizes)
    few, more = sorted((few, more))
    first, every = sample.take(few), sample.take(more)
    assert every[: len(first)].tolist() == first.tolist()
    assert len(set(every.tolist())) == len(every) == min(more, len(order))
    assert set(every) <= set(order)
    chances = sample.chances(more)
    assert chances[order].sum() == pytest.approx(min(more, len(order)))
    if more:
        assert (chances[every] > 0).all()
    assert (chances <= 1).all()


@pytest.mark.parametrize("n", [10, 30, 60])
def test_a_nested_sample_draws_items_as_often_as_its_chances_say(n):
    sizes, seeds = 0.2 + np.random.default_rng(0).beta(2, 1.2, 100), 3000
    tasks = np.repeat([0, 1, 2], [20, 30, 50])
    counts = np.zeros(100)
    for seed in range(seeds):
        sample = NestedSample(permanent_order(tasks, seed), sizes)
        counts[sample.take(n)] += 1 / seeds
    chances = sample.chances(n)
    np.testing.assert_allclose(counts, chances, atol=0.04)
    assert np.mean(counts / chances) == pytest.approx(1, abs=0.01)


def test_samples_of_one_order_share_the_items_that_their_chances_allow():
    rng = np.random.default_rng(0)
    order = permanent_order(np.zeros(1000, dtype=np.intp), 0)
    one, other = 0.2 + rng.random((2, 1000))
    samples = [NestedSample(order, sizes) for sizes in (one, other)]
    common = len(np.intersect1d(*(sample.take(100) for sample in samples)))
    together = np.minimum(*(sample.chances(100) for sample in samples)).sum()
    assert common == pytest.approx(together, abs=5)
    assert NestedSample(order, np.ones(1000)).take(100).tolist() == order[:100].tolist()


@pytest.mark.parametrize("asked", [30, 200])
def test_samples_of_one_model_vary_as_random_ones(asked):
    """An interval holds for every model only if the sample is random, not a few sets of steps."""
    tasks = np.repeat([0, 1, 2], [98, 201, 301])
    drawn = [permanent_order(tasks, seed)[:asked] for seed in range(400)]
    for seed in range(6):
        answers = np.random.default_rng(seed).random(600) < 0.55
        spread = np.std([answers[items].mean() for items in drawn])
        random = answers.std() * np.sqrt((1 - asked / 600) / asked)
        assert 0.85 < spread / random < 1.12
