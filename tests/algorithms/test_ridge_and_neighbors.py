"""Ridge regression and nearest neighbors, against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.algorithms.ridge_and_neighbors import PENALTIES, fit_ridge, nearest


def problem(seed, rows, features, outputs=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, features)) * rng.lognormal(size=features)
    y = x @ rng.normal(size=(features, outputs)) + rng.normal(size=(rows, outputs)) + 3
    return x, y, rng.normal(size=(4, features))


shapes = st.tuples(st.integers(0, 999), st.integers(3, 25), st.integers(1, 30), st.integers(1, 3))


@given(shapes, st.floats(0.01, 1e4))
def test_fixed_penalty_is_that_of_scikit_learn(shape, alpha):
    from sklearn.linear_model import Ridge as SklearnRidge

    x, y, new = problem(*shape)
    ours = fit_ridge(x, y, alpha)
    theirs = SklearnRidge(alpha=alpha, solver="svd").fit(x, y)
    assert ours.alpha.tolist() == [alpha] * y.shape[1]
    expected = theirs.predict(new).reshape(4, -1)
    np.testing.assert_allclose(ours.predict(new), expected, rtol=1e-6, atol=1e-7)


@given(shapes)
def test_no_penalty_is_least_squares_of_least_norm(shape):
    from sklearn.linear_model import LinearRegression

    x, y, new = problem(*shape)
    theirs = LinearRegression().fit(x, y)
    np.testing.assert_allclose(
        fit_ridge(x, y, 0.0).predict(new), theirs.predict(new), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("shape", [(0, 20, 5), (1, 12, 30), (2, 8, 8)])
def test_the_chosen_penalty_has_the_least_leave_one_out_error(shape):
    from sklearn.linear_model import Ridge as SklearnRidge

    x, y, _ = problem(*shape)
    found = fit_ridge(x, y).alpha
    s = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    s = s[s > 1e-10 * s.max()]
    grid = PENALTIES * (s**2).mean()
    errors = []
    for alpha in grid:
        left_out = []
        for row in range(len(x)):
            rest = np.arange(len(x)) != row
            one = SklearnRidge(alpha=alpha, solver="svd").fit(x[rest], y[rest, 0])
            left_out.append((one.predict(x[[row]])[0] - y[row, 0]) ** 2)
        errors.append(np.mean(left_out))
    assert found == pytest.approx(grid[[int(np.argmin(errors))]])


@given(shapes)
def test_each_output_has_its_own_penalty_wherever_it_stands(shape):
    seed, rows, features, _ = shape
    x, y, new = problem(seed, rows, features, 4)
    y[:, 1] = np.random.default_rng(seed).normal(size=rows)  # noise: a large penalty
    together = fit_ridge(x, y)
    for output in range(4):
        alone = fit_ridge(x, y[:, [output]])
        assert together.alpha[[output]] == alone.alpha
        np.testing.assert_allclose(together.predict(new)[:, [output]], alone.predict(new))
    order = [2, 0, 3, 1]
    np.testing.assert_allclose(
        fit_ridge(x, y[:, order]).predict(new), together.predict(new)[:, order]
    )


@pytest.mark.parametrize("alpha", [None, 0.0, 1.0])
def test_constant_and_copied_columns_and_no_columns(alpha):
    x, y, new = problem(6, 10, 3)
    copied, new_copied = (np.hstack([a, a, np.full((len(a), 1), 0.3)]) for a in (x, new))
    assert np.isfinite(fit_ridge(copied, y, alpha).predict(new_copied)).all()
    same = np.full((10, 3), 0.1)
    np.testing.assert_allclose(fit_ridge(same, y, alpha).predict(new), y.mean(), rtol=1e-9)
    none = fit_ridge(np.empty((10, 0)), y, alpha).predict(np.empty((4, 0)))
    np.testing.assert_allclose(none, y.mean())


@given(st.integers(0, 999), st.integers(1, 20), st.integers(1, 30), st.integers(1, 20))
def test_those_of_scikit_learn(seed, n, features, k):
    from sklearn.neighbors import NearestNeighbors

    rng = np.random.default_rng(seed)
    among, rows = rng.normal(size=(n, features)), rng.normal(size=(5, features))
    if features == 1:
        return  # all are tied
    k = min(k, n)
    fitted = NearestNeighbors(n_neighbors=k, metric="cosine", algorithm="brute").fit(among)
    assert np.array_equal(nearest(rows, among, k), fitted.kneighbors(rows)[1])


def test_ties_go_to_the_lowest_index():
    among = np.array([[0.3, 0.1], [0.1, 0.7], [0.3, 0.1], [0.3, 0.1]])
    rows = among[[2, 1]]
    assert nearest(rows, among, 2).tolist() == [[0, 2], [1, 0]]
    assert nearest(rows, among, 4).shape == (2, 4)
    with pytest.raises(ValueError, match=r"5 nearest.*4"):
        nearest(rows, among, 5)


@given(st.integers(0, 999), st.integers(0, 30))
def test_copies_tie_wherever_they_stand(seed, place):
    """However a sum is rounded in its row of the matrix product."""
    rng = np.random.default_rng(seed)
    among = rng.random((31, 37))
    among[place] = among[30]
    row = among[30:] + 0.01
    assert nearest(row, among, 1)[0, 0] == place
