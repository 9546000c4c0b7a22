"""Which option of an item is the right one, told from probabilities and scores of models.

A table of scores has no key. The right option is the one that models which score on the item give
more probability to than models which do not: on average over them, so that a wrong option that
most believe is not taken for it.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._types import FloatArray, IntArray


def right_options(
    by_model: Iterable[NDArray[Any]], values: FloatArray, n_options: IntArray
) -> IntArray:
    """Return each item's option that is believed more by models that are right.

    Of an item that all get right it is the option most believed, of one that none gets right the
    option least believed: of those that remain, the likeliest to have been missed by all.

    Parameters
    ----------
    by_model : iterable of ndarray, shape (items, options)
        Each model's probabilities, NaN where not run.
    values : ndarray, shape (models, items)
        Scores in [0, 1], NaN where not run; a score between counts as partly right.
    n_options : ndarray of int, shape (items,)

    Returns
    -------
    ndarray of int, shape (items,)

    Examples
    --------
    >>> p = np.array([[[0.7, 0.2, 0.1]], [[0.1, 0.3, 0.6]], [[0.2, 0.1, 0.7]]])
    >>> right_options(p, np.array([[1.0], [0.0], [0.0]]), np.array([3])).tolist()
    [0]
    """
    sums: list[FloatArray] = []  # right, wrong
    counts = np.zeros((2, len(n_options)))
    for row, block in zip(values, by_model, strict=True):
        if not sums:
            sums = [np.zeros(block.shape), np.zeros(block.shape)]
        run = ~(np.isnan(row) | np.isnan(block).any(axis=1))
        p = np.where(run[:, None], block, 0.0).astype(np.float64)
        for at, share in enumerate((np.where(run, row, 0.0), np.where(run, 1.0 - row, 0.0))):
            sums[at] += share[:, None] * p
            counts[at] += share
    means = [
        total / np.where(count > 0, count, 1.0)[:, None]
        for total, count in zip(sums, counts, strict=True)
    ]
    lead = np.round(means[0] - means[1], 12)
    lead[np.arange(lead.shape[1]) >= n_options[:, None]] = -np.inf
    return np.asarray(lead.argmax(axis=1))


def probabilities_of(by_model: Iterable[NDArray[Any]], options: IntArray) -> FloatArray:
    """Return the probability that each model gives to one option of each item.

    Parameters
    ----------
    by_model : iterable of ndarray, shape (items, options)
    options : ndarray of int, shape (items,)

    Returns
    -------
    ndarray, shape (models, items), NaN where not run

    Examples
    --------
    >>> p = np.array([[[0.7, 0.3], [0.4, 0.6]]])
    >>> probabilities_of(p, np.array([0, 1])).tolist()
    [[0.7, 0.6]]
    """
    items = np.arange(len(options))
    return np.array([block[items, options] for block in by_model], dtype=np.float64)
