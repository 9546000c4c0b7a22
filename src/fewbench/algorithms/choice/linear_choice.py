"""Columns chosen one by one for a linear model: forward selection."""

from collections.abc import Callable

import numpy as np

from fewbench._blocks import Matrix, by_columns, is_large, row_blocks, total, whole
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms import ties

_SHARE = 0.1  # errors and shares explained are differences of numbers of this size
_NOTHING = 1e-10  # a share explained that is rounding
PIECE = 8  # rows


def forward_selection(x: Matrix, y: FloatArray, k: int, alpha: float) -> IntArray:
    """Choose columns one by one, each the column that lowers the ridge loss most.

    The loss of a set of columns is the least of |y - X b|² + alpha |b|², alpha > 0. With the
    residual maker P = (I + X Xᵀ / alpha)⁻¹ of the chosen columns, adding column x lowers the loss
    by (xᵀPy)² / (alpha + xᵀPx); P changes by a rank-one matrix.

    `x` has shape (rows, columns), `y` (rows,). Returns at most `k` columns in the order of choice:
    fewer if no remaining column explains anything. The first of equally good columns wins.

    >>> x = np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> forward_selection(x, np.array([0.1, 1.0, 1.2, 0.2]), 2, 0.1).tolist()
    [0, 1]
    """
    mean = by_columns(x, lambda part: part.mean(axis=0))
    along = _products_with(x, mean)
    y = y - y.mean()
    scale = float(y @ y)
    maker = np.eye(len(x))
    products = along(y)
    spread = total(((x[rows] - mean) ** 2).sum(axis=0) for rows in row_blocks(x)) + alpha
    free = np.ones(x.shape[1], dtype=bool)
    chosen: list[int] = []
    while len(chosen) < k and scale > 0:
        gain = np.where(free, products**2 / spread, 0.0) / scale
        best = int(ties.argmax(gain, scale=_SHARE))
        if gain[best] <= _NOTHING:
            break
        column = x[:, best] - mean[best]
        left = maker @ column
        size = alpha + float(column @ left)
        shared = along(left)
        maker -= np.outer(left, left) / size
        products = products - shared * (products[best] / size)
        spread = np.maximum(spread - shared**2 / size, alpha)
        chosen.append(best)
        free[best] = False
    return np.array(chosen, dtype=np.intp)


def _products_with(x: Matrix, mean: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return a function that multiplies all centred columns with a vector, shape (columns,)."""
    if not is_large(x.shape[0] * x.shape[1]):
        centred = whole(x) - mean
        return lambda vector: np.asarray(centred.T @ vector)
    # Read again each time, in pieces that stay in the processor's cache.
    pieces = [slice(at, at + PIECE) for at in range(0, len(x), PIECE)]
    return lambda vector: np.asarray(
        total(vector[rows] @ x[rows] for rows in pieces) - mean * vector.sum()
    )
