"""How much two models disagree, and so the standard error of paired random sampling."""

import math

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.scores import Scores

PRIOR = 2.0
"""So many items count for the source models' disagreement beside that of the two."""
MOST_PAIRS = 60
"""Source models whose disagreements are averaged."""


def disagreement(
    items: IntArray, first: FloatArray, second: FloatArray, difference: float, scores: Scores
) -> float:
    """Estimate the mean squared difference of two models over all items.

    The disagreement on the common items, relative to that of source models on the same items,
    times that of source models on all items. The items were chosen, so their own mean is no
    estimate.

    Parameters
    ----------
    items : ndarray of int, shape (n,)
        Positions of the items that both answered.
    first, second : ndarray, shape (n,)
        Their scores there, in [0, 1].
    difference : float
        Estimated difference of their full scores: they disagree at least as much.
    scores : Scores
        The sources.
    """
    by_item = scores.remember("disagreement", lambda: _by_item(scores))
    typical = float(by_item.mean())
    expected = float(by_item[items].sum())
    own = float(((first - second) ** 2).sum())
    found = typical * (own + PRIOR * typical) / (expected + PRIOR * typical) if typical > 0 else 0.0
    least = abs(difference)  # of right and wrong answers
    return min(1.0, max(found, least if scores.is_binary else least**2))


def _by_item(scores: Scores) -> FloatArray:
    """Return the mean squared difference of two sources on each item, shape (items,)."""
    rows = np.linspace(0, scores.n_models - 1, min(scores.n_models, MOST_PAIRS)).astype(np.intp)
    if len(rows) < 2:
        return np.full(scores.n_items, 0.5)
    return np.asarray(2 * scores.filled[rows].var(axis=0, ddof=1))


def paired_error(mean_square: float, difference: float, n: int, n_items: int) -> float:
    """Return the standard error of a difference by n random items that both run.

    Examples
    --------
    >>> round(paired_error(0.2, 0.03, 100, 1000), 4)
    0.0423
    """
    left = max(0.0, 1 / max(n, 1) - 1 / n_items)
    return math.sqrt(max(mean_square - difference**2, 0.0) * left)
