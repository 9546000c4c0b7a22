"""Forward selection against trying every column and solving each ridge regression."""

import numpy as np
import pytest

from fewbench.algorithms.choice.forward import forward_selection


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
