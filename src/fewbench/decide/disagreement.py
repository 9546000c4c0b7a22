"""How much two models disagree, and so the standard error of paired random sampling."""

import math

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.item_curves import fit_curves, score_logits
from fewbench.scores import Scores

PRIOR = 2.0
"""So many items count for the source models' disagreement beside that of the two."""
ALIKE = 1e-9
"""Standard deviation of logits below which all sources score the same."""
BELOW, ABOVE, NODES = 1.0, 4.0, 61


def disagreement(
    items: IntArray,
    first: FloatArray,
    second: FloatArray,
    estimates: tuple[float, float],
    scores: Scores,
) -> float:
    """Estimate the mean squared difference of two models over all items.

    The disagreement on the common items, relative to what two models of their ability would show on
    the same items, times what these would show on all items. The items were chosen, so their own
    mean is no estimate.

    Parameters
    ----------
    items : ndarray of int, shape (n,)
        Positions of the items that both answered.
    first, second : ndarray, shape (n,)
        Their scores there, in [0, 1].
    estimates : tuple of float
        Estimated full scores. They disagree at least by their difference.
    scores : Scores
        The sources.
    """
    by_item = _by_item(sum(estimates) / 2, scores)
    typical = float(by_item.mean())
    expected = float(by_item[items].sum())
    own = float(((first - second) ** 2).sum())
    found = typical * (own + PRIOR * typical) / (expected + PRIOR * typical) if typical > 0 else 0.0
    least = abs(estimates[0] - estimates[1])  # of right and wrong answers
    return min(1.0, max(found, least if scores.is_binary else least**2))


def _by_item(score: float, scores: Scores) -> FloatArray:
    """Return the mean squared difference of two models with this full score, shape (items,).

    2 P (1 - P), with P the items' characteristic curves at the standardized logit of the score.
    """
    logits = score_logits(scores.full_scores(), scores.n_items)
    if logits.std() < ALIKE:
        return np.full(scores.n_items, 0.5)
    abilities = (logits - logits.mean()) / logits.std()
    grid = np.linspace(abilities.min() - BELOW, abilities.max() + ABOVE, NODES)

    def curves() -> FloatArray:
        return fit_curves(scores.filled_cells, abilities).expected(grid).astype(np.float32)

    chances = scores.remember("curves", curves)
    ability = (score_logits(np.array([score]), scores.n_items)[0] - logits.mean()) / logits.std()
    place = float(np.clip((ability - grid[0]) / (grid[1] - grid[0]), 0, NODES - 1))
    below = min(int(place), NODES - 2)
    at = (1 - place + below) * chances[below] + (place - below) * chances[below + 1]
    return np.asarray(2 * at * (1 - at), dtype=np.float64)


def paired_error(mean_square: float, difference: float, n: int, n_items: int) -> float:
    """Return the standard error of a difference by n random items that both run.

    Examples
    --------
    >>> round(paired_error(0.2, 0.03, 100, 1000), 4)
    0.0423
    """
    left = max(0.0, 1 / max(n, 1) - 1 / n_items)
    return math.sqrt(max(mean_square - difference**2, 0.0) * left)
