"""Search among random subsets, against trying each by itself with textbook formulas."""

import numpy as np
import pytest

from fewbench_papers.algorithms import subset_search
from fewbench_papers.algorithms.subset_search import (
    divisions,
    line_losses,
    ridge_losses,
    search,
    subset_scores,
)


def table(n_models=20, n_items=12, seed=0):
    rng = np.random.default_rng(seed)
    ability, ease = rng.normal(size=(n_models, 1)), rng.normal(size=n_items)
    return (rng.random((n_models, n_items)) < 1 / (1 + np.exp(-ability - ease))).astype(float)


def draws(n_items, size, count, seed=1):
    return np.random.default_rng(seed).permuted(np.tile(np.arange(n_items), (count, 1)), axis=1)[
        :, :size
    ]


def test_scores_on_subsets_are_weighted_means():
    values, weights, subsets = table(), np.linspace(1, 3, 12), draws(12, 4, 7)
    said = subset_scores(values, weights, subsets)
    for row, subset in enumerate(subsets):
        expected = np.average(values[:, subset], axis=1, weights=weights[subset])
        np.testing.assert_allclose(said[row], expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_is_that_of_lines_fitted_one_by_one(weighted):
    values = table(seed=2)
    weights = np.linspace(1, 4, 12) / 30 if weighted else np.full(12, 1 / 12)
    full = values @ weights
    held_out = divisions(20, 0.25, 6, np.random.default_rng(3))
    subsets = draws(12, 3, 30)
    said = line_losses(values, full, weights, held_out)(subsets)
    for loss, subset in zip(said, subsets, strict=True):
        x = np.average(values[:, subset], axis=1, weights=weights[subset])
        errors = []
        for out in held_out.T:
            line = np.polynomial.Polynomial.fit(x[~out], full[~out], 1)
            errors.append(((line(x[out]) - full[out]) ** 2).mean())
        assert loss == pytest.approx(np.mean(errors), rel=1e-8)


def test_where_a_subset_tells_nothing_the_mean_is_all_there_is():
    values = table(seed=4)
    values[:, :3] = 1.0  # all have these right
    full = values.mean(axis=1)
    out = divisions(20, 0.2, 1, np.random.default_rng(0))
    loss = line_losses(values, full, np.full(12, 1 / 12), out)(np.array([[0, 1, 2]]))
    held = out[:, 0]
    assert loss[0] == pytest.approx(((full[held] - full[~held].mean()) ** 2).mean())


@pytest.mark.parametrize(("n_models", "size"), [(40, 5), (12, 9)])  # fewer items, more items
def test_the_loss_is_that_of_ridge_regressions_fitted_one_by_one(n_models, size):
    from sklearn.linear_model import RidgeCV

    values = table(n_models, seed=5)
    full = values.mean(axis=1)
    out = divisions(n_models, 0.25, 1, np.random.default_rng(1))[:, 0]
    subsets = draws(12, size, 20)
    said = ridge_losses(values, full, out)(subsets)
    for loss, subset in zip(said, subsets, strict=True):
        fitted = RidgeCV().fit(values[~out][:, subset], full[~out])
        error = np.abs(fitted.predict(values[out][:, subset]) - full[out]).mean()
        assert loss == pytest.approx(error, rel=1e-7)


def test_ridge_on_constant_answers_predicts_the_mean():
    values = table(seed=6)
    values[:, :4] = 0.0
    full = values.mean(axis=1)
    out = np.arange(20) < 5
    loss = ridge_losses(values, full, out)(np.array([[0, 1, 2, 3]]))
    assert loss[0] == pytest.approx(np.abs(full[:5] - full[5:].mean()).mean())


def test_subsets_are_as_many_as_asked_distinct_and_equally_likely(monkeypatch):
    monkeypatch.setattr(subset_search, "CELLS", 60)  # blocks of a few
    seen = []

    def losses(subsets):
        seen.append(subsets)
        return np.ones(len(subsets))

    search(6, 2, 3001, losses, 6, np.random.default_rng(0))
    assert max(map(len, seen)) == 10
    drawn = np.sort(np.concatenate(seen), axis=1)
    assert drawn.shape == (3001, 2)
    assert (drawn[:, 0] < drawn[:, 1]).all()
    _, counts = np.unique(drawn @ [6, 1], return_counts=True)
    assert len(counts) == 15
    assert ((counts - 200) ** 2 / 200).sum() < 36.1  # χ²(14), p = 0.001


def test_of_all_items_there_is_one_subset():
    calls = []

    def losses(subsets):
        calls.append(len(subsets))
        return np.zeros(len(subsets))

    assert search(5, 5, 100, losses, 5, np.random.default_rng(0)).tolist() == [0, 1, 2, 3, 4]
    assert calls == [1]


@pytest.mark.parametrize(("n", "share", "held"), [(3, 0.1, 1), (3, 0.9, 1), (50, 0.1, 5)])
def test_some_are_held_out_and_two_at_least_are_not(n, share, held):
    out = divisions(n, share, 300, np.random.default_rng(0))
    assert out.shape == (n, 300)
    assert set(out.sum(axis=0)) == {held}
    assert out.any(axis=1).all()  # each at some time
