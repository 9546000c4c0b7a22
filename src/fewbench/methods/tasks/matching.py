"""Difficulty matching: chosen tasks as easy as all of them, at the least loss of coverage.

Ours. How far a choice's mean is from the benchmark's, for a single model, foretells the error of
all models far better than coverage does; exchanging a task or two removes it.
"""

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.errors import MethodError
from fewbench.methods.tasks.matrix import TaskMatrix

MOST_EXCHANGES = 100


def mismatch(matrix: TaskMatrix, chosen: IntArray) -> float:
    """Return how much easier the chosen are than all, as a share of the mean; questions weigh."""
    if matrix.ease is None:
        raise MethodError(
            "how easy each task is, is not known",
            hint="measure every task as a target, or compare tasks by past scores",
        )
    mean = float(np.average(matrix.ease, weights=matrix.weights))
    of_chosen = float(np.average(matrix.ease[chosen], weights=matrix.weights[chosen]))
    return (of_chosen - mean) / abs(mean) if mean else of_chosen - mean


def matched(
    similarity: FloatArray, matrix: TaskMatrix, chosen: IntArray, within: float
) -> IntArray:
    """Exchange tasks one by one until the mismatch is within bounds.

    Each exchange is the one that brings the mismatch within `within` at the highest coverage; where
    none does, the one that leaves the smallest mismatch. Of exchanges that are as good, the first.

    Parameters
    ----------
    similarity : ndarray, shape (tasks, tasks)
    chosen : ndarray of int, shape (k,)
    within : float
        Largest mismatch, as a share of the mean.

    Returns
    -------
    ndarray of int, shape (k,)
        An exchanged task takes the place of the one that it replaces.
    """
    current = chosen.copy()
    off = abs(mismatch(matrix, current))
    assert matrix.ease is not None
    mean = float(np.average(matrix.ease, weights=matrix.weights))
    unit = abs(mean) or 1.0
    worth = np.maximum(similarity, 0.0)
    scored = matrix.ease * matrix.weights
    for _ in range(MOST_EXCHANGES):
        if off <= within:
            break
        others = np.setdiff1d(np.arange(len(matrix.names)), current)
        if not len(others):
            break
        best: tuple[float, float] | None = None
        step = current
        for place in range(len(current)):
            kept = np.delete(current, place)
            size = matrix.weights[kept].sum() + matrix.weights[others]
            total = scored[kept].sum() + scored[others]
            left = np.abs(total / size - mean) / unit
            covered = worth[:, kept].max(axis=1, initial=0.0)
            reached = np.maximum(covered[:, None], worth[:, others]).sum(axis=0)
            rank = np.lexsort((-reached, np.maximum(left, within)))[0]
            found = (max(float(left[rank]), within), -float(reached[rank]))
            if best is None or found < best:
                best = found
                step = current.copy()
                step[place] = others[rank]
        if best is None or best[0] >= off:
            break
        current, off = step, abs(mismatch(matrix, step))
    return current
