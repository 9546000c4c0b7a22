"""The Rasch model on any cells of a table."""

import numpy as np
import pytest

from fewbench.algorithms.item_curves import logistic
from fewbench.algorithms.rasch import VARIANCE, fit_rasch


def cells(n_models: int, n_items: int, share: float, seed: int = 0):
    rng = np.random.default_rng(seed)
    ability, easiness = rng.normal(0, 1, n_models), rng.normal(0.5, 1.2, n_items)
    models, items = np.nonzero(rng.random((n_models, n_items)) < share)
    right = rng.random(len(models)) < logistic(ability[models] + easiness[items])
    return models, items, right.astype(float), ability, easiness


@pytest.mark.parametrize(("n_models", "share", "least"), [(40, 1.0, 0.9), (60, 0.2, 0.7)])
def test_what_made_the_answers_is_found(n_models, share, least):
    models, items, answers, ability, easiness = cells(n_models, 300, share)
    found = fit_rasch(models, items, answers, n_models, np.zeros(300, dtype=int))
    assert np.corrcoef(found.sources, ability)[0, 1] > 0.9
    assert np.corrcoef(found.curves.intercept, easiness)[0, 1] > least


def test_an_item_that_no_model_ran_is_as_easy_as_its_task():
    models, items, answers, _, _ = cells(30, 100, 0.5)
    task_of = np.repeat([0, 1], 50)
    answers = np.where(task_of[items] == 0, 1.0, answers * 0)  # task 0 is all right, task 1 wrong
    kept = (items != 0) & (items != 50)
    found = fit_rasch(models[kept], items[kept], answers[kept], 30, task_of).curves
    assert found.intercept[0] > 0.5 > -0.5 > found.intercept[50]
    assert found.covariance[0, 0] > found.covariance[0, 1]  # and less is known about it


def test_without_models_all_items_have_one_curve():
    nothing = np.zeros(0, dtype=int)
    found = fit_rasch(nothing, nothing, np.zeros(0), 0, np.array([0, 0, 1]))
    assert not len(found.sources)
    assert (found.chances == found.chances[:, :1]).all()
    assert found.curves.covariance[0].tolist() == [VARIANCE] * 3


def test_fractions_count_as_shares():
    models, items = np.repeat(np.arange(20), 10), np.tile(np.arange(10), 20)
    found = fit_rasch(models, items, np.full(200, 0.5), 20, np.zeros(10, dtype=int))
    np.testing.assert_allclose(found.curves.at(found.sources), 0.5, atol=0.01)
