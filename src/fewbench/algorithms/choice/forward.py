"""Forward selection for ridge regression: the columns that one after another explain most."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_DECIMALS = 10  # of shares explained, so that rounding does not part equally good columns


def forward_selection(x: FloatArray, y: FloatArray, k: int, alpha: float) -> IntArray:
    """Choose columns one by one, each the one that lowers the ridge loss most.

    The loss of a set of columns is the least of |y - X b|² + alpha |b|². With the residual-maker
    P = (I + X Xᵀ / alpha)⁻¹ of the columns chosen so far, adding column x lowers it by
    (xᵀPy)² / (alpha + xᵀPx); P changes by a matrix of rank one.

    Parameters
    ----------
    x : ndarray, shape (rows, columns)
    y : ndarray, shape (rows,)
    k : int
        How many at most.
    alpha : float
        The penalty, above 0.

    Returns
    -------
    ndarray of int
        In the order of choice; of equally good columns the first. Fewer than k if no column is
        left that explains anything.

    Examples
    --------
    >>> x = np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> forward_selection(x, np.array([0.1, 1.0, 1.2, 0.2]), 2, 0.1).tolist()
    [0, 1]
    """
    x = x - x.mean(axis=0)
    y = y - y.mean()
    scale = float(y @ y)
    maker = np.eye(len(x))
    told, spread = x.T @ y, (x**2).sum(axis=0) + alpha
    free = np.ones(x.shape[1], dtype=bool)
    chosen: list[int] = []
    while len(chosen) < k and scale > 0:
        gain = np.round(np.where(free, told**2 / spread, 0.0) / scale, _DECIMALS)
        best = int(gain.argmax())
        if gain[best] <= 0:
            break
        left = maker @ x[:, best]
        size = alpha + float(x[:, best] @ left)
        shared = x.T @ left
        maker -= np.outer(left, left) / size
        told = told - shared * (told[best] / size)
        spread = np.maximum(spread - shared**2 / size, alpha)
        chosen.append(best)
        free[best] = False
    return np.array(chosen, dtype=np.intp)
