"""Budgets shared among tasks, and samples with known inclusion probabilities."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._types import FloatArray, IntArray


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
