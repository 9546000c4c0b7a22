"""Items and models in a staircase: each model is right up to its threshold, wrong after it.

Prabhu et al. 2024, arXiv 2402.19472, look for the item order and the models' thresholds that
disagree least with the scores, ``min ||A P - Y||_1`` over permutations P and rows Y of ones
followed by zeros. Given the order, the thresholds follow exactly (`thresholds`, the paper's
dynamic program; `mean_threshold` where only some items were run); given the thresholds, `reorder`
improves the order.
"""

import numpy as np

from fewbench._types import FloatArray, IntArray


def thresholds(values: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return each model's best threshold and its disagreement, both of shape (models,).

    `values`, shape (models, items), are scores in [0, 1], the easiest item first. The best
    threshold has the least sum of absolute differences from that many ones followed by zeros; the
    first of equally good thresholds is taken, as in the authors' program.

    >>> best, error = thresholds(np.array([[1.0, 0, 1, 1, 0], [0, 0, 1, 0, 0]]))
    >>> best.tolist(), error.tolist()
    ([4, 0], [1.0, 1.0])
    """
    error = _errors(values)
    best = error.argmin(axis=1)
    return best, error[np.arange(len(values)), best]


def mean_threshold(values: FloatArray, at: IntArray, size: int) -> FloatArray:
    """Return the best threshold on some items as a position among all, shape (models,).

    `values`, shape (models, n), are scores in [0, 1], the easiest item first, at the increasing
    positions `at`. A threshold between two items is midway between them; one before or after all
    of them is before or after all items. Equally good thresholds are averaged.

    >>> values = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    >>> mean_threshold(values, np.array([1, 4, 7]), 9).tolist()
    [3.0, 9.0]
    """
    error = _errors(values)
    best = error == error.min(axis=1, keepdims=True)
    place = np.concatenate([[0.0], (at[:-1] + at[1:] + 1) / 2, [float(size)]])
    return np.asarray(best @ place / best.sum(axis=1))


def _errors(values: FloatArray) -> FloatArray:
    """Return each threshold's disagreement, rounded, shape (models, items + 1)."""
    # Moving the threshold past an item of score a changes the error by (1 - a) - a.
    error = np.zeros((values.shape[0], values.shape[1] + 1))
    np.cumsum(1.0 - 2.0 * values, axis=1, out=error[:, 1:])
    return np.asarray(np.round(error + values.sum(axis=1, keepdims=True), 9))


def reorder(values: FloatArray, order: IntArray) -> IntArray:
    """Return an order of the items with less disagreement: the paper's "recursive sum".

    `values` are scores, shape (models, items); `order` has the highest mean score first. Models
    with thresholds among equally hard items decide which of these items are easier. New thresholds
    follow, until the sum of disagreements stops falling.

    In this example two of three models get each item right; the first model finds the third item
    easier.

    >>> reorder(np.array([[1.0, 0, 1], [0, 1, 0], [1, 1, 1]]), np.array([0, 1, 2])).tolist()
    [0, 2, 1]
    """
    sums = np.round(values.sum(axis=0), 9)[order]
    starts = np.flatnonzero(np.diff(sums, prepend=np.inf))
    ends = np.append(starts[1:], len(order))
    bins = [(lo, hi) for lo, hi in zip(starts, ends, strict=True) if hi - lo > 1]
    at, errors = thresholds(values[:, order])
    while True:
        better = order.copy()
        for lo, hi in bins:
            inside = (at > lo) & (at <= hi)
            right = np.round(values[np.ix_(inside, order[lo:hi])].sum(axis=0), 9)
            better[lo:hi] = order[lo:hi][np.argsort(-right, kind="stable")]
        at, left = thresholds(values[:, better])
        if left.sum() >= errors.sum() - 1e-6:
            return order
        order, errors = better, left
