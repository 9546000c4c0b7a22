"""Ridge regression and nearest neighbors, in closed form with deterministic ties."""

from dataclasses import dataclass

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms import ties

PENALTIES = np.logspace(-3, 3, 25)


@dataclass(frozen=True)
class RidgeFit:
    """A fitted ridge regression: y = (x - x_mean) coefficients + y_mean.

    `coefficients` has shape (features, outputs), `x_mean` (features,), and `y_mean` and the
    penalties `alpha` (outputs,).
    """

    coefficients: FloatArray
    x_mean: FloatArray
    y_mean: FloatArray
    alpha: FloatArray

    def predict(self, x: FloatArray) -> FloatArray:
        """Predict outputs, shape (rows, outputs)."""
        return np.asarray((x - self.x_mean) @ self.coefficients + self.y_mean)


def fit_ridge(x: FloatArray, y: FloatArray, alpha: float | None = None) -> RidgeFit:
    """Fit ridge regression by one singular value decomposition.

    `x` has shape (rows, features), `y` (rows, outputs). `alpha` is the penalty on squared
    coefficients. By default each output gets the penalty with the least leave-one-out error on a
    grid of multiples of the mean squared singular value.

    >>> x = np.array([[0.0], [1.0], [2.0]])
    >>> fit_ridge(x, 2 * x + 1, alpha=0.0).predict(np.array([[3.0]])).round(6).tolist()
    [[7.0]]
    """
    x_mean, y_mean = x.mean(axis=0), y.mean(axis=0)
    u, s, vt = np.linalg.svd(x - x_mean, full_matrices=False)
    # Against the size of x itself: what is left of a constant or a dependent column is rounding.
    size = max(s.max(initial=0.0), float(np.abs(x_mean).max(initial=0.0)) * np.sqrt(len(x)))
    rank = s > size * ties.CLOSE
    u, s, vt = u[:, rank], s[rank], vt[rank]
    projected = u.T @ (y - y_mean)
    if alpha is None:
        alphas = _best_alphas(u, s, projected, y - y_mean)
    else:
        alphas = np.full(y.shape[1], float(alpha))
    shrunk = projected * (s[:, None] / (s[:, None] ** 2 + alphas))
    return RidgeFit(vt.T @ shrunk, x_mean, y_mean, alphas)


def _best_alphas(u: FloatArray, s: FloatArray, projected: FloatArray, y: FloatArray) -> FloatArray:
    """Leave-one-out residuals are residual / (1 - leverage); the mean takes 1/rows of leverage."""
    if not len(s):
        return np.ones(y.shape[1])
    grid = PENALTIES * float((s**2).mean())
    shrink = s[:, None] ** 2 / (s[:, None] ** 2 + grid)  # (rank, grid)
    residual = y.T[:, :, None] - u @ (shrink * projected.T[:, :, None])  # (outputs, rows, grid)
    leverage = (u**2) @ shrink + 1.0 / len(y)
    error = ((residual / np.maximum(1.0 - leverage, 1e-9)) ** 2).mean(axis=1)
    scale = (y**2).mean(axis=0)[:, None]  # 0 for all penalties where an output is constant
    return np.asarray(grid[ties.argmin(error, axis=1, scale=scale)])


def nearest(rows: FloatArray, among: FloatArray, k: int) -> IntArray:
    """Return the positions of the k nearest of `among` for each row by cosine, shape (rows, k).

    Raises ValueError if there are fewer than k.

    >>> nearest(np.array([[0.9, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]]), 1).tolist()
    [[1]]
    """
    if k > len(among):
        raise ValueError(f"{k} nearest are asked for, there are {len(among)}")
    distances = 1.0 - _unit(rows) @ _unit(among).T
    return ties.argsort(distances, scale=1e-3)[:, :k]


def _unit(rows: FloatArray) -> FloatArray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0, norms, 1.0))
