"""Where a score stands among the sources': 1 is the best, on any scale."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fewbench._types import FloatArray
from fewbench.scores import Scores

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
