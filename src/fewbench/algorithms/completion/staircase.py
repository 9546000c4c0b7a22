"""Items and models in a staircase: every model right up to its threshold, wrong after it.

Prabhu et al. 2024, arXiv 2402.19472, seek the order of the items and the models' thresholds that
least disagree with the scores, ``min ||A P - Y||_1`` over permutations P and rows Y of ones
followed by zeros. Given the order, the thresholds follow exactly (`thresholds`, the paper's
dynamic programme; `mean_threshold` where only some items were run); given the thresholds,
`reorder` improves the order.
"""

import numpy as np

from fewbench._types import FloatArray, IntArray


def thresholds(values: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return each model's best threshold and what it disagrees by; items in order.

    Best is the least sum of absolute differences from as many ones as the threshold followed by
    zeros. Of thresholds that fit as well the first is taken, as in the authors' program.

    Parameters
    ----------
    values : ndarray, shape (models, items)
        Scores in [0, 1], the easiest item first.

    Returns
    -------
    thresholds : ndarray of int, shape (models,), from 0 to the number of items
    errors : ndarray, shape (models,)

    Examples
    --------
    >>> best, error = thresholds(np.array([[1.0, 0, 1, 1, 0], [0, 0, 1, 0, 0]]))
    >>> best.tolist(), error.tolist()
    ([4, 0], [1.0, 1.0])
    """
    error = _errors(values)
    best = error.argmin(axis=1)
    return best, error[np.arange(len(values)), best]


def mean_threshold(values: FloatArray, at: IntArray, size: int) -> FloatArray:
    """Return where among all items the best threshold of some of them stands, ties by their mean.

    A threshold between two of the items stands midway between them; one before or after all of
    them before or after all items.

    Parameters
    ----------
    values : ndarray, shape (models, n)
        Scores in [0, 1], the easiest item first.
    at : ndarray of int, shape (n,)
        The items' places among all, increasing.
    size : int
        Number of all items.

    Returns
    -------
    ndarray, shape (models,), from 0 to `size`

    Examples
    --------
    >>> values = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    >>> mean_threshold(values, np.array([1, 4, 7]), 9).tolist()
    [3.0, 9.0]
    """
    error = _errors(values)
    best = error == error.min(axis=1, keepdims=True)
    place = np.concatenate([[0.0], (at[:-1] + at[1:] + 1) / 2, [float(size)]])
    return np.asarray(best @ place / best.sum(axis=1))


def _errors(values: FloatArray) -> FloatArray:
    """Return what each threshold disagrees by, but for rounding, shape (models, items + 1)."""
    # Moving the threshold past an item of score a changes the error by (1 - a) - a.
    error = np.zeros((values.shape[0], values.shape[1] + 1))
    np.cumsum(1.0 - 2.0 * values, axis=1, out=error[:, 1:])
    return np.asarray(np.round(error + values.sum(axis=1, keepdims=True), 9))


def reorder(values: FloatArray, order: IntArray) -> IntArray:
    """Return an order of the items that disagrees less: the paper's "recursive sum".

    Items that as many models get right are told apart by the models whose thresholds lie among
    them: these are the ones that say which of them are easier. New thresholds follow, and so on
    until the sum of disagreements falls no more.

    Parameters
    ----------
    values : ndarray, shape (models, items)
        Scores in [0, 1].
    order : ndarray of int, shape (items,)
        Positions of the items, highest mean score first.

    Returns
    -------
    ndarray of int, shape (items,)

    Examples
    --------
    All three items are got right by two of three models; the first finds the third the easier.

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
