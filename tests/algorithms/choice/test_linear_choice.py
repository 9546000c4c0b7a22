"""Columns chosen for a linear model, against the equations written out."""

import numpy as np
import pytest

from fewbench.algorithms import ties
from fewbench.algorithms.choice.linear_choice import forward_selection
from fewbench.testing import simulate
from fewbench_papers.benchmark_prediction.linear_choice import (
    Adam,
    choose_jointly,
    lasso_support,
    onto_simplex,
    weights_by_steps,
)
from fewbench_papers.bento.ridge_forward import PENALTIES, ridge_forward


def loss(x, y, alpha):
    x, y = x - x.mean(axis=0), y - y.mean()
    b = np.linalg.solve(x.T @ x + alpha * np.eye(x.shape[1]), x.T @ y)
    return float(((y - x @ b) ** 2).sum() + alpha * (b**2).sum())


@pytest.mark.parametrize("alpha", [0.1, 5.0])
@pytest.mark.parametrize("k", [1, 4, 15])  # 15 columns of 12 rows: more than can be independent
def test_each_column_is_the_best_to_add(alpha, k):
    rng = np.random.default_rng(0)
    x, y = rng.random((12, 30)), rng.random(12)
    chosen = []
    for _ in range(k):
        losses = [np.inf if j in chosen else loss(x[:, [*chosen, j]], y, alpha) for j in range(30)]
        chosen.append(int(np.argmin(losses)))
    assert forward_selection(x, y, k, alpha).tolist() == chosen


def test_of_identical_columns_the_first_is_taken_first():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, (20, 6)).astype(float)
    y = x[:, 2] + 0.1 * rng.random(20)
    assert forward_selection(x[:, [2, 0, 2, 1]], y, 1, 1.0).tolist() == [0]


def test_nothing_is_chosen_where_nothing_explains():
    x = np.random.default_rng(2).random((8, 5))
    assert len(forward_selection(x, np.full(8, 0.3), 3, 1.0)) == 0
    assert len(forward_selection(np.ones((8, 5)), x[:, 0], 3, 1.0)) == 0
    assert len(forward_selection(x, x[:, 0], 9, 1.0)) == 5


def refitted(x, y, groups, penalty):
    """Root mean square held-out error of a ridge that is fitted anew without each group."""
    errors = []
    for group in np.unique(groups):
        out = groups == group
        mean, level = x[~out].mean(axis=0), y[~out].mean()
        z = x[~out] - mean
        weights = np.linalg.solve(z.T @ z + penalty * np.eye(x.shape[1]), z.T @ (y[~out] - level))
        errors.append((y[out] - level - (x[out] - mean) @ weights) ** 2)
    return np.sqrt(np.concatenate(errors).mean())


@pytest.mark.parametrize("families", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_every_step_is_the_best_by_refitting(seed, families):
    rng = np.random.default_rng(seed)
    x = rng.random((25, 7))
    y = x @ rng.random(7) + 0.05 * rng.normal(size=25)
    groups = rng.integers(0, 8, 25) if families else np.arange(25)
    chosen, errors = ridge_forward(x, y, 3, groups)
    size = ((x - x.mean(axis=0)) ** 2).sum() / 7
    for step in range(3):
        kept = chosen[:step].tolist()
        tried = {
            other: min(refitted(x[:, [*kept, other]], y, groups, size * p) for p in PENALTIES)
            for other in set(range(7)) - set(kept)
        }
        assert tried[chosen[step]] == pytest.approx(min(tried.values()))
        assert errors[step] == pytest.approx(tried[chosen[step]])


def test_nothing_to_choose_by():
    chosen, errors = ridge_forward(np.ones((4, 3)), np.arange(4.0), 2)
    assert len(set(chosen.tolist())) == 2
    assert np.isfinite(errors).all()
    chosen, _ = ridge_forward(np.eye(3), np.ones(3), 3)
    assert sorted(chosen.tolist()) == [0, 1, 2]


@pytest.mark.parametrize("k", [1, 3, 8, 14])
def test_the_support_is_that_of_a_lasso_of_some_penalty(k):
    from sklearn.linear_model import Lasso

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
    from sklearn.linear_model import lars_path

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
    """Also where columns left so often that the path has to be followed further."""
    from sklearn.linear_model import lars_path

    scores = simulate(60, 400, 1, seed=0)
    x, y = scores.filled, scores.full_scores()
    x = x[:, np.sort(np.unique(x, axis=1, return_index=True)[1])]
    x = x[:, x.max(axis=0) > x.min(axis=0)]
    found = lasso_support(x, y, k)
    assert 1 <= len(starts) <= times
    x = x[:, np.arange(x.shape[1])]  # in memory as there
    x, y = ties.shaken(x - x.mean(axis=0), 1e-5), ties.shaken(y - y.mean())
    _, _, path = lars_path(x, y, method="lasso", max_iter=608)
    is_used = np.abs(path) > 1e-9 * np.abs(path).max()
    knot = np.flatnonzero(is_used.sum(axis=0) >= k)[0]
    assert set(found.tolist()) == set(np.flatnonzero(is_used[:, knot]).tolist())


@pytest.mark.parametrize("total", [1.0, 3.0, 7.0])
def test_the_projection_is_the_nearest_point(total):
    rng = np.random.default_rng(0)
    values = rng.normal(0.5, 1.0, 7)
    made = onto_simplex(values, total)
    assert made.sum() == pytest.approx(total)
    assert made.min() >= 0
    assert made.max() <= 1
    distance = ((made - values) ** 2).sum()
    for _ in range(300):  # no other such point is nearer
        other = onto_simplex(rng.normal(0.5, 1.0, 7), total)
        assert ((other - values) ** 2).sum() >= distance - 1e-9


def test_adam_takes_steps_of_its_rate():
    step = Adam(0.1)
    assert step(np.array([4.0, -0.01])).tolist() == pytest.approx([0.1, -0.1], rel=1e-4)
    step(np.array([4.0, 0.01]))
    assert abs(step(np.array([4.0, -0.01]))[1]) < 0.1


def test_weights_come_near_least_squares_through_the_origin():
    rng = np.random.default_rng(1)
    x = rng.random((200, 4))
    y = x @ np.array([[0.4, 0.1], [0.2, 0.1], [0.1, 0.7], [0.3, 0.1]])
    weights = weights_by_steps(x, y, rng)
    assert np.abs(x @ weights - y).mean() < 0.02
    alone = weights_by_steps(x, y[:, :1], np.random.default_rng(5))
    both = weights_by_steps(x, y, np.random.default_rng(5))
    np.testing.assert_allclose(both[:, 0], alone[:, 0])


def test_a_column_that_tells_nothing_loses_its_weight():
    """By the decay alone: its slope is 0."""
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.random((200, 2)), np.zeros(200)])
    weights = weights_by_steps(x, x[:, :1] + x[:, 1:2], rng)
    np.testing.assert_allclose(weights[:, 0], [1, 1, 0], atol=0.02)


def test_columns_that_make_the_outcome_are_preferred():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2, (80, 30)).astype(float)
    y = x[:, :5].mean(axis=1)
    hits = [
        len(set(choose_jointly(x, y, 5, np.random.default_rng(s))) & set(range(5)))
        for s in range(5)
    ]
    assert np.mean(hits) > 2.5  # by chance 0.8


def test_a_table_of_one_row_gives_columns_too():
    assert len(choose_jointly(np.ones((1, 6)), np.ones(1), 3, np.random.default_rng(0))) == 3
