"""Optimal transport against a general linear programme, and the columns made of it."""

import sys

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from fewbench.algorithms.completion.item_to_item import (
    barycentric_weights,
    column_distances,
    oversample,
)
from fewbench.errors import MissingExtraError

needs_pot = pytest.mark.usefixtures("pot")


@pytest.fixture
def pot():
    pytest.importorskip("ot", reason="optimal transport needs POT")


def answers(rows, columns, seed):
    return (np.random.default_rng(seed).random((rows, columns)) < 0.5).astype(float)


def least_cost(costs):
    n, m = costs.shape
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.kron(np.ones(n), np.eye(m))
    masses = np.concatenate([np.full(n, 1 / n), np.full(m, 1 / m)])
    return linprog(costs.ravel(), A_eq=np.vstack([rows, columns]), b_eq=masses).fun


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
def test_many_equal_costs_are_no_trouble():
    """Binary columns tie all the time; any plan of the least cost will do."""
    costs = column_distances(answers(4, 20, 0), answers(4, 33, 1))
    weights = barycentric_weights(costs)
    assert (weights * costs).sum() / 33 == pytest.approx(least_cost(costs), abs=1e-9)


@needs_pot
def test_shares_of_halves_are_halves():
    weights = barycentric_weights(np.zeros((2, 1)))
    assert weights.tolist() == [[0.5], [0.5]]


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
def test_columns_are_the_barycentric_projection():
    rng = np.random.default_rng(4)
    selected, unselected, told = rng.random((5, 3)), rng.random((5, 7)), rng.random(3)
    columns, carried = oversample(selected, unselected, told, binary=False)
    weights = barycentric_weights(cdist(selected.T, unselected.T))
    for k in range(7):
        plain = sum(weights[j, k] * selected[:, j] for j in range(3))
        np.testing.assert_allclose(columns[:, k], plain, atol=1e-12)
        assert carried[k] == pytest.approx(sum(weights[j, k] * told[j] for j in range(3)))


@needs_pot
def test_binary_columns_are_cut_at_one_half():
    # All mass goes to the one unselected item: columns mix in halves.
    selected = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    columns, carried = oversample(
        selected, np.array([[1.0], [1.0], [0.0]]), np.array([0.0, 1.0]), binary=True
    )
    assert columns[:, 0].tolist() == [1.0, 1.0, 0.0]  # one half counts as 1
    assert carried.tolist() == [1.0]


@needs_pot
def test_an_identical_item_carries_its_own_answer():
    unselected = answers(40, 6, 5)
    told = np.array([1.0, 0, 1, 0, 0, 1])
    columns, carried = oversample(unselected[:, ::-1], unselected, told[::-1], binary=True)
    assert np.array_equal(columns, unselected)
    assert np.array_equal(carried, told)


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(MissingExtraError, match=r"fewbench\[transport\]"):
        barycentric_weights(np.ones((2, 2)))
