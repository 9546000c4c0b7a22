"""Choices of tasks that only the record needs."""

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbench.study import compare
from fewbench.testing import simulate
from fewbench_papers.bento import Similarity, TaskMatrix
from fewbench_papers.bento.choosers import BentoSim, mismatch
from fewbench_papers.bento.facility_location import coverage, facility_location

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
own = pytest.importorskip("papers.methods.bento", reason="the benchmarks are not beside the tests")


def made(n=10, seed=0, weigh_tasks=False, sign=1.0):
    rng = np.random.default_rng(seed)
    names = tuple(f"t{at}" for at in range(n))
    ease, sizes = sign * rng.uniform(0.2, 0.9, n), rng.integers(5, 200, n)
    return TaskMatrix(rng.random((n, n)), names, sizes, ease, "x", weigh_tasks)


def similarity(n=10, seed=0):
    s = np.random.default_rng(seed).random((n, n))
    return (s + s.T) / 2 + np.eye(n)


@given(st.integers(0, 10**6), st.integers(1, 9), st.sampled_from([0.0, 0.001, 0.01, 0.1]))
def test_never_further_off_and_as_near_as_single_exchanges_bring_it(seed, k, within):
    for matrix in (made(seed=seed), made(seed=seed, weigh_tasks=True), made(seed=seed, sign=-1)):
        s = similarity(seed=seed)
        start = np.random.default_rng(seed).permutation(10)[:k]
        found = own.matched(s, matrix, start, within)
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
    assert own.matched(similarity(), matrix, np.array(start), off).tolist() == list(start)


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
    assert tuple(own.matched(s, matrix, start, within).tolist()) == max(reach, key=reach.get)


@pytest.mark.parametrize("within", [0.0, 0.5])
def test_all_tasks_are_as_easy_as_all(within):
    matrix = made(6)
    assert own.matched(similarity(6), matrix, np.arange(6)[::-1], within).tolist() == [
        5,
        4,
        3,
        2,
        1,
        0,
    ]


def test_the_matched_choice_is_as_easy_as_all():
    matrix = made(20, 3)
    plain, found = (chooser.order(matrix, 3, 0) for chooser in (BentoSim(), own.MatchedSim()))
    assert abs(mismatch(matrix, plain.tasks)) > 0.01 >= abs(mismatch(matrix, found.tasks))
    assert found.coverage <= plain.coverage
    assert not found.nested


@st.composite
def small_tables(draw):
    rows, n = draw(st.integers(1, 9)), draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    values = rng.normal(draw(st.sampled_from([-0.5, 0.5])), 1.0, (rows, n))
    if draw(st.booleans()):
        values = np.round(values)
    return values, draw(st.integers(1, n)), draw(st.sampled_from([-1.0, 0.0, 0.5]))


@settings(max_examples=40)
@given(small_tables())
def test_no_other_choice_covers_more(table):
    values, k, floor = table
    greedy = facility_location(values, k, floor=floor)
    found = own.best_facilities(values, k, floor=floor, start=greedy.chosen)
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
    found = own.best_facilities(values, 2, start=greedy.chosen)
    assert found.chosen.tolist() == [0, 2]
    assert found.value == 4.0 > greedy.value
    assert found.bound == pytest.approx(4.0)


def test_without_time_the_start_is_returned_with_an_honest_bound():
    rng = np.random.default_rng(0)
    points = rng.random((60, 3))
    values = 2 - np.linalg.norm(points[:, None] - points, axis=2)
    start = np.arange(8)[::-1]
    found = own.best_facilities(values, 8, start=start, seconds=0.0)
    assert found.chosen.tolist() == list(range(8))
    assert found.value == coverage(values, start)
    best = own.best_facilities(values, 8, start=start)
    assert found.bound >= best.value > found.value
    assert np.isfinite(found.bound)


@pytest.mark.parametrize("k", [2, 3])
def test_the_exact_choice_covers_most(k):
    matrix = made(8, 1)
    s = Similarity().sim(matrix.rows)
    found = own.ExactSim().order(matrix, k, 0)
    best = max(coverage(s, list(some)) for some in combinations(range(8), k))
    assert found.coverage == pytest.approx(best) == pytest.approx(coverage(s, found.tasks))
    assert found.tasks[0] == max(found.tasks, key=lambda task: coverage(s, [task]))


def test_medoids_are_the_rows_nearest_to_all():
    from scipy.spatial.distance import cdist

    matrix, similarity = made(7, 3), Similarity(components=3)
    rows = {
        "raw": matrix.rows,
        "sim": similarity.sim(matrix.rows),
        "le": similarity.le(matrix.rows),
    }
    for space, points in rows.items():
        e = cdist(points, points)
        best = min(combinations(range(7), 2), key=lambda some: e[:, list(some)].min(axis=1).sum())
        found = own.MedoidTasks(space, 3).order(matrix, 2, 0)
        assert set(found.tasks.tolist()) == set(best)


@pytest.mark.parametrize("distance", ["cosine", "chebyshev"])
def test_other_distances_are_scipy_s(distance):
    from scipy.spatial.distance import cdist

    matrix = made(7, 3)
    centered = matrix.rows - matrix.rows.mean(axis=0)
    e = cdist(centered, centered, distance)
    found = own.BentoByDistance(distance=distance).order(matrix, 4, 0)
    assert found.tasks.tolist() == facility_location(1.5 * e.max() - e, 4).chosen.tolist()


def test_methods_of_one_s_own_go_through_compare():
    """As a user's own methods do."""
    from papers.methods import METHODS

    scores = simulate(14, 90, 6, seed=3)
    names = ["alike-tasks", "alike-tasks-matched", "alike-tasks-le", "task-medoids"]
    found = compare(scores, [METHODS[name] for name in names], [30], repeats=2, level=None).cells
    assert found.set_index("method")["mae"][names].notna().all()
