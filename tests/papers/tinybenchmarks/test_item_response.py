"""The sources' item response model: fitted once, missing cells left out, scores made binary."""

from dataclasses import replace

import numpy as np
import pytest

from fewbench.errors import MethodError
from fewbench.scores import from_arrays
from fewbench.testing import simulate
from fewbench_papers.algorithms.irt import best_cuts, binary, fit_irt
from fewbench_papers.tinybenchmarks.item_response import (
    expectation_error,
    source_model,
    subset_model,
)


def test_equal_tables_share_one_fit_and_others_do_not():
    scores, again = (simulate(12, 30, seed=1) for _ in range(2))
    values = scores.values.copy()
    values[0, 0] = 1 - values[0, 0]
    assert scores is not again
    assert source_model(scores, 1) is source_model(again, 1)
    assert source_model(replace(scores, values=values), 1) is not source_model(scores, 1)
    assert source_model(scores, 2) is not source_model(scores, 1)


def test_missing_cells_are_left_out_of_the_fit():
    scores = simulate(25, 40, missing=0.3, seed=4)
    said = source_model(scores, 1)
    expected = fit_irt(scores.values, 1)
    np.testing.assert_array_equal(said.model.discrimination, expected.discrimination)
    np.testing.assert_array_equal(said.model.intercept, expected.intercept)
    filled = fit_irt(np.nan_to_num(scores.values), 1)
    assert np.abs(filled.intercept - expected.intercept).max() > 0.3


def test_continuous_scores_are_cut_task_by_task():
    scores = simulate(40, 60, 3, continuous=True, missing=0.1, seed=5)
    said = source_model(scores, 1)
    cuts = best_cuts(scores.values, scores.task_of)
    np.testing.assert_array_equal(said.cuts, cuts[scores.task_of])
    expected = fit_irt(binary(scores.values, said.cuts), 1)
    np.testing.assert_array_equal(said.model.intercept, expected.intercept)


def test_answers_of_targets_are_cut_as_those_of_the_sources():
    scores = simulate(40, 60, 3, continuous=True, seed=6)
    said = source_model(scores, 1)
    items = np.array([50, 3, 17, 30])
    answers = scores.values[:5, items]
    found = said.abilities(items, answers)
    right = (answers > said.cuts[items]).astype(float)
    np.testing.assert_array_equal(found.means, said.model.abilities(items, right).means)
    np.testing.assert_array_equal(found.standard_errors > 0, True)


def test_one_source_is_too_few():
    scores = from_arrays([[1, 0, 1]], models=["a"])
    with pytest.raises(MethodError, match=r"2 source.*1"):
        source_model(scores)


@pytest.mark.parametrize("settings", [{}, {"missing": 0.2}, {"continuous": True}])
def test_expectation_errors_are_small_where_the_model_holds(settings):
    scores = simulate(60, 300, 3, seed=12, **settings)
    off = expectation_error(scores, 1)
    assert off.shape == (4,)
    assert (off > 0).all()
    assert off[0] < 0.06
    assert (off[1:] < 0.12).all()
    np.testing.assert_array_equal(off, expectation_error(scores, 1))


def test_the_first_expectation_error_follows_the_average_asked_for():
    scores = simulate(40, 120, 3, seed=14)
    micro, macro = expectation_error(scores, 1), expectation_error(scores.averaged("macro"), 1)
    np.testing.assert_allclose(micro[1:], macro[1:])
    assert micro[0] != macro[0]


@pytest.mark.parametrize("shape", [(2, 4), (3, 2), (5, 3)])
def test_expectation_errors_of_tiny_tables_are_numbers(shape):
    off = expectation_error(simulate(*shape, n_tasks=2, seed=15), 1)
    assert np.isfinite(off).all()


def test_a_model_of_a_few_items_is_that_of_a_table_of_them():
    """Tasks without one of the items take no part, and each task has its own cut."""
    scores = simulate(30, 60, 4, continuous=True, seed=6)
    at = np.flatnonzero(scores.task_of != 1)[::-3]
    found, alone = subset_model(scores, at), source_model(scores.take(items=at), 1)
    assert len(np.unique(found.cuts)) > 1
    np.testing.assert_array_equal(found.cuts, alone.cuts)
    np.testing.assert_allclose(found.model.discrimination, alone.model.discrimination)
    assert found.notes == alone.notes
