"""Sharing a budget of items among tasks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.intp]


def allocate(
    budget: int, masses: NDArray[Any], sizes: IntArray, rng: np.random.Generator
) -> IntArray:
    """Share `budget` items among tasks in proportion to their masses.

    Fractions are rounded by one systematic draw over the tasks in random order, so that the
    expected number of every task is its exact share. No task gets more items than it has; what
    it cannot take goes to the others.

    Parameters
    ----------
    budget : int
        At most the sum of `sizes`.
    masses : ndarray, shape (tasks,)
        Non-negative shares; they need not sum to 1.
    sizes : ndarray of int, shape (tasks,)
        Number of items of each task.

    Returns
    -------
    ndarray of int, shape (tasks,), summing to `budget`

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> allocate(6, np.array([0.5, 0.5]), np.array([1, 9]), rng).tolist()
    [1, 5]
    """
    counts = np.zeros(len(sizes), dtype=np.intp)
    while (left := budget - int(counts.sum())) > 0:
        room = sizes - counts
        share = np.where(room > 0, masses, 0.0)
        if share.sum() <= 0:  # only tasks without mass have room
            share = (room > 0).astype(np.float64)
        order = rng.permutation(len(sizes))
        ends = np.cumsum(left * share[order] / share.sum())
        ends[-1] = left  # not a hair less, by rounding of the sum
        points = np.floor(ends - rng.random()) + 1
        counts[order] += np.diff(points, prepend=0.0).astype(np.intp)
        counts = np.minimum(counts, sizes)
    return counts
