"""What answers already given leave possible: nothing may be said beyond it."""

import numpy as np
from numpy.typing import NDArray

from fewbench.scores import Scores

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def known_bounds(
    item_weights: FloatArray, items: IntArray, answers: FloatArray
) -> tuple[float, float]:
    """Return what the full score cannot be below or above, given answers in [0, 1].

    The bounds meet when every item was run, so any estimate within them is then exact.

    Parameters
    ----------
    item_weights : ndarray, shape (items,)
        Each item's weight in the full score, of sum 1.
    items, answers : ndarrays, shape (n,)
        Positions of the items run, and the scores there.

    Examples
    --------
    >>> known_bounds(np.full(4, 0.25), np.array([0, 1]), np.array([1.0, 0.0]))
    (0.25, 0.75)
    """
    weights = item_weights[items]
    low = min(float(weights @ answers), 1.0)  # a sum of weights can pass 1 by rounding
    left = 1.0 - float(weights.sum()) if len(items) < len(item_weights) else 0.0
    return low, min(low + max(left, 0.0), 1.0)


def bound_score(score: float, scores: Scores, items: IntArray, answers: FloatArray) -> float:
    """Return a predicted full score, cut to what the answers leave possible."""
    low, high = known_bounds(scores.item_weights, items, answers)
    return min(max(score, low), high)


def bound_tasks(
    tasks: FloatArray, scores: Scores, items: IntArray, answers: FloatArray
) -> FloatArray:
    """Return predicted task scores, shape (tasks,), cut to what the answers leave possible."""
    n_tasks = len(scores.tasks)
    sizes = np.bincount(scores.task_of)
    task_of = scores.task_of[items]
    least = np.bincount(task_of, answers, n_tasks) / sizes
    left = (sizes - np.bincount(task_of, minlength=n_tasks)) / sizes
    return np.clip(tasks, least, least + left)
