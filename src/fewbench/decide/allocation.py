"""Which targets are the best: how likely each is, and where to spend items to settle it."""

import math

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.best_of_many import (
    FEW_ITEMS,
    Beliefs,
    believe_estimates,
    chances_top,
    share_out,
    steadied,
)

DRAWS = 20_000
"""Draws of all scores, for the probability of being among the best."""
STEPS = 50
"""Number of steps in which the items are given out, about."""
LEAST = 1e-9
"""Least variance: an estimate with no more error, .003 points, is known."""

NEAR_COPIES = 1e-6
"""Least eigenvalue of the correlations of errors: those of near copies are nearly 1."""


def beliefs_of(scores: FloatArray, errors: FloatArray, own: FloatArray, items: IntArray) -> Beliefs:
    """Return what is believed of scores, as some of the highest are high by luck.

    As `fewbench.best` believes it; see `fewbench.algorithms.best_of_many.believe_estimates`.

    Parameters
    ----------
    scores : ndarray, shape (targets,)
        Estimates.
    errors : ndarray, shape (targets, targets)
        Standard errors of their differences; infinite if unknown.
    own : ndarray, shape (targets,)
        Standard errors of the scores themselves. Errors of differences do not say how far the level
        of all is off.
    items : ndarray of int, shape (targets,)
        How many items each ran.

    Examples
    --------
    >>> own, items = np.full(3, 0.03), np.full(3, 200)
    >>> errors = np.hypot(own[:, None], own) * (1 - np.eye(3))
    >>> beliefs_of(np.array([0.53, 0.5, 0.5]), errors, own, items).scores.round(2).tolist()
    [0.51, 0.51, 0.51]
    """
    is_known = own**2 <= LEAST
    own = np.where(is_known, math.sqrt(LEAST), own)
    apart = own[:, None] ** 2 + own**2
    apart -= np.where(np.isfinite(errors), errors**2, apart)
    products = np.outer(own, own)
    correlations = np.clip(apart / (2 * products), -1.0, 1.0)
    correlations[is_known] = correlations[:, is_known] = 0.0
    both = np.minimum.outer(items, items).astype(float)
    covariance = products * steadied(correlations, both, NEAR_COPIES)
    found = believe_estimates(scores, covariance, float(scores.mean()))
    found.means[:, is_known] = scores[is_known]
    found.covariances[:, is_known] = found.covariances[:, :, is_known] = 0.0
    return found


def chances_of_top(beliefs: Beliefs, top: int) -> FloatArray:
    """Return the probability of each score to be among the highest `top`, shape (targets,).

    Equal scores share a place.

    Examples
    --------
    Scores that differ by no more than their errors, and by more:

    >>> own, items = np.full(3, 0.02), np.full(3, 500)
    >>> errors = np.hypot(own[:, None], own) * (1 - np.eye(3))
    >>> alike, apart = np.array([0.51, 0.5, 0.5]), np.array([0.7, 0.5, 0.48])
    >>> [chances_of_top(beliefs_of(scores, errors, own, items), 1).round(1).tolist()
    ...  for scores in (alike, apart)]
    [[0.4, 0.3, 0.3], [1.0, 0.0, 0.0]]
    """
    return chances_top(beliefs.draw(np.random.default_rng(0), DRAWS), top)


def allocate(
    scores: FloatArray,
    errors: FloatArray,
    own: FloatArray,
    answered: IntArray,
    room: IntArray,
    top: int,
    total: int,
    rng: np.random.Generator,
) -> IntArray:
    """Return how many of `total` further items each target runs, to settle the best `top`.

    By what is believed of the scores (`beliefs_of`); see `share_out`.

    Parameters
    ----------
    scores : ndarray, shape (targets,)
        Estimated full scores, the best first.
    errors : ndarray, shape (targets, targets)
        Standard errors of the differences, that items not run leave.
    own : ndarray, shape (targets,)
        Those of the scores.
    answered, room : ndarray of int, shape (targets,)
        Items that each target ran, and can still run.
    top, total : int
    rng : Generator

    Examples
    --------
    >>> errors = np.full((3, 3), 0.05)
    >>> n, own, rng = np.full(3, 20), np.full(3, 0.04), np.random.default_rng(0)
    >>> allocate(np.array([0.7, 0.69, 0.3]), errors, own, n, 1000 - n, 1, 40, rng).tolist()
    [20, 20, 0]
    """
    fewest = np.minimum(answered[:, None], answered)
    wider = errors * np.sqrt(1 + FEW_ITEMS / (fewest + FEW_ITEMS))
    beliefs = beliefs_of(scores, wider, own, answered)
    step = max(1, total // STEPS)
    return share_out(beliefs.draw(rng), answered, room, total, step, rng, top)
