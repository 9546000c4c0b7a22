"""Budgets shared among tasks, and samples with known inclusion probabilities."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._seeds import child_seed
from fewbench._types import FloatArray, IntArray

LEAST_OF_TASK = 20
"""Items of each task where a budget is a share of the items."""


def allocate(
    budget: int, masses: NDArray[Any], sizes: IntArray, rng: np.random.Generator
) -> IntArray:
    """Share `budget` items among tasks in proportion to `masses`; return counts, shape (tasks,).

    No task gets more items than its size (`sizes`, shape (tasks,)); the other tasks take the rest.
    One systematic draw over the tasks in random order rounds the fractions, so the expected count
    of each task is its exact share.

    >>> rng = np.random.default_rng(0)
    >>> allocate(6, np.array([0.5, 0.5]), np.array([1, 9]), rng).tolist()
    [1, 5]
    """
    share = expected_counts(budget, masses, sizes)
    counts = np.floor(share).astype(np.intp)
    order = rng.permutation(len(sizes))
    ends = np.cumsum((share - counts)[order])
    ends[-1] = budget - counts.sum()  # not a hair less, by rounding of the sum
    points = np.floor(ends - rng.random()) + 1
    counts[order] += np.diff(points, prepend=0.0).astype(np.intp)
    return counts


def expected_counts(budget: int, masses: NDArray[Any], sizes: IntArray) -> FloatArray:
    """Return shares of the budget in proportion to masses, none above its size, shape (tasks,).

    >>> expected_counts(6, np.array([0.2, 0.4, 0.4]), np.array([1, 9, 9])).tolist()
    [1.0, 2.5, 2.5]
    """
    full = np.zeros(len(sizes), dtype=np.bool_)
    while True:
        left = budget - int(sizes[full].sum())
        mass = np.where(full, 0.0, masses)
        if mass.sum() <= 0:  # only tasks without mass have room
            mass = np.where(full, 0.0, 1.0)
        share = np.where(full, sizes, left * mass / max(mass.sum(), 1e-300))
        over = ~full & (share > sizes)
        if not over.any():
            return np.asarray(share)
        full |= over


def task_sizes(budget: int, sizes: IntArray, minimum: int) -> IntArray:
    """Share `budget` items among tasks by their `sizes`, with a minimum; shape (tasks,).

    A task of size s gets min(s, max(minimum, ratio * s)) items, with the ratio that spends the
    budget. A budget below the sum of minimums lowers the minimum. Fractions go to the largest
    remainders, then to the larger task, then to the first.

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


def items_of_share(share: float, sizes: IntArray) -> int:
    """Return the number of items for a share of each task's items, shape (tasks,) of `sizes`.

    A task of size s counts min(s, max(LEAST_OF_TASK, share * s)) items, to the nearest item
    ("Efficient Evaluation of Large Language Models via Collaborative Filtering" 2025, appendix F).

    >>> items_of_share(0.1, np.array([10, 100, 400]))
    70
    """
    wanted = np.maximum(np.rint(share * sizes), LEAST_OF_TASK)
    return int(np.minimum(wanted, sizes).sum())


def draw(n: int, sizes: FloatArray, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Draw `n` units with probabilities in proportion to their positive sizes, shape (units,).

    Units with a share of 1 or more are always drawn; one systematic draw in random order picks the
    others. Equal sizes give simple random sampling. Returns the chosen positions, shape (n,),
    increasing, and the inclusion probability of each unit, shape (units,).

    >>> chosen, probabilities = draw(2, np.array([6.0, 1, 1, 1]), np.random.default_rng(0))
    >>> probabilities.round(3).tolist()
    [1.0, 0.333, 0.333, 0.333]
    """
    sure = np.zeros(len(sizes), dtype=np.bool_)
    while True:
        left = n - int(sure.sum())
        rest = np.where(sure, 0.0, sizes)
        share = left * rest / rest.sum() if left else np.zeros(len(sizes))
        more = ~sure & (share >= 1.0 - 1e-12)
        if not more.any():
            break
        sure |= more
    others = rng.permutation(np.flatnonzero(~sure))
    ends = np.cumsum(share[others])
    if len(ends):
        ends[-1] = left  # not a hair less, by rounding of the sum
    drawn = others[np.diff(np.floor(ends - rng.random()) + 1.0, prepend=0.0) > 0]
    chosen = np.sort(np.concatenate([np.flatnonzero(sure), drawn]))
    return chosen.astype(np.intp), np.where(sure, 1.0, share)


GOLDEN = 0.6180339887498949
"""Multiples of it, modulo 1, fill the unit interval evenly however many there are."""
BLOCK = 16
"""Items of a task that are neighbors and that each seed shuffles. Steps alone would make few
different samples, so intervals would contain the scores of some models less often than they say."""
LEAST_SIZE = 0.01
"""Least size of an item, over the mean: its answer would count a hundred times as much."""


def permanent_order(task_of: IntArray, seed: int, cohort_of: IntArray | None = None) -> IntArray:
    """Return all items in the order in which samples of this benchmark take them.

    By benchmark and seed alone, so that all targets run the same items and their differences are
    paired (permanent random numbers: Brewer, Early & Joyce 1972; Ohlsson 1995). The items lie on a
    circle by task and position. Steps of the golden ratio from a random start run around it and
    take each item that they meet first: every beginning is spread over tasks and positions.

    Parameters
    ----------
    task_of : ndarray of int, shape (items,)
    seed : int
    cohort_of : ndarray of int, shape (items,), optional
        With which extension of the benchmark each item came. Each cohort keeps its own order, and
        every beginning has as large a share of one as of another.

    Examples
    --------
    >>> order = permanent_order(np.repeat([0, 1], 4), seed=0)
    >>> sorted(order.tolist()), (order[:4] // 4).tolist()
    ([0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 1, 0])
    >>> more = permanent_order(np.repeat([0, 1, 2], 4), 0, np.repeat([0, 1], [8, 4]))
    >>> more[more < 8].tolist() == order.tolist(), (more[:3] < 8).tolist()
    (True, [True, False, True])
    """
    if cohort_of is not None and len(cohort_of) and cohort_of.max() > 0:
        parts = [np.flatnonzero(cohort_of == cohort) for cohort in np.unique(cohort_of)]
        orders = [items[permanent_order(task_of[items], seed)] for items in parts]
        numbers = [(np.arange(len(items)) + 0.5) / len(items) for items in parts]
        by_number = np.argsort(np.concatenate(numbers), kind="stable")
        return np.asarray(np.concatenate(orders)[by_number])
    rng = np.random.default_rng(child_seed(seed, 7))
    n = len(task_of)
    by_task = np.argsort(task_of, kind="stable")
    ordered = task_of[by_task]
    block_of = (np.arange(n) - np.searchsorted(ordered, ordered)) // BLOCK
    circle = by_task[np.lexsort((rng.random(n), block_of, ordered))]
    # Three times as many steps as items meet every item (three-gap theorem).
    met = ((rng.random() + GOLDEN * np.arange(3 * n)) % 1 * n).astype(np.intp)
    _, first = np.unique(np.minimum(met, n - 1), return_index=True)
    return np.asarray(circle[met[np.sort(first)]])


class NestedSample:
    """A sample with known probabilities of which every beginning is one too.

    Item k of m in the order has the permanent random number u = (k + 1/2) / m. The sample takes the
    items with the least -log(1 - u) / size first (successive sampling: Rosen 1972). Samples of the
    same order with other sizes have as many items in common as their chances allow.

    Parameters
    ----------
    order : ndarray of int
        The items that may be drawn, in the order of `permanent_order`.
    sizes : ndarray, shape (items,)
        Sizes of all items, by position; those in `order` are positive. Ones below a hundredth of
        the mean count as a hundredth.

    Examples
    --------
    >>> sample = NestedSample(np.array([2, 0, 3, 1]), np.array([1.0, 1, 1, 9]))
    >>> sample.take(2).tolist(), sample.take(3).tolist()
    ([3, 2], [3, 2, 0])
    >>> sample.chances(2).round(2).tolist()
    [0.34, 0.34, 0.34, 0.98]
    """

    def __init__(self, order: IntArray, sizes: FloatArray) -> None:
        self._sizes = np.maximum(sizes, LEAST_SIZE * sizes[order].mean())
        numbers = (np.arange(len(order)) + 0.5) / max(len(order), 1)
        ranks = -np.log1p(-numbers) / self._sizes[order]
        self._order = order[np.argsort(ranks, kind="stable")]

    def take(self, n: int) -> IntArray:
        """Return the first n items, or all."""
        return self._order[:n]

    def chances(self, n: int) -> FloatArray:
        """Return each item's chance to be among the first n, shape (items,).

        1 - exp(-size t), with t such that the chances of the items in the order add up to n. For
        other items, what their chance would have been.
        """
        if n >= len(self._order):
            return np.ones(len(self._sizes))
        sizes = self._sizes[self._order]
        t, step = 0.0, 1.0
        while step > 1e-9 * t:  # Newton's method: from below, as the sum is concave in t
            left = np.exp(-sizes * t)
            step = (n - float((1 - left).sum())) / float(sizes @ left)
            t += step
        return np.asarray(1 - np.exp(-self._sizes * t))


def whole_chances(chances: FloatArray, n: int) -> FloatArray:
    """Return the chances of all items to be in a sample of n, given those of the drawn ones.

    The others (NaN) share what is left of n. If n is smaller than the number of drawn items, the
    chances are lower: each item's chance of being left out is raised to the power that is right
    for items of equal size.

    >>> whole_chances(np.array([0.5, 0.7, np.nan, np.nan]), 2).round(2).tolist()
    [0.5, 0.7, 0.4, 0.4]
    >>> whole_chances(np.array([0.5, 0.5, np.nan, np.nan]), 1).round(2).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    unknown = np.isnan(chances)
    if 0 < n < (drawn := len(chances) - int(unknown.sum())) < len(chances):
        power = np.log1p(-n / len(chances)) / np.log1p(-drawn / len(chances))
        chances = 1 - (1 - chances) ** power
    left = n - float(chances[~unknown].sum())
    return np.where(unknown, np.clip(left / max(int(unknown.sum()), 1), 0.0, 1.0), chances)
