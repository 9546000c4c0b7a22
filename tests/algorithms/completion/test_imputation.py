"""Imputation in closed form against taking the steps one by one."""

import numpy as np
import pytest

from fewbench.algorithms.completion.low_rank import principal_components


@pytest.mark.parametrize("shape", [(12, 30), (40, 15)])
@pytest.mark.parametrize("steps", [1, 7, 100])
def test_it_is_as_if_the_steps_were_taken(shape, steps):
    rng = np.random.default_rng(0)
    values, at = rng.random(shape), np.array([3, 11, 0, 8])
    answers = rng.random((5, 4))
    model = principal_components(values, 6)
    centred = values - values.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:6]
    rows = np.tile(values.mean(axis=0), (5, 1))
    rows[:, at] = answers
    for _ in range(steps):
        rows = values.mean(axis=0) + (rows - values.mean(axis=0)) @ axes.T @ axes
        rows[:, at] = answers
    np.testing.assert_allclose(model.impute(at, answers, steps), rows, atol=1e-9)


def test_without_end_it_is_least_squares_and_with_all_cells_the_answers():
    rng = np.random.default_rng(1)
    values, at = rng.random((20, 12)), np.arange(8)
    answers = rng.random((2, 8))
    model = principal_components(values, 3)
    z, *_ = np.linalg.lstsq(model.axes[at], (answers - model.means[at]).T, rcond=None)
    expected = (model.axes @ z).T + model.means
    np.testing.assert_allclose(model.impute(at, answers, 10**6)[:, 8:], expected[:, 8:], atol=1e-6)
    whole = rng.random((2, 12))
    np.testing.assert_allclose(model.impute(np.arange(12), whole, 3), whole)


def test_rows_that_do_not_differ_leave_their_mean():
    model = principal_components(np.full((6, 5), 0.4), 3)
    assert model.axes.shape == (5, 0)
    said = model.impute(np.array([2]), np.array([[1.0]]), 10)
    np.testing.assert_allclose(said, [[0.4, 0.4, 1.0, 0.4, 0.4]])
