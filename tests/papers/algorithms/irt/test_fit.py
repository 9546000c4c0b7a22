"""Items' parameters, abilities and their number found again from simulated answers."""

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes

from fewbench_papers.algorithms.irt import choose_dimensions, fit_irt
from fewbench_papers.algorithms.irt.fit import BEGIN, MOST_STEPS, VariationalFit, fit_by_quadrature

EVERY = pytest.mark.parametrize("estimation", ["marginal", "variational"])


def with_each(*cases):
    """Every case with every estimation there is for as many abilities."""
    return [
        (*case, estimation)
        for case in cases
        for estimation in ["marginal", "variational"][case[0] > 1 :]
    ]


def fitted(values, dimensions, estimation, steps=MOST_STEPS):
    if estimation == "variational" or dimensions > 1:
        return VariationalFit(values, dimensions).run(steps)
    return fit_by_quadrature(values, VariationalFit(values, 1).run(BEGIN), steps)


def alike(x, y):
    return np.corrcoef(np.ravel(x), np.ravel(y))[0, 1]


def turned(model, truth):
    """The rotation of abilities, on which no answer depends, that is nearest to the truth."""
    return orthogonal_procrustes(model.discrimination, truth.a)[0]


# Least correlations of abilities, discriminations and intercepts with the truth, on 400 models
# and 150 items: two thirds of a point to a point below what was found.
FOUND = {
    (1, 0.0): (0.97, 0.92, 0.98),
    (1, 0.3): (0.96, 0.90, 0.98),
    (3, 0.0): (0.955, 0.975, 0.97),
    (3, 0.3): (0.94, 0.965, 0.965),
}


@pytest.mark.parametrize(("dimensions", "missing", "estimation"), with_each(*FOUND))
def test_the_truth_is_found(simulated, dimensions, missing, estimation):
    truth = simulated(1, 400, 150, dimensions, missing)
    model = fitted(truth.values, dimensions, estimation)
    turn = turned(model, truth)
    ability, a, b = FOUND[dimensions, missing]
    assert alike(model.sources.means @ turn, truth.ability) > ability
    assert alike(model.discrimination @ turn, truth.a) > a
    assert alike(model.intercept, truth.b) > b
    chance = model.expected(model.sources.means)
    assert np.abs(chance - truth.chance).mean() < 0.07


@pytest.mark.parametrize("dimensions", [1, 2, 5])
def test_abilities_have_mean_0_and_covariance_1_and_are_in_order(simulated, dimensions):
    truth = simulated(4, 200, 120, dimensions, missing=0.2)
    model = fit_irt(truth.values, dimensions)
    means, doubt = model.sources.means, model.sources.covariances
    np.testing.assert_allclose(means.mean(axis=0), 0.0, atol=1e-6)
    spread = means.T @ means / len(means) + doubt.mean(axis=0)
    np.testing.assert_allclose(spread, np.eye(dimensions), atol=1e-5)
    size = model.discrimination.T @ model.discrimination
    np.testing.assert_allclose(size, np.diag(np.diagonal(size)), atol=1e-6 * np.trace(size))
    assert (np.diff(np.diagonal(size)) <= 0).all()
    assert (model.discrimination.sum(axis=0) >= 0).all()


def test_the_order_of_models_and_items_does_not_matter(simulated):
    values = simulated(10, 60, 80, 2, missing=0.1).values
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(60), rng.permutation(80)
    one, two = fit_irt(values, 2), fit_irt(values[np.ix_(rows, columns)], 2)
    np.testing.assert_allclose(two.discrimination, one.discrimination[columns], atol=2e-3)
    np.testing.assert_allclose(two.sources.means, one.sources.means[rows], atol=2e-3)


@EVERY
def test_constant_items_are_easy_or_hard_and_tell_little(simulated, estimation):
    truth = simulated(13, 60, 30)
    values = truth.values.copy()
    values[:, 0], values[:, 1] = 1.0, 0.0
    model = fitted(values, 1, estimation)
    assert np.isfinite(model.discrimination).all()
    assert model.intercept[0] == model.intercept.max()
    chance = model.expected(model.sources.means)
    assert chance[:, 0].mean() > 0.9
    assert chance[:, 1].mean() < 0.1
    told = model.information(model.sources.means).sum(axis=0)
    assert told[:2].max() < np.median(told)


@pytest.mark.parametrize(("dimensions", "estimation"), with_each((1,), (2,)))
@pytest.mark.parametrize("value", [0.0, 1.0, 0.5])
def test_a_constant_table_is_survived(value, dimensions, estimation):
    model = fitted(np.full((6, 9), value), dimensions, estimation)
    chance = model.expected(model.sources.means)
    assert np.abs(chance - value).max() < 0.25


@EVERY
def test_one_model_and_one_item_are_survived(estimation):
    one = fitted(np.array([[1.0, 0.0, 1.0]]), 1, estimation)
    assert np.isfinite(one.expected(one.sources.means)).all()
    assert one.dimensions == 1
    item = fitted(np.array([[1.0], [0.0], [1.0]]), 1, estimation)
    assert item.expected(item.sources.means)[[0, 2]].min() > item.expected(item.sources.means)[1]


def test_there_are_fewer_abilities_than_models_and_no_more_than_items(simulated):
    values = simulated(14, 4, 30).values
    assert fit_irt(values, 10).dimensions == 3
    assert fit_irt(values[:, :2], 10).dimensions == 2
    assert np.isfinite(fit_irt(values, 10).expected(fit_irt(values, 10).sources.means)).all()


@EVERY
def test_models_and_items_without_answers_are_survived_as_the_average(simulated, estimation):
    values = simulated(15, 60, 40, missing=0.1).values
    values[7], values[:, 5] = np.nan, np.nan
    model = fitted(values, 1, estimation)
    rest = np.delete(np.arange(60), 7)
    assert abs(model.sources.means[7, 0]) < 0.1
    assert model.sources.standard_errors[7, 0] == model.sources.standard_errors.max()
    usual = model.discrimination.mean() if estimation == "marginal" else 0.0
    assert model.discrimination[5, 0] == pytest.approx(usual, abs=0.1)
    assert np.isfinite(model.expected(model.sources.means)).all()
    without = fitted(values[rest], 1, estimation)
    # What the others are found to be depends on such a row only through the common scale.
    assert alike(without.sources.means, model.sources.means[rest]) > 0.9999


def test_missing_cells_are_not_taken_for_wrong_answers(simulated):
    truth = simulated(16, 300, 100)
    values = truth.values.copy()
    weak = truth.ability[:, 0] < 0
    values[np.ix_(weak, np.arange(50))] = np.nan  # the weak were not run on half of the items
    model = fit_irt(values)
    assert alike(model.sources.means, truth.ability) > 0.95
    assert alike(model.intercept[:50], truth.b[:50]) > 0.95
    filled = fit_irt(np.nan_to_num(values))
    off, as_wrong = (
        np.abs(each.expected(each.sources.means) - truth.chance)[weak, :50].mean()
        for each in (model, filled)
    )
    assert off < 0.11 < 0.3 < as_wrong


def test_one_ability_is_integrated_on_the_grid_by_default(simulated):
    values = simulated(18, 60, 40).values
    exact, default = fitted(values, 1, "marginal"), fit_irt(values)
    np.testing.assert_array_equal(default.discrimination, exact.discrimination)


def test_the_marginal_likelihood_rises_with_every_round(simulated):
    """Of the answers, abilities integrated out; priors of items are weak beside 300 models."""
    values = simulated(19, 300, 40, missing=0.2).values
    nodes, run = np.linspace(-6, 6, 301), ~np.isnan(values)
    weights = np.exp(-0.5 * nodes**2)
    weights /= weights.sum()

    def marginal(steps):
        chance = fitted(values, 1, "marginal", steps).expected(nodes[:, None])
        told = np.where(run[:, None], values[:, None], 1.0) * np.log(chance)
        told += np.where(run[:, None], 1 - values[:, None], 0.0) * np.log1p(-chance)
        told = np.where(run[:, None], told, 0.0).sum(axis=2)
        return np.log(np.exp(told) @ weights).sum()

    rounds = [marginal(steps) for steps in (1, 2, 4, 8, 60)]
    assert (np.diff(rounds) > -0.5).all()  # of some ten thousand
    assert rounds[-1] > rounds[0]


def chosen(values, seed=0):
    return choose_dimensions(values, np.random.default_rng(seed))


@pytest.mark.parametrize("dimensions", [1, 2, 5])
def test_it_is_found_again(simulated, dimensions):
    values = simulated(20, 250, 400, dimensions, missing=0.1).values
    assert chosen(values) == dimensions


def test_answers_at_random_have_one_ability():
    values = (np.random.default_rng(0).random((80, 150)) < 0.6).astype(float)
    assert chosen(values) == 1


def test_of_many_items_a_thousand_are_enough(simulated):
    assert chosen(simulated(23, 120, 1500, 2).values) == 2


@pytest.mark.parametrize("shape", [(1, 9), (2, 30), (30, 1), (2, 2)])
def test_there_are_fewer_abilities_than_models_and_than_items(shape):
    values = (np.random.default_rng(1).random(shape) < 0.5).astype(float)
    assert chosen(values) == 1


def test_rows_without_answers_are_survived(simulated):
    values = simulated(25, 60, 80).values
    values[3], values[:, 4] = np.nan, np.nan
    assert chosen(values) == 1
    assert chosen(np.full((5, 6), np.nan)) == 1
