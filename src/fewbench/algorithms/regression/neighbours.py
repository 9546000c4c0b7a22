"""Nearest neighbours by a stated metric: one matrix of distances, ties to the lowest index."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Metric = Literal["cosine", "euclidean"]


def nearest(rows: FloatArray, among: FloatArray, k: int, metric: Metric) -> NDArray[np.intp]:
    """Return the positions of the k nearest of `among` for every row, shape (rows, k).

    Raises
    ------
    ValueError
        If there are fewer than k.

    Examples
    --------
    >>> nearest(np.array([[0.9, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]]), 1, "cosine").tolist()
    [[1]]
    """
    if k > len(among):
        raise ValueError(f"{k} nearest are asked for, there are {len(among)}")
    if metric == "cosine":
        left, right = _unit(rows), _unit(among)
        distances = 1.0 - left @ right.T
    else:
        squares = (rows**2).sum(axis=1)[:, None] + (among**2).sum(axis=1) - 2 * rows @ among.T
        distances = np.maximum(squares, 0.0)
    # Rounded, so that equal rows tie whatever the order of the sums above.
    order = np.argsort(np.round(distances, 12), axis=1, kind="stable")
    return np.asarray(order[:, :k])


def _unit(rows: FloatArray) -> FloatArray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0, norms, 1.0))
