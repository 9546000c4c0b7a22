"""How well ridge regression on the answers to a subset tells held-out models' full scores."""

import numpy as np
from numpy.typing import NDArray

from fewbench.algorithms.choice.subset_search import Losses

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

PENALTIES = np.array([0.1, 1.0, 10.0])


def ridge_losses(values: FloatArray, full: FloatArray, held_out: BoolArray) -> Losses:
    """Return the loss of ridge regression from the answers on a subset to the full score.

    The mean absolute error on held-out models; the penalty is the one of 0.1, 1 and 10 that has
    the least leave-one-out error on the others.

    Parameters
    ----------
    values : ndarray, shape (models, items)
    full : ndarray, shape (models,)
        Full scores.
    held_out : ndarray of bool, shape (models,)
    """
    known, unknown = values[~held_out], values[held_out]
    mean = full[~held_out].mean()
    y, y_left = full[~held_out] - mean, full[held_out] - mean

    def losses(subsets: IntArray) -> FloatArray:
        x = known[:, subsets].transpose(1, 0, 2)  # (subsets, models, items)
        x_mean = x.mean(axis=1, keepdims=True)
        left = unknown[:, subsets].transpose(1, 0, 2) - x_mean
        u, s, v = _decomposed(x - x_mean)
        projected = y @ u  # (subsets, rank)
        shrink = s[:, :, None] ** 2 / (s[:, :, None] ** 2 + PENALTIES)
        residual = y[:, None] - u @ (shrink * projected[:, :, None])
        leverage = u**2 @ shrink + 1.0 / len(y)
        error = ((residual / np.maximum(1.0 - leverage, 1e-9)) ** 2).mean(axis=1)
        penalty = PENALTIES[np.argmin(error, axis=1)][:, None]
        shrunk = projected * s / (s**2 + penalty)
        said = ((left @ v) @ shrunk[:, :, None])[:, :, 0]
        return np.asarray(np.abs(said - y_left).mean(axis=1))

    return losses


def _decomposed(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return singular vectors and values of each matrix, by way of its smaller product."""
    flat = x.transpose(0, 2, 1)
    wide = x.shape[2] > x.shape[1]
    squares, axes = np.linalg.eigh(x @ flat if wide else flat @ x)
    # What is left of a direction in which nothing varies is rounding.
    nothing = squares <= 1e-12 * np.maximum(squares[:, -1:], 1e-12)
    s = np.sqrt(np.where(nothing, 0.0, squares))
    inverse = np.where(nothing, 0.0, 1.0 / np.where(nothing, 1.0, s))[:, None, :]
    other = ((flat if wide else x) @ axes) * inverse
    axes = np.where(nothing[:, None, :], 0.0, axes)
    return (axes, s, other) if wide else (other, s, axes)
