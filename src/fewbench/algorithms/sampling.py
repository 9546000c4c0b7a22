"""Budgets shared among tasks, and samples with known inclusion probabilities."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def items_of_share(share: float, sizes: IntArray, minimum: int = LEAST_OF_TASK) -> int:
    """Return the number of items for a share of each task's items, shape (tasks,) of `sizes`.

    A task of size s counts min(s, max(minimum, share * s)) items, to the nearest item
    ("Efficient Evaluation of Large Language Models via Collaborative Filtering" 2025, appendix F).

    >>> items_of_share(0.1, np.array([10, 100, 400]))
    70
    """
    wanted = np.maximum(np.rint(share * sizes), minimum)
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
LEAST_SIZE = 0.01
"""Least size of an item, over the mean: a step would hardly ever meet a smaller one."""


class NestedSample:
    """A sample with known probabilities of which every beginning is one too.

    The items lie on a circle, in order, each as long as its size. Steps of the golden ratio from a
    random start run around it, and an item is drawn when a step first meets it. So the number of
    items need not be known beforehand, and neighbors in the order are rarely drawn together.

    Parameters
    ----------
    order : ndarray of int
        The items that may be drawn, in the order in which they should be spread.
    sizes : ndarray, shape (items,)
        Sizes of all items, by position; those in `order` are positive. Ones below a hundredth of
        the mean count as a hundredth.
    start : float
        Random start, in [0, 1).

    Examples
    --------
    >>> sample = NestedSample(np.arange(8), np.ones(8), 0.3)
    >>> sample.take(4).tolist(), sample.take(8).tolist()[:4]
    ([2, 7, 4, 1], [2, 7, 4, 1])
    >>> sample.chances(4)[:3].round(2).tolist()
    [0.5, 0.5, 0.5]
    """

    def __init__(self, order: IntArray, sizes: FloatArray, start: float) -> None:
        self._order, self._start = order, start
        lengths = np.maximum(sizes[order], LEAST_SIZE * sizes[order].mean())
        self._ends = np.cumsum(lengths)
        self._shares = np.zeros(len(sizes))
        self._shares[order] = lengths / self._ends[-1]

    def take(self, n: int) -> IntArray:
        """Return the first n items, or all."""
        return self._drawn(n)[0]

    def chances(self, n: int) -> FloatArray:
        """Return each item's chance to be among the first n, shape (items,); 0 if not in `order`.

        Exact for the number of steps that these items took: a share s of the circle is met with
        chance sum_i min(s, gap_i), over the gaps between the steps.
        """
        if n >= len(self._order):
            return (self._shares > 0).astype(np.float64)
        _, steps = self._drawn(n)
        places = np.sort(self._places(steps))
        gaps = np.sort(np.diff(places, append=places[0] + 1.0))
        covered = np.concatenate([[0.0], np.cumsum(gaps)])
        smaller = np.searchsorted(gaps, self._shares)
        return np.minimum(covered[smaller] + (steps - smaller) * self._shares, 1.0)

    def _places(self, steps: int) -> FloatArray:
        return np.asarray((self._start + GOLDEN * np.arange(steps)) % 1)

    def _drawn(self, n: int) -> tuple[IntArray, int]:
        """Return the first n items, and the number of steps after which they were drawn."""
        n = min(n, len(self._order))
        if not n:
            return np.empty(0, dtype=np.intp), 1
        steps = n
        while True:
            at = np.searchsorted(self._ends, self._places(steps) * self._ends[-1], side="right")
            _, first = np.unique(np.minimum(at, len(self._order) - 1), return_index=True)
            if len(first) >= n:
                break
            steps += max(8, steps // 2)
        first = np.sort(first)[:n]
        return self._order[at[first]], int(first[-1]) + 1
