"""The best facilities are the best of all."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbench.algorithms.choice.facility_location import coverage, facility_location
from fewbench.algorithms.choice.p_median import best_facilities


@st.composite
def tables(draw):
    rows, n = draw(st.integers(1, 9)), draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    values = rng.normal(draw(st.sampled_from([-0.5, 0.5])), 1.0, (rows, n))
    if draw(st.booleans()):
        values = np.round(values)
    return values, draw(st.integers(1, n)), draw(st.sampled_from([-1.0, 0.0, 0.5]))


@settings(max_examples=40)
@given(tables())
def test_no_other_choice_covers_more(table):
    values, k, floor = table
    greedy = facility_location(values, k, floor=floor)
    found = best_facilities(values, k, floor=floor, start=greedy.chosen)
    best = max(coverage(values, list(c), floor) for c in combinations(range(values.shape[1]), k))
    assert found.value == pytest.approx(best, abs=1e-6)
    assert found.value == coverage(values, found.chosen, floor)
    assert best - 1e-9 <= found.bound <= best * (1 + 1e-6) + 1e-6
    assert len(set(found.chosen.tolist())) == k
    assert found.chosen.tolist() == sorted(found.chosen.tolist())


def test_beats_a_greedy_choice_that_fell_for_the_first():
    """Greedy takes the middle column, which stands for all a little, and then one side."""
    values = np.array([[1.0, 0.6, 0.0], [1.0, 0.6, 0.0], [0.0, 0.6, 1.0], [0.0, 0.6, 1.0]])
    greedy = facility_location(values, 2)
    assert greedy.chosen.tolist() == [1, 0]
    found = best_facilities(values, 2, start=greedy.chosen)
    assert found.chosen.tolist() == [0, 2]
    assert found.value == 4.0 > greedy.value
    assert found.bound == pytest.approx(4.0)


def test_without_time_the_start_is_returned_with_an_honest_bound():
    rng = np.random.default_rng(0)
    points = rng.random((60, 3))
    values = 2 - np.linalg.norm(points[:, None] - points, axis=2)
    start = np.arange(8)[::-1]
    found = best_facilities(values, 8, start=start, seconds=0.0)
    assert found.chosen.tolist() == list(range(8))
    assert found.value == coverage(values, start)
    best = best_facilities(values, 8, start=start)
    assert found.bound >= best.value > found.value
    assert np.isfinite(found.bound)


def test_nothing_is_worth_anything():
    found = best_facilities(np.full((3, 3), -1.0), 2, start=[2, 0])
    assert (found.chosen.tolist(), found.value, found.bound) == ([0, 2], 0.0, 0.0)
