"""Low-rank completion and imputation against the equations written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench_papers.algorithms.completion.low_rank import (
    NOISES,
    LowRank,
    fit_low_rank,
    principal_components,
)


def table(n_models, n_items, rank, noise=0.0, seed=0):
    """Scores in [0, 1] whose departures from the items' means are of a rank, plus noise."""
    rng = np.random.default_rng(seed)
    abilities = rng.uniform(-1, 1, (n_models, rank))
    loadings = rng.uniform(-0.4, 0.4, (rank, n_items)) / max(rank, 1)
    values = 0.5 + abilities @ loadings + noise * rng.normal(size=(n_models, n_items))
    return np.clip(values, 0.0, 1.0)


def binary(n_models, n_items, seed=0):
    rng = np.random.default_rng(seed)
    chance = table(n_models, n_items, 2, seed=seed)
    return (rng.random(chance.shape) < chance).astype(float)


shapes = st.tuples(st.integers(1, 14), st.integers(1, 12), st.integers(0, 99))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("known", [1, 3, 8, 20])
def test_expected_scores_are_those_of_the_dense_normal_distribution(noise, known):
    model = fit_low_rank(binary(30, 40), 3, noise)
    assert model.rank == 3
    rng = np.random.default_rng(1)
    items = rng.permutation(40)[:known]
    answers = rng.random((5, known))
    covariance = model.loadings @ model.loadings.T + np.diag(model.noise)
    between, within = covariance[:, items], covariance[np.ix_(items, items)]
    dense = model.means + (answers - model.means[items]) @ np.linalg.solve(within, between.T)
    rest = np.setdiff1d(np.arange(40), items)
    assert ((dense[:, rest] > 0) & (dense[:, rest] < 1)).mean() > 0.8
    said = model.complete(items, answers)
    np.testing.assert_allclose(said[:, rest], np.clip(dense[:, rest], 0, 1), atol=1e-9)
    assert np.array_equal(said[:, items], answers)
    whole = dense.copy()
    whole[:, items] = answers
    mean = model.average(items, answers, np.full((40, 1), 1 / 40))[:, 0]
    np.testing.assert_allclose(mean, whole.mean(axis=1), atol=1e-9)


def test_a_tall_table_has_the_components_and_noise_of_scikit_learn():
    from sklearn.decomposition import PCA

    values = table(3000, 8, 2, 0.05)
    model = fit_low_rank(values, 2, "same")
    theirs = PCA(2).fit(values)
    assert model.noise == pytest.approx(theirs.noise_variance_, rel=2e-3)
    ours = model.loadings @ model.loadings.T + np.diag(model.noise)
    np.testing.assert_allclose(ours, theirs.get_covariance(), atol=1e-4)


def test_own_noise_is_what_is_left_of_an_item_s_variance():
    """Per degree of freedom; items of little noise get a quarter of the mean."""
    values = binary(12, 30, seed=1)
    values[:, 0] = 1.0
    centred = values - values.mean(axis=0)
    u, s, vt = np.linalg.svd(centred, full_matrices=False)
    left = centred - (u[:, :2] * s[:2]) @ vt[:2]
    own = (left**2).sum(axis=0) / (12 - 1 - 2)
    model = fit_low_rank(values, 2, "own")
    np.testing.assert_allclose(model.noise, np.maximum(own, own.mean() / 4))
    assert model.noise[0] == pytest.approx(own.mean() / 4)


def test_the_chosen_rank_is_near_the_best_for_new_rows():
    rng = np.random.default_rng(3)
    level = rng.uniform(-0.2, 0.2, (200, 1))
    values = np.clip(table(200, 300, 3, 0.2, seed=3) + level, 0.0, 1.0)
    sources, targets = values[:120], values[120:]
    items = rng.permutation(300)[:40]

    def error(model):
        said = model.complete(items, targets[:, items]).mean(axis=1)
        return float(((said - targets.mean(axis=1)) ** 2).mean())

    chosen = error(fit_low_rank(sources, observed=40))
    each = [error(fit_low_rank(sources, rank, "same")) for rank in range(14)]
    assert chosen <= 1.15 * min(each)
    assert chosen < 0.1 * each[0]


def test_one_known_item_allows_fewer_abilities_than_many():
    values = table(60, 200, 5, 0.1, seed=4)
    few, tenth, many = (fit_low_rank(values, noise="same", observed=n).rank for n in (1, 20, 100))
    assert few < tenth <= many
    assert fit_low_rank(values, noise="same").rank == tenth


def test_the_weights_say_whose_mean_decides():
    """Half of the items follow three abilities, half only noise: weights tell which matter."""
    rng = np.random.default_rng(2)
    values = np.hstack([table(60, 100, 3, 0.02, seed=2), rng.uniform(0, 1, (60, 100))])
    ranks = []
    for half in (np.arange(200) < 100, np.arange(200) >= 100):
        ranks.append(fit_low_rank(values, noise="own", observed=60, weights=half / 100).rank)
    assert ranks[0] >= 3 > ranks[1]


@given(shapes, st.integers(0, 40), st.sampled_from([None, 0, 1, 2, 5, 50]))
def test_scores_are_in_range_and_answers_are_kept(shape, known, rank):
    """Also with one source, one item, no answers, and more abilities than sources."""
    n_models, n_items, seed = shape
    values = binary(n_models, n_items, seed)
    rng = np.random.default_rng(seed)
    items = rng.permutation(n_items)[:known]
    answers = rng.random((3, len(items)))
    model = fit_low_rank(values, rank, observed=len(items))
    assert model.rank <= max(0, min(n_models - 2, n_items - 1, 50 if rank is None else rank))
    assert (model.noise > 0).all()
    said = model.complete(items, answers)
    assert said.shape == (3, n_items)
    assert ((said >= 0) & (said <= 1)).all()
    assert np.array_equal(said[:, items], answers)
    weights = rng.random((n_items, 2))
    sums = model.average(items, answers, weights)
    low = answers @ weights[items]
    high = low + np.delete(weights, items, axis=0).sum(axis=0)
    assert (sums >= low - 1e-9).all()
    assert (sums <= high + 1e-9).all()
    if not len(items):
        np.testing.assert_allclose(said, np.tile(values.mean(axis=0), (3, 1)), atol=1e-12)
    if len(items) == n_items:
        np.testing.assert_allclose(sums, said @ weights)


@pytest.mark.parametrize("rank", [None, 0, 3])
def test_sources_that_are_all_alike_leave_their_scores(rank):
    values = np.tile(np.random.default_rng(0).random(15), (9, 1))
    model = fit_low_rank(values, rank)
    assert model.rank == 0
    said = model.complete(np.array([2]), np.array([[0.9]]))
    expected = values[0].copy()
    expected[2] = 0.9
    np.testing.assert_allclose(said[0], expected)


def test_constant_items_stay_what_they_are():
    values = binary(20, 30)
    values[:, ::3], values[:, 1] = 1.0, 0.0
    for noise in NOISES:
        model = fit_low_rank(values, 2, noise)
        items = np.array([0, 2, 4, 5, 8])
        said = model.complete(items, np.array([[0.0, 0, 0, 0, 0], [1.0, 1, 1, 1, 1]]))
        rest = np.setdiff1d(np.arange(0, 30, 3), items)
        np.testing.assert_allclose(said[:, rest], 1.0)
        np.testing.assert_allclose(said[:, 1], 0.0)
        # An answer that none of the sources gave tells nothing of the abilities.
        other = model.complete(items[1:], np.array([[0.0, 0, 0, 0], [1.0, 1, 1, 1]]))
        np.testing.assert_allclose(said[:, 9:], other[:, 9:], atol=1e-12)


def test_the_mean_is_kept_possible_as_a_whole_and_not_item_by_item():
    model = LowRank(np.array([0.5, 0.9, 0.3]), np.array([[1.0], [1.0], [1.0]]), np.full(3, 1e-9))
    items, answers = np.array([0]), np.array([[0.8]])
    thirds = np.full((3, 1), 1 / 3)
    np.testing.assert_allclose(model.complete(items, answers), [[0.8, 1.0, 0.6]], atol=1e-6)
    said = model.average(items, answers, thirds)[0, 0]
    assert said == pytest.approx((0.8 + 1.2 + 0.6) / 3, abs=1e-6)
    far = model.average(items, np.array([[9.0]]), thirds)[0, 0]
    assert far == pytest.approx((9.0 + 1.0 + 1.0) / 3)


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
