"""Bounds of a score, given the answers, and ranks among the sources."""

from dataclasses import dataclass

import numpy as np

from fewbench._types import ArrayLike, FloatArray, IntArray
from fewbench.scores import Scores


def known_bounds(
    item_weights: FloatArray, items: IntArray, answers: FloatArray
) -> tuple[float, float]:
    """Return the lowest and highest full score that the answers leave possible, in [0, 1].

    The bounds are equal when every item was run.

    Parameters
    ----------
    item_weights : ndarray, shape (items,)
        Weights of the items in the full score, with sum 1.
    items, answers : ndarrays, shape (n,)
        Positions of the items run, and their scores.

    Examples
    --------
    >>> known_bounds(np.full(4, 0.25), np.array([0, 1]), np.array([1.0, 0.0]))
    (0.25, 0.75)
    """
    weights = item_weights[items]
    low = min(float(weights @ answers), 1.0)  # rounding
    left = 1.0 - float(weights.sum()) if len(items) < len(item_weights) else 0.0
    return low, min(low + max(left, 0.0), 1.0)


def bound_score(score: float, scores: Scores, items: IntArray, answers: FloatArray) -> float:
    """Return a predicted full score, clipped to the `known_bounds`."""
    low, high = known_bounds(scores.item_weights, items, answers)
    return min(max(score, low), high)


def task_bounds(
    scores: Scores, items: IntArray, answers: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and highest score of each task that the answers leave possible."""
    weights = scores.task_weights[items]
    least = answers @ weights
    run = np.bincount(scores.task_of[items], minlength=len(scores.tasks))
    left = np.where(run < np.bincount(scores.task_of), 1 - weights.sum(axis=0), 0.0)
    return least, least + np.maximum(left, 0.0)


def fit_tasks(
    tasks: FloatArray, score: float, scores: Scores, items: IntArray, answers: FloatArray
) -> FloatArray:
    """Return predicted task scores, shifted until their weighted mean is the full score.

    All tasks shift by the same amount, each within its own bounds. Without sources they are only
    kept within these: a task's score is then the mean of its answers.

    Parameters
    ----------
    tasks : ndarray, shape (tasks,)
    score : float
        The full score, within its bounds.
    items, answers : ndarrays, shape (n,)
    """
    shares = scores.task_shares
    least, most = task_bounds(scores, items, answers)
    if not scores.n_models:
        return np.clip(tasks, least, most)
    # The mean is piecewise linear in the shift: a task moves from its least to its most.
    shifts = np.concatenate([least - tasks, most - tasks])
    order = np.argsort(shifts, kind="stable")
    shifts = shifts[order]
    moving = np.cumsum(np.concatenate([shares, -shares])[order])[:-1]
    means = float(shares @ least) + np.append(0.0, np.cumsum(moving * np.diff(shifts)))
    shift = float(np.interp(score, np.maximum.accumulate(means), shifts))
    return np.clip(tasks + shift, least, most)


EXACT = 12  # decimals: scores that differ by rounding tie


@dataclass(frozen=True, eq=False)
class Past:
    """The sources' scores in [0, 1], missing cells filled (see `Scores.filled`).

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
    """Return each score's rank among the sources and itself; 1 is best, ties share the better.

    Parameters
    ----------
    sources : ndarray, shape (sources,)
    scores : ndarray, shape (n,)
        Each is ranked separately. All in [0, 1].

    Examples
    --------
    >>> ranks_among(np.array([0.2, 0.5, 0.9]), np.array([0.5, 0.1])).tolist()
    [2.0, 4.0]
    """
    ordered = np.sort(sources)
    return np.asarray(1.0 + len(sources) - np.searchsorted(ordered, scores, side="right"))


def places(sources: FloatArray, scores: ArrayLike) -> list[int]:
    """Return `ranks_among` as integers; scores that differ by rounding tie.

    Examples
    --------
    >>> places(np.array([0.1 + 0.2, 0.9]), [0.3])
    [2]
    """
    wanted: FloatArray = np.asarray(scores, dtype=np.float64)
    ranks = ranks_among(np.round(sources, EXACT), np.round(wanted, EXACT))
    return [int(rank) for rank in ranks]
