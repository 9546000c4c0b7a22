"""Plain random sampling: intervals that hold at their level, and the error to expect."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.errors import FewbenchError
from fewbench.uncertainty.sampling import (
    betting_interval,
    error_within,
    exact_interval,
    expected_random_error,
    interval_at,
)


@given(st.integers(1, 60), st.floats(0, 1), st.floats(0, 1), st.sampled_from([0.01, 0.9, 0.99]))
def test_the_exact_interval_is_what_neither_test_rejects(n_items, share, hit, level):
    from scipy.stats import hypergeom

    n = max(1, round(share * n_items))
    hits = round(hit * n)
    tail = (1 - level) / 2
    kept = [
        right
        for right in range(hits, n_items - n + hits + 1)
        if hypergeom.sf(hits - 1, n_items, right, n) > tail
        and hypergeom.cdf(hits, n_items, right, n) > tail
    ]
    low, high = exact_interval(hits, n, n_items, level)
    assert (round(low * n_items), round(high * n_items)) == (kept[0], kept[-1])


@pytest.mark.parametrize(("n", "n_items"), [(30, 1000), (30, 60), (5, 6)])
def test_at_a_score_the_interval_is_as_wide_as_that_of_a_sample_with_it(n, n_items):
    for hits in range(n + 1):
        found = interval_at(hits / n, n, n_items, 0.9)
        low, high = exact_interval(hits, n, n_items, 0.9)
        assert found == pytest.approx((min(low, hits / n), max(high, hits / n)))


@given(st.integers(0, 20), st.integers(1, 20), st.floats(0.01, 0.99))
def test_a_full_sample_leaves_nothing_open(right, n_items, level):
    right = min(right, n_items)
    mean = right / n_items
    scores = np.arange(n_items) / n_items
    assert exact_interval(right, n_items, n_items, level) == (mean, mean)
    assert interval_at(mean, n_items, n_items, level) == (mean, mean)
    assert betting_interval(scores, n_items, level) == pytest.approx((scores.mean(),) * 2)
    assert expected_random_error(mean, n_items, n_items) == 0


@pytest.mark.parametrize("level", [0, 1, -0.5, 90, math.nan])
def test_a_level_is_a_share(level):
    for interval in (
        lambda: exact_interval(2, 5, 10, level),
        lambda: betting_interval(np.ones(5), 10, level),
    ):
        with pytest.raises(FewbenchError, match="use a share"):
            interval()


def test_five_wrong_of_five_are_no_sure_zero():
    low, high = exact_interval(0, 5, 1000, 0.9)
    error = error_within(low, high, 5, 1000)
    drawn = np.random.default_rng(0)
    means = [np.abs(drawn.binomial(5, p, 4000) / 5 - p).mean() for p in np.linspace(low, high, 9)]
    assert error == pytest.approx(np.mean(means), rel=0.1)
    assert error > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(0.3, 0.3), (5.0, 2.0), (0.05, 2.0)])
@pytest.mark.parametrize("n", [5, 40])
def test_betting_intervals_hold_at_their_level_and_beat_the_binomial_worst_case(shape, n):
    rng = np.random.default_rng(1)
    covered, widths, binary = [], [], []
    for _ in range(150):
        whole = rng.beta(*shape, 300)
        sample = rng.permutation(whole)[:n]
        low, high = betting_interval(sample, 300, 0.9)
        covered.append(low <= whole.mean() <= high)
        widths.append(high - low)
        binary.append(np.ptp(interval_at(sample.mean(), n, 300, 0.9)))
    assert np.mean(covered) >= 0.9 - 3 * 0.3 / np.sqrt(150)
    if n == 40 and shape == (5.0, 2.0):  # scores that vary little
        assert np.mean(widths) < 0.85 * np.mean(binary)


@pytest.mark.parametrize(("deviation", "n", "n_items"), [(0.01, 5000, 10_000), (0.0, 50, 100)])
def test_betting_intervals_narrower_than_the_grid_still_hold(deviation, n, n_items):
    rng = np.random.default_rng(0)
    whole = np.clip(0.5 + rng.normal(0, deviation, n_items), 0, 1)
    low, high = betting_interval(whole[:n], n_items, 0.9)
    assert low <= whole.mean() <= high
    assert 0 < high - low < 0.1
