"""Sort & Search: which items, and which threshold, against trying them all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.methods import Answers, Subset
from fewbench.methods.prediction.completed import task_lines
from fewbench.scores import from_arrays
from fewbench.testing import simulate
from fewbench.testing.conformance import StaticConformance
from papers.methods import find
from papers.methods.sort_and_search import SortedItems, Threshold, easiest_first, mean_threshold


@pytest.mark.parametrize("name", ["sort-and-search", "sort-and-search-weighted"])
class TestSortAndSearch(StaticConformance):
    exact = False
    estimates = False

    @pytest.fixture
    def method(self, name):
        return find(name)


def staircase(n_items, tasks=None, order=None):
    """Model m has the m easiest items right; the items stand in some order."""
    values = (np.arange(n_items) < np.arange(n_items + 1)[:, None]).astype(float)
    values = values if order is None else values[:, order]
    return from_arrays(values, models=[f"m{at}" for at in range(n_items + 1)], tasks=tasks)


def predict(scores, at, answers):
    at = np.asarray(at)
    subset = Subset(items=tuple(scores.item_ids[at]))
    told = Answers(at, np.atleast_2d(np.asarray(answers, dtype=float)))
    return Threshold().fit(scores, subset, 0).predict(told)


# -- which items ---------------------------------------------------------------------------------


def test_the_middles_of_equal_slices_easiest_first():
    order = np.random.default_rng(0).permutation(12)
    scores = staircase(12, order=order)
    chosen = scores.positions(SortedItems().select(scores, 4, 0).items)
    assert order[chosen].tolist() == [1, 4, 7, 10]
    middle = scores.positions(SortedItems().select(scores, 1, 0).items)
    assert order[middle].tolist() == [5]


def test_items_as_easy_keep_the_order_of_the_table():
    scores = from_arrays([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1]], models=["a", "b"])
    assert easiest_first(scores)[0].tolist() == [2, 0, 1, 3, 4]
    continuous = from_arrays([[0.3, 0.1], [0.2, 0.2], [0.1, 0.3]], models="abc")
    assert np.ptp(continuous.values.mean(axis=0)) > 0  # by rounding
    assert easiest_first(continuous)[0].tolist() == [0, 1]


@given(st.integers(1, 40), st.integers(0, 10**6), st.sampled_from(["micro", "macro"]))
def test_slices_differ_by_one_item_and_weights_are_their_shares(budget, seed, average):
    scores = simulate(9, 40, 4, seed=seed % 7).averaged(average)
    subset = SortedItems().select(scores, budget, seed)
    at = scores.positions(subset.items)
    assert len(set(at.tolist())) == budget
    weights = np.array(subset.weights)
    for task in np.unique(scores.task_of[at]):
        items = easiest_first(scores)[task]
        here = at[scores.task_of[at] == task]
        places = np.array([items.tolist().index(item) for item in here])
        assert (np.diff(places) > 0).all()
        step = len(items) / len(here)
        np.testing.assert_allclose(places, (np.arange(len(here)) + 0.5) * step - 0.5, atol=1.0)
        mass = scores.item_weights[items].sum()
        assert weights[scores.task_of[at] == task].sum() == pytest.approx(mass)


def test_a_task_s_items_are_sorted_among_themselves():
    scores = staircase(12, tasks=["easy"] * 6 + ["hard"] * 6)
    chosen = scores.positions(SortedItems().select(scores, 4, 0).items)
    assert chosen.tolist() == [1, 4, 7, 10]
    few = scores.positions(SortedItems().select(scores, 2, 0).items)
    assert few.tolist() == [2, 8]


# -- which threshold -----------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from([0.0, 1.0, 0.25, 0.5, 0.9]), min_size=1, max_size=9),
    st.integers(0, 10**6),
)
def test_the_threshold_is_the_best_of_all(answers, seed):
    """Every threshold tried: the mean of those of least error, each midway between two items."""
    n = len(answers)
    size = n + seed % 20
    at = np.sort(np.random.default_rng(seed).permutation(size)[:n])
    error = [sum(abs((place < t) - a) for place, a in enumerate(answers)) for t in range(n + 1)]
    best = [t for t in range(n + 1) if error[t] <= min(error) + 1e-9]
    places = []
    for t in best:
        inside = 0 < t < n
        places.append((at[t - 1] + 1 + at[t]) / 2 if inside else (0 if t == 0 else size))
    found = mean_threshold(np.array([answers, answers]), at, size)
    np.testing.assert_allclose(found, np.mean(places))
    assert 0 <= found[0] <= size


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=20))
def test_with_all_items_run_it_is_the_paper_s_threshold_but_for_ties(answers):
    row, n = np.array([answers]), len(answers)
    costs = [sum((place < ones) != answers[place] for place in range(n)) for ones in range(n + 1)]
    best = [ones for ones in range(n + 1) if costs[ones] == min(costs)]
    assert mean_threshold(row, np.arange(n), n)[0] == pytest.approx(np.mean(best))


@pytest.mark.parametrize("size", [1, 9])
def test_between_the_middles_of_slices_a_threshold_is_the_sample_s_share_of_all(size):
    """k of n items run are right at the optimum: k N / n of all N."""
    at = np.arange(5) * size + size // 2
    rows = (np.arange(5) < np.arange(6)[:, None]).astype(float)
    assert mean_threshold(rows, at, 5 * size).tolist() == (np.arange(6) * size).tolist()


def test_thresholds_tie_but_for_rounding():
    found = mean_threshold(np.array([[0.3, 0.4, 0.8]]), np.array([0, 1, 2]), 3)
    assert found.tolist() == [1.5]  # before or after all of them: an error of 1.5


@pytest.mark.parametrize("budget", [1, 7, 12])
def test_a_target_that_follows_the_order_is_known_within_half_a_slice(budget):
    scores = staircase(36, order=np.random.default_rng(3).permutation(36))
    subset = SortedItems().select(scores, budget, 0)
    at = scores.positions(subset.items)
    said = Threshold().fit(scores, subset, 0).predict(Answers(at, scores.values[:, at]))
    assert np.abs(said.scores - scores.full_scores()).max() <= (36 / budget) / 2 / 36 + 0.5 / 36
    if budget == 12:  # the answers of those whose threshold is a slice's end
        np.testing.assert_allclose(said.items[::3], scores.values[::3])


def test_as_in_the_paper_the_answers_are_not_kept():
    answers = [[0, 1, 1], [1, 0, 1], [0, 0, 0]]
    said = predict(staircase(9), [1, 4, 7], answers)
    assert said.items.tolist() == [[1] * 9, [1] * 6 + [0] * 3, [0] * 9]
    np.testing.assert_allclose(said.scores, [1, 2 / 3, 0])


def test_the_mean_of_thresholds_that_tie_may_fall_on_an_item():
    said = predict(staircase(8), [1, 3], [0, 1])  # none right or all right: threshold 4
    assert said.items.tolist() == [[1, 1, 1, 1, 0, 0, 0, 0]]
    half = predict(staircase(8), [1, 4], [[1, 0.5]])  # after 3 or after 8 items: 5.5
    assert half.items.tolist() == [[1, 1, 1, 1, 1, 0.5, 0, 0]]


def test_a_threshold_for_each_task():
    scores = staircase(8, tasks=["x", "y"] * 4)
    at, answers = [0, 1, 6, 7], [1, 0, 1, 0]  # all of x, nothing of y
    each = predict(scores, at, answers)
    assert each.tasks.tolist() == [[1.0, 0.0]]
    assert each.scores.tolist() == [0.5]


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_a_task_without_items_is_read_off_the_others(average):
    scores = simulate(30, 40, 3, seed=2).averaged(average)
    at = np.flatnonzero(scores.task_of != 1)[::2]
    said = predict(scores, at, scores.values[:3, at])
    seen = scores.task_of != 1
    w = scores.item_weights[seen]
    full = said.items[:, seen] @ w / w.sum()
    tasks = said.tasks.copy()
    tasks[:, 1] = np.nan
    np.testing.assert_allclose(said.tasks, task_lines(scores).fill(tasks, full))
    np.testing.assert_allclose(said.scores, said.items @ scores.item_weights)
    order = easiest_first(scores)[1]
    assert (np.diff(said.items[:, order], axis=1) <= 0).all()
