"""Items from items: lines, neighbors and transport against the equations written out."""

import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from fewbench.errors import MissingExtraError
from fewbench_papers.algorithms.completion.item_to_item import (
    ItemNeighbours,
    barycentric_weights,
    column_distances,
    cosine_similarities,
    fit_item_lines,
    importance,
    in_order,
    mixed,
    most_similar,
)


def test_each_item_has_the_line_of_least_residual():
    rng = np.random.default_rng(0)
    values, anchors = rng.random((20, 9)), np.array([4, 1, 7])
    answers = rng.random((3, 3))
    said = fit_item_lines(values, anchors).predict(answers)
    for item in range(9):
        best = np.inf
        for at, anchor in enumerate(anchors):
            design = np.column_stack([values[:, anchor], np.ones(20)])
            theta, *_ = np.linalg.lstsq(design, values[:, item], rcond=None)
            residual = ((design @ theta - values[:, item]) ** 2).sum()
            if residual < best:
                best, expected = residual, theta[0] * answers[:, at] + theta[1]
        np.testing.assert_allclose(said[:, item], expected)


def test_right_and_wrong_give_shares_of_those_who_answered_alike():
    values = np.array([[0, 0], [0, 1], [0, 0], [0, 0], [1, 1], [1, 1], [1, 0]], dtype=float)
    said = fit_item_lines(values, np.array([0])).predict(np.array([[0.0], [1.0]]))
    np.testing.assert_allclose(said, [[0, 1 / 4], [1, 2 / 3]], atol=1e-12)


def test_constant_anchors_tell_nothing_and_twins_count_as_the_first():
    rng = np.random.default_rng(1)
    values = rng.random((8, 5))
    values[:, 0] = 1 / 3
    level = fit_item_lines(values, np.array([0])).predict(np.array([[1.0]]))
    np.testing.assert_allclose(level[0], values.mean(axis=0))
    values[:, 4] = values[:, 3]
    assert (fit_item_lines(values, np.array([3, 4])).nearest == 0).all()


def test_it_takes_no_table_of_all_anchors_and_items():
    values = np.random.default_rng(2).random((12, 3000))
    anchors = np.random.default_rng(3).permutation(3000)[:1000]
    tracemalloc.start()
    found = fit_item_lines(values, anchors)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 3000 * 1000 * 8 / 2
    centred = values - values.mean(axis=0)
    shared = centred[:, anchors].T @ centred
    spread = (centred[:, anchors] ** 2).sum(axis=0)
    nearest = (shared**2 / spread[:, None]).argmax(axis=0)
    assert np.array_equal(found.nearest, nearest)
    np.testing.assert_allclose(found.slope, (shared / spread[:, None])[nearest, np.arange(3000)])


matrices = arrays(
    np.float64, st.tuples(st.integers(2, 9), st.integers(1, 6)), elements=st.sampled_from([0, 1.0])
)


@given(matrices)
def test_variance_is_equation_6(values):
    found = importance(values)
    m = len(values)
    for item, column in enumerate(values.T):
        plain = sum((score - sum(column) / m) ** 2 for score in column) / (m - 1)
        assert found[item] == pytest.approx(plain, abs=1e-10)


@given(matrices)
def test_right_and_wrong_exchanged_tie_exactly(values):
    assert np.array_equal(importance(values), importance(1 - values))


def test_one_model_varies_on_nothing():
    assert importance(np.array([[0.3, 1.0]])).tolist() == [0.0, 0.0]


@given(matrices)
def test_cosines_are_those_of_the_formula(values):
    found = cosine_similarities(values, values)
    for i, a in enumerate(values):
        for j, b in enumerate(values):
            lengths = np.linalg.norm(a) * np.linalg.norm(b)
            plain = a @ b / lengths if lengths > 0 else float(not a.any() and not b.any())
            assert found[i, j] == pytest.approx(plain, abs=1e-11)


def test_equally_similar_sources_by_distance_then_by_chance():
    sources = np.array([[1.0, 1], [0, 1], [1, 0], [0, 1], [0, 0]])
    first, last = np.arange(5), np.arange(5)[::-1]
    assert most_similar(np.array([0.0, 1.0]), sources, 2, first).tolist() == [1, 3]
    assert most_similar(np.array([0.0, 1.0]), sources, 2, last).tolist() == [3, 1]
    # to nothing but zeros all others are equally similar: not so near are those with more right
    assert most_similar(np.array([0.0, 0.0]), sources, 3, first).tolist() == [4, 1, 2]
    assert most_similar(np.array([0.0, 0.0]), sources, 99, first).tolist() == [4, 1, 2, 3, 0]


PLAIN = ItemNeighbours(neighbours=3, least=0.0, quantile=0.0)
# Columns that have cosines 1, 0.8, 0.6 and 0 with the first unit vector.
KNOWN = np.array([[1.0, 0.8, 0.6, 0.0], [0.0, 0.6, 0.8, 1.0]])
ANSWERS = np.array([0.9, 0.4, 0.2, 1.0])
ITEM = np.array([[1.0], [0.0]])
FALLBACK = np.array([0.55])


def predicted(settings, items, known, answers, fallback):
    return settings.predict(*settings.find(items, known), answers, fallback)


@pytest.mark.parametrize(
    ("settings", "known", "expected"),
    [
        ({}, slice(None), 0.5),  # the mean of the three nearest
        ({}, slice(2), 0.65),  # of all where there are fewer
        ({}, slice(0), 0.55),  # the fallback
        ({"least": 0.8}, slice(None), 0.5),  # a mean similarity that is just enough
        ({"least": 0.8001}, slice(None), 0.55),
        ({}, [3, 3], 1.0),  # like no other: the plain mean
    ],
)
def test_an_item_is_the_mean_of_the_nearest_that_are_similar_enough(settings, known, expected):
    own = replace(PLAIN, **settings)
    found = predicted(own, ITEM, KNOWN[:, known], ANSWERS[known], FALLBACK)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [1, 1, 1]),
        ({"quantile": 0.5}, [1, 1, 0.3]),
        ({"quantile": 1.0}, [1, 0.2, 0.3]),
        ({"least": 0.7}, [1, 0.2, 0.3]),  # the higher of both thresholds counts
    ],
)
def test_below_the_quantile_the_fallback_is_taken(settings, expected):
    items = np.array([[1.0, 0.6, 0.0], [0.0, 0.8, -1.0]])  # similar at 1, 0.6 and 0 to the known
    known, fallback = np.array([[1.0], [0.0]]), np.array([0.1, 0.2, 0.3])
    found = predicted(replace(PLAIN, **settings), items, known, np.array([1.0]), fallback)
    assert found.tolist() == expected


def test_equally_similar_items_are_all_at_the_threshold():
    """A quantile of equal means must not leave any of them out by rounding."""
    items = np.repeat(np.array([[0.3], [0.9], [0.7]]), 50, axis=1)
    known = np.array([[0.1, 0.5, 0.7], [0.9, 0.3, 0.1], [0.2, 0.2, 0.9]])
    found = predicted(replace(PLAIN, quantile=0.9), items, known, np.ones(3), np.zeros(50))
    assert (found == 1).all()


needs_pot = pytest.mark.usefixtures("pot")


@pytest.fixture
def pot():
    pytest.importorskip("ot", reason="optimal transport needs POT")


def answers(rows, columns, seed):
    return (np.random.default_rng(seed).random((rows, columns)) < 0.5).astype(float)


def program(costs):
    n, m = costs.shape
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.kron(np.ones(n), np.eye(m))
    masses = np.concatenate([np.full(n, 1 / n), np.full(m, 1 / m)])
    return {"A_eq": np.vstack([rows, columns]), "b_eq": masses}


def least_cost(costs):
    return linprog(costs.ravel(), **program(costs)).fun


def least_plan(costs, gain):
    """The plan of the least cost that gains most."""
    least = {"A_ub": costs.ravel()[None], "b_ub": [least_cost(costs) + 1e-10]}
    return linprog(-gain.ravel(), **least, **program(costs)).x.reshape(costs.shape)


@needs_pot
@pytest.mark.parametrize("shape", [(3, 7), (7, 3), (6, 4), (5, 5), (1, 4), (4, 1), (12, 9)])
def test_the_plan_is_feasible_and_costs_the_least(shape):
    costs = np.random.default_rng(sum(shape)).random(shape)
    weights = barycentric_weights(costs)
    np.testing.assert_allclose(weights.sum(axis=0), 1.0, rtol=1e-12)
    plan = weights / shape[1]
    assert (plan >= 0).all()
    np.testing.assert_allclose(plan.sum(axis=1), 1 / shape[0], rtol=1e-12)
    assert (plan * costs).sum() == pytest.approx(least_cost(costs), abs=1e-9)


@needs_pot
@pytest.mark.parametrize("seed", range(3))
def test_of_many_equal_plans_the_one_in_the_items_order_is_taken(seed):
    """Binary columns tie all the time. Another solver finds the same plan."""
    costs = column_distances(answers(4, 20, seed), answers(4, 33, seed + 10))
    plan = barycentric_weights(costs) / 33
    assert (plan * costs).sum() == pytest.approx(least_cost(costs), abs=1e-8)
    np.testing.assert_allclose(plan, least_plan(costs, in_order(20, 33)), atol=1e-7)
    np.testing.assert_allclose(plan, barycentric_weights(costs.T).T / 20, atol=1e-12)


def test_distances_are_euclidean_between_columns():
    rng = np.random.default_rng(0)
    a, b = rng.random((6, 4)), rng.random((6, 9))
    np.testing.assert_allclose(column_distances(a, b), cdist(a.T, b.T), rtol=1e-10)
    assert np.array_equal(np.diag(column_distances(a, a)), np.zeros(4))


def test_distances_of_binary_columns_are_exact():
    a, b = answers(30, 12, 2), answers(30, 8, 3)
    differ = (a[:, :, None] != b[:, None, :]).sum(axis=0)
    assert np.array_equal(column_distances(a, b), np.sqrt(differ))


@needs_pot
def test_binary_columns_are_cut_at_one_half():
    # All mass goes to the one unselected item: columns mix in halves.
    selected = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    shares = barycentric_weights(column_distances(selected, np.array([[1.0], [1.0], [0.0]])))
    columns, carried = (mixed(x, shares, binary=True) for x in (selected, np.array([0.0, 1.0])))
    assert columns[:, 0].tolist() == [1.0, 1.0, 0.0]  # one half counts as 1
    assert carried.tolist() == [1.0]


@needs_pot
def test_an_identical_item_carries_its_own_answer():
    unselected = answers(40, 6, 5)
    told = np.array([1.0, 0, 1, 0, 0, 1])
    shares = barycentric_weights(column_distances(unselected[:, ::-1], unselected))
    columns = mixed(unselected[:, ::-1], shares, binary=True)
    carried = mixed(told[::-1], shares, binary=True)
    assert np.array_equal(columns, unselected)
    assert np.array_equal(carried, told)


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(MissingExtraError, match=r"fewbench\[transport\]"):
        barycentric_weights(np.ones((2, 2)))
