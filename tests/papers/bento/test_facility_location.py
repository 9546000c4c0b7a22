"""Facility location: the lazy search is the plain one and near the best, which is exact."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench_papers.bento.facility_location import (
    coverage,
    facility_location,
)


def plain(similarity, k, floor=0.0, tie="first"):
    """Every gain worked out anew at every step, in whole numbers."""
    worth = np.maximum(similarity - floor, 0)
    covered = np.zeros(len(worth), dtype=worth.dtype)
    chosen = []
    for _ in range(k):
        gains = np.maximum(worth - covered[:, None], 0).sum(axis=0)
        gains[chosen] = -1
        best = np.flatnonzero(gains == gains.max())
        chosen.append(int(best[0] if tie == "first" else best[-1]))
        covered = np.maximum(covered, worth[:, chosen[-1]])
    return chosen


@st.composite
def tables(draw, most=12):
    """Matrices of whole numbers, from almost all equal to almost all different."""
    rows, columns = draw(st.integers(1, most)), draw(st.integers(1, most))
    largest = draw(st.sampled_from([1, 3, 1000]))
    seed = draw(st.integers(0, 10**6))
    values = np.random.default_rng(seed).integers(-largest, largest + 1, (rows, columns))
    return values, draw(st.integers(1, columns))


@given(tables(), st.sampled_from(["first", "last"]), st.sampled_from([-2, 0, 1]))
def test_lazy_choice_is_the_plain_one(table, tie, floor):
    values, k = table
    found = facility_location(values, k, floor=floor, tie=tie)
    assert found.chosen.tolist() == plain(values, k, floor, tie)


@pytest.mark.parametrize("n", [65, 200])  # several blocks of candidates
@pytest.mark.parametrize("largest", [1, 4, 10**6])
@pytest.mark.parametrize("tie", ["first", "last"])
def test_lazy_choice_is_the_plain_one_beyond_a_block(n, largest, tie):
    values = np.random.default_rng(n + largest).integers(-largest, largest + 1, (n, n))
    found = facility_location(values, 40, tie=tie)
    assert found.chosen.tolist() == plain(values, 40, tie=tie)


@given(tables())
def test_gains_add_up_to_the_coverage_and_never_grow(table):
    values, k = table
    found = facility_location(values, k)
    assert found.value == pytest.approx(coverage(values, found.chosen), abs=1e-9)
    assert (np.diff(found.gains) <= 1e-9).all()
    assert len(set(found.chosen.tolist())) == k
    for j in range(1, k):
        assert found.gains[:j].sum() == pytest.approx(coverage(values, found.chosen[:j]), abs=1e-9)


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_reaches_what_is_promised_of_the_best(seed, k):
    values = np.random.default_rng(seed).exponential(size=(9, 8)) ** 2
    best = max(coverage(values, list(some)) for some in combinations(range(8), k))
    reached = facility_location(values, k).value
    assert (1 - 1 / np.e) * best - 1e-9 <= reached <= best + 1e-9
    if k == 1:
        assert reached == pytest.approx(best)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize(("tie", "place"), [("first", 0), ("last", -1)])
def test_equal_sums_are_ties_however_they_round_and_whatever_the_unit(scale, tie, place):
    """Columns of the same numbers in another order add up to the same but for rounding."""
    rng = np.random.default_rng(3)
    column = rng.random(400) * scale
    values = np.stack([rng.permutation(column) for _ in range(30)], axis=1)
    sums = [float(np.sum(column)) for column in values.T.copy()]
    assert len(set(sums)) > 1, "no rounding to be seen: the test would show nothing"
    found = facility_location(values, 1, tie=tie)
    assert found.chosen[0] == np.arange(30)[place]
    assert found.near_ties.tolist() == [True]


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_a_small_but_real_difference_is_none(scale):
    values = np.eye(6) * (1 + 1e-5 * np.arange(6)) * scale
    found = facility_location(values, 6, tie="first")
    assert found.chosen.tolist() == [5, 4, 3, 2, 1, 0]
    assert not found.near_ties.any()


def test_near_ties_are_told_but_decided_by_the_gain():
    values = np.eye(4)
    values[2, 2] += 1e-8
    found = facility_location(values, 4)
    assert found.chosen.tolist() == [2, 0, 1, 3]
    assert found.near_ties.tolist() == [True, True, True, False]


def test_late_gains_of_large_sums_are_ties_but_for_rounding():
    """What is left to gain is a small difference of large numbers, and rounded like them."""
    rng = np.random.default_rng(0)
    values = np.full((300, 40), 1e6) + rng.random((300, 1)) * 1e6
    small = rng.random(300)
    values[:, 1:] += np.stack([rng.permutation(small) for _ in range(39)], axis=1) * 1e-3
    values[:, 0] += 1.0  # covers all but nothing of what the others differ in
    found = facility_location(values, 2)
    assert found.chosen.tolist() == [0, 1]


def test_floor_is_what_nobody_is_worth():
    values = np.array([[-1.0, -3.0], [-5.0, -2.0]])
    assert facility_location(values, 1).gains.tolist() == [0.0]
    found = facility_location(values, 2, floor=-4.0)
    assert found.chosen.tolist() == [0, 1]
    assert found.gains.tolist() == [3.0, 2.0]
    assert coverage(values, [0, 1], floor=-4.0) == 5.0
    assert coverage(values, [], floor=-4.0) == 0.0


@pytest.mark.parametrize(
    ("similarity", "k"),
    [
        ([1.0, 2.0], 1),
        ([[1.0, np.nan]], 1),
        ([[1.0, np.inf]], 1),
        ([[1.0, 2.0]], 0),
        ([[1.0, 2.0]], 3),
        ([[]], 1),
    ],
)
def test_errors(similarity, k):
    with pytest.raises(ValueError, match=r"matrix of finite|from 1 to"):
        facility_location(similarity, k)
