"""Abilities of models that the items were not fitted to."""

import numpy as np
import pytest
from scipy.optimize import minimize

ITEMS = np.arange(40)


def minus_log_posterior(theta, model, items, answers):
    run = ~np.isnan(answers)
    p = model.expected(theta[None], items)[0, run]
    y = answers[run]
    return theta @ theta / 2 - (y * np.log(p) + (1 - y) * np.log(1 - p)).sum()


def best(model, items, answers):
    """The highest of the maxima found from several starts."""
    starts = np.random.default_rng(0).normal(size=(6, model.dimensions)) * 1.5
    found = [
        minimize(
            minus_log_posterior,
            start,
            args=(model, items, answers),
            method="Nelder-Mead",
            options={"xatol": 1e-8, "fatol": 1e-12, "maxiter": 4000, "maxfev": 4000},
        )
        for start in [np.zeros(model.dimensions), *starts]
    ]
    return min(found, key=lambda each: each.fun).x


@pytest.mark.parametrize("dimensions", [1, 2])
@pytest.mark.parametrize("kind", ["some missing", "all wrong", "all right", "shares"])
def test_they_are_the_most_likely_ones(simulated, dimensions, kind):
    truth = simulated(4, 5, 40, dimensions, missing=0.2)
    answers = {
        "some missing": truth.values,
        "all wrong": np.zeros((1, 40)),
        "all right": np.ones((1, 40)),
        "shares": np.random.default_rng(0).random((4, 40)),
    }[kind]
    said = truth.model.abilities(ITEMS, answers).means
    expected = np.array([best(truth.model, ITEMS, row) for row in answers])
    np.testing.assert_allclose(said, expected, atol=2e-3 if "all" in kind else 2e-4)


@pytest.mark.parametrize("dimensions", [1, 3])
def test_standard_errors_cover_the_truth_at_about_the_stated_rate(simulated, dimensions):
    truth = simulated(7, 1000, 60, dimensions)
    said = truth.model.abilities(np.arange(60), truth.values)
    away = np.abs(said.means - truth.ability) / said.standard_errors
    # Two binomial standard errors of 1,000 are 1.4 and 2.9 points; the posterior is only near
    # to normal, so that a little more is let pass.
    assert (away < 1.96).mean() == pytest.approx(0.95, abs=0.02)
    assert (away < 1.0).mean() == pytest.approx(0.683, abs=0.04)


def test_without_items_the_prior_is_all_there_is(simulated):
    model = simulated(8, 4, 10, 3).model
    said = model.abilities(np.array([], dtype=int), np.empty((2, 0)))
    np.testing.assert_array_equal(said.means, np.zeros((2, 3)))
    np.testing.assert_allclose(said.covariances, np.broadcast_to(np.eye(3), (2, 3, 3)))
    np.testing.assert_allclose(said.standard_errors, 1.0)


def test_answers_that_lack_are_as_items_not_asked(simulated):
    truth = simulated(9, 3, 40, 2)
    answers = truth.values[:1].copy()
    lack = np.arange(40) % 3 == 0
    answers[:, lack] = np.nan
    said = truth.model.abilities(ITEMS, answers)
    expected = truth.model.abilities(ITEMS[~lack], answers[:, ~lack])
    np.testing.assert_allclose(said.means, expected.means, atol=1e-5)
    np.testing.assert_allclose(said.covariances, expected.covariances, atol=1e-5)
    nothing = truth.model.abilities(ITEMS, np.full((1, 40), np.nan))
    np.testing.assert_allclose(nothing.means, 0.0, atol=1e-12)
    np.testing.assert_allclose(nothing.standard_errors, 1.0)
