import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.algorithms.sampling.allocation import allocate

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


def test_follows_from_the_generator():
    args = 10, np.ones(7), np.full(7, 5)
    one, two = (allocate(*args, np.random.default_rng(3)) for _ in range(2))
    assert one.tolist() == two.tolist()
