"""Where a score can be, given the answers, and where it stands among the sources' scores."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fewbench._types import FloatArray, IntArray
from fewbench.scores import Scores


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


def fit_tasks(
    tasks: FloatArray, score: float, scores: Scores, items: IntArray, answers: FloatArray
) -> FloatArray:
    """Return predicted task scores that are possible and add up to the full score.

    Full score and tasks are predicted apart. All tasks are moved by the same amount, each within
    what its answers leave possible, until their weighted mean is the full score.

    Parameters
    ----------
    tasks : ndarray, shape (tasks,)
    score : float
        The full score, within its own bounds.
    items, answers : ndarrays, shape (n,)
    """
    n_tasks = len(scores.tasks)
    sizes = np.bincount(scores.task_of)
    shares = np.bincount(scores.task_of, scores.item_weights)
    task_of = scores.task_of[items]
    least = np.bincount(task_of, answers, n_tasks) / sizes
    most = least + (sizes - np.bincount(task_of, minlength=n_tasks)) / sizes
    low, high = -1.0, 1.0  # all tasks at their least, and at their most
    for _ in range(60):  # halving: the mean grows with the amount
        middle = (low + high) / 2
        if shares @ np.clip(tasks + middle, least, most) < score:
            low = middle
        else:
            high = middle
    return np.clip(tasks + high, least, most)


EXACT = 12  # decimals: equal scores must tie, though sums of floats came out a hair apart


@dataclass(frozen=True, eq=False)
class Past:
    """What the sources reached, in [0, 1], missing cells filled (see `Scores.filled`).

    Parameters
    ----------
    full : ndarray, shape (sources,)
    tasks : ndarray, shape (sources, tasks)
    """

    full: FloatArray
    tasks: FloatArray


def past_scores(scores: Scores) -> Past:
    """Return the sources' full scores and task scores."""
    return Past(scores.full_scores(), scores.task_scores())


def ranks_among(sources: FloatArray, scores: FloatArray) -> FloatArray:
    """Return each score's rank among the sources and itself, 1 being the best.

    A score that equals a source's is not below it.

    Parameters
    ----------
    sources : ndarray, shape (sources,)
    scores : ndarray, shape (n,)
        Each is ranked by itself, not among the others. All in [0, 1], 1 being best.

    Examples
    --------
    >>> ranks_among(np.array([0.2, 0.5, 0.9]), np.array([0.5, 0.1])).tolist()
    [2.0, 4.0]
    """
    ordered = np.sort(sources)
    return np.asarray(1.0 + len(sources) - np.searchsorted(ordered, scores, side="right"))


def places(sources: FloatArray, scores: ArrayLike) -> list[int]:
    """Return `ranks_among` as whole numbers, scores equal but for rounding being equal.

    Examples
    --------
    >>> places(np.array([0.1 + 0.2, 0.9]), [0.3])
    [2]
    """
    wanted: FloatArray = np.asarray(scores, dtype=np.float64)
    ranks = ranks_among(np.round(sources, EXACT), np.round(wanted, EXACT))
    return [int(rank) for rank in ranks]
