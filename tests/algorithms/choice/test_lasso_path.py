"""The lasso's support against coordinate descent."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso, lars_path

from fewbench.algorithms.choice.lasso_path import lasso_support
from fewbench.testing import simulate


@pytest.mark.parametrize("k", [1, 3, 8, 14])
def test_the_support_is_that_of_a_lasso_of_some_penalty(k):
    rng = np.random.default_rng(k)
    x = rng.random((25, 60))
    y = x[:, :10].mean(axis=1) + 0.02 * rng.normal(size=25)
    chosen = set(lasso_support(x, y, k).tolist())
    assert len(chosen) == k
    penalties = np.geomspace(1e-1, 1e-6, 400)
    found = [
        set(np.flatnonzero(Lasso(alpha, max_iter=100_000, tol=1e-7).fit(x, y).coef_).tolist())
        for alpha in penalties
        if alpha > 1e-4 * 25 / k
    ]
    assert chosen in found


def test_it_ends_at_one_less_than_there_are_rows():
    x = np.random.default_rng(0).random((7, 40))
    chosen = lasso_support(x, x.mean(axis=1), 30)
    assert 4 <= len(chosen) <= 6
    assert len(set(chosen.tolist())) == len(chosen)


def test_twins_and_constant_columns_take_no_part():
    rng = np.random.default_rng(3)
    base = rng.integers(0, 2, (30, 4)).astype(float)
    x = np.column_stack([np.ones(30), base[:, [0, 0, 1, 1, 2, 3]]])
    y = base @ [0.4, 0.3, 0.2, 0.1]
    assert set(lasso_support(x, y, 6).tolist()) == {1, 3, 5, 6}
    assert len(lasso_support(np.ones((5, 3)), np.arange(5.0), 2)) == 0
    assert len(lasso_support(base, np.full(30, 0.5), 2)) == 0


@pytest.fixture
def starts(monkeypatch):
    """How many steps were asked for, each time that a path was begun."""
    asked = []

    def counted(*args, **settings):
        asked.append(settings["max_iter"])
        return lars_path(*args, **settings)

    monkeypatch.setattr("sklearn.linear_model.lars_path", counted)
    return asked


@pytest.mark.parametrize("k", [5, 15, 30, 40, 100])
def test_the_path_is_followed_once(k, starts):
    scores = simulate(40, 300, seed=1)
    assert len(lasso_support(scores.filled, scores.full_scores(), k)) >= min(k, 20)
    assert len(starts) == 1


@pytest.mark.filterwarnings("ignore:Regressors in active set degenerate")
@pytest.mark.filterwarnings("ignore:Early stopping the lars path")
@pytest.mark.parametrize(("k", "times"), [(20, 1), (45, 1), (57, 2)])
def test_it_is_the_first_knot_of_the_whole_path_with_so_many_columns(k, times, starts):
    """Also where columns left so often that the path has to be followed further.

    The end of the path depends on rounding, and so on the processor: there it may be followed once.
    """
    scores = simulate(60, 400, 1, seed=0)
    x, y = scores.filled, scores.full_scores()
    x = x[:, np.sort(np.unique(x, axis=1, return_index=True)[1])]
    x = x[:, x.max(axis=0) > x.min(axis=0)]
    found = lasso_support(x, y, k)
    assert 1 <= len(starts) <= times
    x = x[:, np.arange(x.shape[1])]  # in memory as there
    _, _, path = lars_path(x - x.mean(axis=0), y - y.mean(), method="lasso", max_iter=608)
    knot = np.flatnonzero((path != 0).sum(axis=0) >= k)[0]
    assert set(found.tolist()) == set(np.flatnonzero(path[:, knot]).tolist())
