"""How a budget is shared among tasks: one ratio of each, but never few items of a task."""

import numpy as np

from fewbench._types import IntArray


def task_sizes(budget: int, sizes: IntArray, minimum: int) -> IntArray:
    """Share `budget` items among tasks by one ratio, with a minimum.

    A task of size s gets min(s, max(minimum, ratio * s)), with the ratio that spends the budget:
    small tasks are taken whole. A budget that cannot give every task its minimum lowers the
    minimum instead. Fractions go to the largest remainders; of equal ones to the larger task,
    then to the first.

    Parameters
    ----------
    budget : int
        At most the sum of `sizes`.
    sizes : ndarray of int, shape (tasks,)
    minimum : int
        0 for plain proportions.

    Returns
    -------
    ndarray of int, shape (tasks,), summing to `budget`

    Examples
    --------
    >>> task_sizes(60, np.array([10, 100, 200]), 20).tolist()
    [10, 20, 30]
    >>> task_sizes(20, np.array([10, 100, 200]), 20).tolist()
    [6, 7, 7]
    """
    least = np.minimum(sizes, minimum).astype(np.float64)
    # What is spent grows piecewise linearly with the level, or the ratio: solve between the bends.
    if budget < least.sum():
        levels = np.unique(np.append(least, 0.0))
        spent = np.minimum.outer(levels, least).sum(axis=1)
        shares = np.minimum(least, np.interp(budget, spent, levels))
    else:
        ratios = np.unique(np.concatenate([least / sizes, [0.0, 1.0]]))
        spent = np.maximum(np.multiply.outer(ratios, sizes), least).sum(axis=1)
        shares = np.maximum(least, np.interp(budget, spent, ratios) * sizes)
    shares = np.round(shares, 9)
    whole = np.floor(shares).astype(np.intp)
    order = np.lexsort((-sizes, np.round(whole - shares, 9)))
    whole[order[: budget - whole.sum()]] += 1
    return np.asarray(whole, dtype=np.intp)


def in_rounds(sizes: IntArray, rounds: int) -> IntArray:
    """Split the tasks' sizes into rounds as equal as can be, the larger ones first.

    Returns
    -------
    ndarray of int, shape (at most `rounds`, tasks)
        Items to ask of every task; rounds without any are left out.

    Examples
    --------
    >>> in_rounds(np.array([1, 5, 6]), 3).tolist()
    [[1, 2, 2], [0, 2, 2], [0, 1, 2]]
    """
    by_then = -(-np.multiply.outer(np.arange(rounds + 1), sizes) // rounds)
    each = np.diff(by_then, axis=0)
    return np.asarray(each[each.any(axis=1)], dtype=np.intp)
