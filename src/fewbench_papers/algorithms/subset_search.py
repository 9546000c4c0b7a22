"""Random subsets of items, and which subset best predicts held-out models' full scores.

All subsets of a block are drawn, averaged and fitted at once.
"""

from collections.abc import Callable, Iterator

import numpy as np

from fewbench.algorithms import ties
from fewbench.support import BoolArray, FloatArray, IntArray

Losses = Callable[[IntArray], FloatArray]
CELLS = 4_000_000
"""Numbers that a block may hold at a time: 32 MB."""
PENALTIES = np.array([0.1, 1.0, 10.0])


def search(
    n_items: int, size: int, count: int, losses: Losses, cells: int, rng: np.random.Generator
) -> IntArray:
    """Return the items of the random subset with the least loss, increasing, shape (size,).

    `count` subsets of `size` items are drawn. `losses` maps subsets, shape (block, size), to
    losses, shape (block,), and holds `cells` numbers per subset, which bounds the block size.
    """
    best, least = np.arange(size), np.inf
    for subsets in _blocks(n_items, size, count, max(1, CELLS // max(cells, n_items)), rng):
        values = losses(subsets)
        at = int(ties.argmin(values))
        if not ties.at_least(values[at], least):
            best, least = subsets[at], float(values[at])
    return best


def _blocks(
    n_items: int, size: int, count: int, block: int, rng: np.random.Generator
) -> Iterator[IntArray]:
    """Draw subsets block by block: the items of the `size` least of random keys, increasing."""
    if size == n_items:  # there is but one
        count = 1
    for start in range(0, count, block):
        keys = rng.random((min(block, count - start), n_items), dtype=np.float32)
        # Keys have 24 binary digits. With the item's position as further ones, no two are equal.
        unique = (keys * 2**24).astype(np.int64) * n_items + np.arange(n_items)
        yield np.sort(np.argpartition(unique, size - 1, axis=1)[:, :size], axis=1)


def line_losses(
    values: FloatArray, full: FloatArray, weights: FloatArray, held_out: BoolArray
) -> Losses:
    """Return the loss of a line from the score on a subset to the full score.

    The loss is the mean squared error, on held-out models, of the least-squares line through the
    other models, averaged over divisions of the models.

    - `values`, shape (models, items)
    - `full`, shape (models,)
    - `weights`, shape (items,): Weights of the items in the full score and in the score on a
      subset.
    - `held_out`, shape (models, divisions): Which models each division holds out.
    """
    y = full - full.mean()
    x_mean = float((values @ weights).mean() / weights.sum())
    training, unknown = (~held_out).astype(np.float64), held_out.astype(np.float64)

    def losses(subsets: IntArray) -> FloatArray:
        x = subset_scores(values, weights, subsets) - x_mean
        fitted, left = _Sums(x, y, training), _Sums(x, y, unknown)
        varies = fitted.xx > 1e-12 * fitted.n  # else the mean is all there is
        slope = np.where(varies, fitted.xy / np.where(varies, fitted.xx, 1.0), 0.0)
        bias = (left.y_mean - fitted.y_mean) - slope * (left.x_mean - fitted.x_mean)
        spread = left.yy - 2.0 * slope * left.xy + slope**2 * left.xx
        return np.asarray((spread / left.n + bias**2).mean(axis=1))

    return losses


class _Sums:
    """Means, and sums of squares and products about them, of models weighted by 0 or 1."""

    def __init__(self, x: FloatArray, y: FloatArray, counted: FloatArray) -> None:
        self.n = counted.sum(axis=0)
        self.x_mean = (x @ counted) / self.n
        self.y_mean = (y @ counted) / self.n
        self.xx = (x**2) @ counted - self.n * self.x_mean**2
        self.xy = (x * y) @ counted - self.n * self.x_mean * self.y_mean
        self.yy = (y**2) @ counted - self.n * self.y_mean**2


def subset_scores(values: FloatArray, weights: FloatArray, subsets: IntArray) -> FloatArray:
    """Return models' weighted mean scores on each subset, shape (subsets, models)."""
    from scipy.sparse import csr_array

    shares = weights[subsets]
    shares = shares / shares.sum(axis=1, keepdims=True)
    rows = np.arange(len(subsets) + 1) * subsets.shape[1]
    chosen = csr_array((shares.ravel(), subsets.ravel(), rows), (len(subsets), len(weights)))
    return np.asarray(chosen @ values.T)


def divisions(n_models: int, share: float, count: int, rng: np.random.Generator) -> BoolArray:
    """Draw which models are held out: about this share, at least 1, at most all but 2.

    Returns booleans of shape (models, count).
    """
    size = min(max(1, round(share * n_models)), n_models - 2)
    order = rng.permuted(np.tile(np.arange(n_models), (count, 1)), axis=1)
    return np.asarray((order < size).T)


def ridge_losses(values: FloatArray, full: FloatArray, held_out: BoolArray) -> Losses:
    """Return the loss of ridge regression from the answers on a subset to the full score.

    The loss is the mean absolute error on the models in `held_out`, shape (models,). The penalty
    is 0.1, 1 or 10, by the least leave-one-out error on the other models. `values` has shape
    (models, items), `full` (models,).
    """
    training, unknown = values[~held_out], values[held_out]
    mean = full[~held_out].mean()
    y, y_left = full[~held_out] - mean, full[held_out] - mean

    def losses(subsets: IntArray) -> FloatArray:
        x = training[:, subsets].transpose(1, 0, 2)  # (subsets, models, items)
        x_mean = x.mean(axis=1, keepdims=True)
        left = unknown[:, subsets].transpose(1, 0, 2) - x_mean
        u, s, v = _decomposed(x - x_mean)
        projected = y @ u  # (subsets, rank)
        shrink = s[:, :, None] ** 2 / (s[:, :, None] ** 2 + PENALTIES)
        residual = y[:, None] - u @ (shrink * projected[:, :, None])
        leverage = u**2 @ shrink + 1.0 / len(y)
        error = ((residual / np.maximum(1.0 - leverage, 1e-9)) ** 2).mean(axis=1)
        penalty = PENALTIES[ties.argmin(error, axis=1)][:, None]
        shrunk = projected * s / (s**2 + penalty)
        estimates = ((left @ v) @ shrunk[:, :, None])[:, :, 0]
        return np.asarray(np.abs(estimates - y_left).mean(axis=1))

    return losses


def _decomposed(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return singular vectors and values of each matrix from its smaller Gram matrix."""
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
