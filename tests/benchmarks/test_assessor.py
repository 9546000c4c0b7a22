"""The generic assessor against scikit-learn on written-out pairs, and against simulated truth."""

import numpy as np
import pytest

from fewbench.testing.conformance import StaticConformance
from papers.methods import find
from papers.methods.assessor import PENALTIES, fit_assessor


class TestAssessor(StaticConformance):
    estimates = False

    @pytest.fixture
    def method(self):
        return find("assessor")


def simulated(n_models=60, n_items=120, seed=0):
    rng = np.random.default_rng(seed)
    ability, easy = rng.normal(size=n_models), rng.normal(size=n_items)
    truth = 1.0 / (1.0 + np.exp(-ability[:, None] - easy))
    return (rng.random(truth.shape) < truth).astype(float), truth


def log_odds(rights, n):
    share = (rights + 0.5) / (n + 1)
    return np.log(share / (1 - share))


def written_out(values, reference, alpha):
    """Every pair as a row: log odds without the model itself, and the model's answers."""
    from sklearn.linear_model import LogisticRegression

    n_models, n_items = values.shape
    rest = [i for i in range(n_items) if i not in reference]
    means = values[:, reference].mean(axis=0)
    rows, labels = [], []
    for m in range(n_models):
        others = np.delete(values, m, axis=0)
        for i in rest:
            odds = log_odds(others[:, i].sum(), n_models - 1)
            rows.append([odds, *(values[m, reference] - means)])
            labels.append(values[m, i])
    # The slope is hardly penalised here, where scikit-learn penalises all: scale it up there.
    rows = np.array(rows)
    rows[:, 0] *= 1000.0
    fitted = LogisticRegression(C=1 / alpha, tol=1e-10, max_iter=100_000, solver="newton-cholesky")
    fitted.fit(rows, labels)
    return fitted.intercept_[0], 1000.0 * fitted.coef_[0, 0], fitted.coef_[0, 1:], means


@pytest.mark.parametrize("alpha", [1.0, 100.0])
def test_as_scikit_learn_on_written_out_pairs(alpha):
    values, _ = simulated(20, 40)
    reference = np.arange(0, 40, 7)
    intercept, slope, weights, means = written_out(values, reference, alpha)
    found = fit_assessor(values, reference, alpha)
    np.testing.assert_allclose(found.weights, weights, atol=2e-4)
    base = intercept + slope * log_odds(values.sum(axis=0), 20)
    np.testing.assert_allclose(found.base, base, atol=2e-3)
    new = np.array([[1.0, 0.0, 1.0, 1.0, 0.0, 0.0]])
    level = base + (new[0] - means) @ weights
    np.testing.assert_allclose(found.probabilities(new)[0], 1 / (1 + np.exp(-level)), atol=1e-3)


def test_chosen_penalty_is_of_the_grid_and_keeps_from_learning_models_by_heart():
    values, truth = simulated(100, 340, seed=1)
    reference = np.arange(40)  # as many answers as sources: their noise can just be fitted
    chosen, authors = (fit_assessor(values[:40], reference, alpha) for alpha in (None, 1.0))
    assert chosen.alpha in [share * 300 for share in PENALTIES]

    def error(model):
        said = model.probabilities(values[40:, :40])[:, 40:].mean(axis=1)
        return np.abs(said - truth[40:, 40:].mean(axis=1)).mean()

    assert error(chosen) < 0.8 * error(authors)


def test_own_labels_are_not_seen():
    """Where nothing tells of anything, the log odds of the others are worth little to the fit."""
    values = (np.random.default_rng(2).random((6, 400)) < 0.5).astype(float)
    found = fit_assessor(values, np.arange(3), 1e6)
    with_own = log_odds(values.sum(axis=0), 6)
    slope = np.polyfit(with_own[3:], found.base[3:], 1)[0]
    assert slope < 0.1  # with a model's own answer among the six it would be 0.9


@pytest.mark.parametrize("kind", ["ones", "zeros", "one column", "shares", "one model"])
def test_tables_that_tell_nothing(kind):
    values = simulated(8, 20)[0]
    if kind == "ones":
        values[:] = 1.0
    elif kind == "zeros":
        values[:] = 0.0
    elif kind == "one column":
        values[:, 2:] = 1.0
    elif kind == "shares":
        values = np.random.default_rng(0).random((8, 20))
    else:
        values = values[:1]
    found = fit_assessor(values, np.arange(4))
    said = found.probabilities(np.vstack([np.zeros(4), np.ones(4)]))
    assert np.isfinite(said).all()
    assert (said >= 0).all()
    assert (said <= 1).all()
    if kind in ("ones", "zeros"):
        assert np.abs(said - values[0, 0]).max() < 0.1


def test_all_items_as_reference():
    values = simulated(10, 12)[0]
    found = fit_assessor(values, np.arange(12))
    assert np.isfinite(found.probabilities(values)).all()
