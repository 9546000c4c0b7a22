"""Difficulty matching: chosen tasks as easy as all."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.errors import MethodError
from fewbench.tasks import TaskMatrix, read_chooser
from fewbench.tasks.choosers import matched, mismatch


def made(n=10, seed=0, weigh_tasks=False, sign=1.0):
    rng = np.random.default_rng(seed)
    names = tuple(f"t{at}" for at in range(n))
    ease, sizes = sign * rng.uniform(0.2, 0.9, n), rng.integers(5, 200, n)
    return TaskMatrix(rng.random((n, n)), names, sizes, ease, "x", weigh_tasks)


def similarity(n=10, seed=0):
    s = np.random.default_rng(seed).random((n, n))
    return (s + s.T) / 2 + np.eye(n)


def test_mismatch_is_a_share_of_the_mean_by_questions_or_tasks():
    names, sizes, ease = ("a", "b", "c"), np.array([10, 30, 60]), np.array([0.9, 0.5, 0.2])
    by_questions = TaskMatrix(np.eye(3), names, sizes, ease, "x")
    mean = (9 + 15 + 12) / 100
    found = mismatch(by_questions, np.array([0, 1]))
    assert found == pytest.approx((24 / 40 - mean) / mean)
    by_tasks = TaskMatrix(np.eye(3), names, sizes, ease, "x", True)
    assert mismatch(by_tasks, np.array([0, 1])) == pytest.approx((0.7 - 1.6 / 3) / (1.6 / 3))
    losses = TaskMatrix(np.eye(3), names, sizes, -ease, "x")
    assert mismatch(losses, np.array([2])) == pytest.approx((-0.2 + mean) / mean)
    nothing = TaskMatrix(np.eye(3), names, sizes, np.zeros(3), "x")
    assert mismatch(nothing, np.array([1])) == 0


@given(st.integers(0, 10**6), st.integers(1, 9), st.sampled_from([0.0, 0.001, 0.01, 0.1]))
def test_never_further_off_and_as_near_as_single_exchanges_bring_it(seed, k, within):
    for matrix in (made(seed=seed), made(seed=seed, weigh_tasks=True), made(seed=seed, sign=-1)):
        s = similarity(seed=seed)
        start = np.random.default_rng(seed).permutation(10)[:k]
        found = matched(s, matrix, start, within)
        assert len(set(found.tolist())) == k
        off = abs(mismatch(matrix, found))
        assert off <= abs(mismatch(matrix, start)) + 1e-12
        if off <= within + 1e-12:
            continue
        others = np.setdiff1d(np.arange(10), found)
        for place in range(k):
            for other in others:
                again = found.copy()
                again[place] = other
                assert abs(mismatch(matrix, again)) >= off - 1e-12


def test_what_matches_is_left_alone():
    matrix = made()
    start = min(combinations(range(10), 3), key=lambda c: abs(mismatch(matrix, np.array(c))))
    off = abs(mismatch(matrix, np.array(start)))
    assert matched(similarity(), matrix, np.array(start), off).tolist() == list(start)


def test_of_exchanges_within_bounds_that_of_highest_coverage_is_made():
    """One exchange is enough; among those that are, the best."""
    matrix, s = made(12, 5), similarity(12, 5)
    easiest = np.argsort(-matrix.ease)
    start = np.array([easiest[0], easiest[5], easiest[6]])
    within = 0.05
    assert abs(mismatch(matrix, start)) > within
    reach = {}
    for place in range(3):
        for other in np.setdiff1d(np.arange(12), start):
            again = start.copy()
            again[place] = other
            if abs(mismatch(matrix, again)) <= within:
                reach[tuple(again.tolist())] = s[:, again].max(axis=1).sum()
    assert len(reach) > 1
    assert tuple(matched(s, matrix, start, within).tolist()) == max(reach, key=reach.get)


@pytest.mark.parametrize("within", [0.0, 0.5])
def test_all_tasks_are_as_easy_as_all(within):
    matrix = made(6)
    assert matched(similarity(6), matrix, np.arange(6)[::-1], within).tolist() == [5, 4, 3, 2, 1, 0]


def test_the_chooser_s_setting():
    matrix = made(20, 3)
    plain = read_chooser("bento-sim").order(matrix, 3, 0)
    found = read_chooser("bento-sim(match=0.01)").order(matrix, 3, 0)
    assert abs(mismatch(matrix, plain.tasks)) > 0.01 >= abs(mismatch(matrix, found.tasks))
    assert found.coverage <= plain.coverage
    assert not found.notes
    assert found.gains is None


def test_a_match_out_of_reach_is_told():
    matrix = made(4, 1)
    found = read_chooser("bento-sim(match=0)").order(matrix, 1, 0)
    off = abs(mismatch(matrix, found.tasks))
    assert off == min(abs(mismatch(matrix, np.array([task]))) for task in range(4))
    assert any(f"still {off:.1%}" in note for note in found.notes)


def test_without_known_ease_there_is_nothing_to_match():
    matrix = TaskMatrix(np.eye(4), tuple("abcd"), np.ones(4, dtype=int), None, "x")
    with pytest.raises(MethodError, match=r"not known .*measure every task"):
        read_chooser("bento-sim(match=0.01)").order(matrix, 2, 0)
