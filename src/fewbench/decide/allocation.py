"""Which targets are the best: how likely each is, and where to spend items to settle it."""

import itertools
import math

import numpy as np

from fewbench._blocks import blocks
from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.decide.joint import EQUAL, Errors
from fewbench.uncertainty.bounds import EXACT

DRAWS = 20_000
"""Draws of all scores, for the probability of being among the best."""
STEPS = 50
"""Number of steps in which the items are given out, about."""


def chances_of_top(scores: FloatArray, errors: FloatArray, top: int) -> FloatArray:
    """Return the probability of each score to be among the highest `top`, shape (targets,).

    Draws all scores with errors whose differences have these standard errors (see `Errors`). Equal
    scores share a place.

    Parameters
    ----------
    scores : ndarray, shape (targets,)
        Estimated full scores.
    errors : ndarray, shape (targets, targets)
        Standard errors of the differences; infinite if unknown.
    top : int
        From 1 to the number of targets.

    Examples
    --------
    Two known scores, and two estimates whose errors are alike:

    >>> errors = np.array([[0, 0, 9, 9], [0, 0, 9, 9], [9, 9, 0, 4], [9, 9, 4, 0]]) / 100
    >>> chances_of_top(np.array([0.5, 0.49, 0.5, 0.5]), errors, 1).round(2).tolist()
    [0.43, 0.0, 0.29, 0.28]
    """
    n, distribution = len(scores), Errors.from_matrix(errors)
    rounded, chances = np.round(scores, EXACT), np.zeros(n)
    rng = np.random.default_rng(0)
    for part in blocks(DRAWS, n):
        errors_drawn = rng.standard_normal((part.stop - part.start, n)) @ distribution.root
        drawn = rounded + errors_drawn
        last = np.partition(drawn, n - top, axis=1)[:, n - top, None]
        above, level = drawn > last + EQUAL, np.abs(drawn - last) <= EQUAL
        left = top - above.sum(axis=1, keepdims=True)
        chances += (above + level * left / level.sum(axis=1, keepdims=True)).sum(axis=0)
    return chances / DRAWS


def own_variances(errors: FloatArray) -> FloatArray:
    """Return variances of independent scores whose differences have these standard errors.

    As closely as independent ones can (least squares on variances; those below 0 are 0).

    Parameters
    ----------
    errors : ndarray, shape (n, n)
        Standard errors of the differences; infinite if unknown.

    Examples
    --------
    >>> own_variances(np.array([[0, 5, 13], [5, 0, 12.6], [13, 12.6, 0.0]])).round(1).tolist()
    [17.6, 7.4, 151.4]
    """
    n = len(errors)
    squares = np.where(np.isfinite(errors), errors, 1.0) ** 2
    sums = squares.sum(axis=1)
    if n == 2:  # one equation: any split of the variance gives the same
        return np.asarray(sums / 2)
    return np.asarray(np.maximum((sums - sums.sum() / (2 * n - 2)) / (n - 2), 0.0))


def allocate(
    scores: FloatArray,
    errors: FloatArray,
    answered: IntArray,
    known: BoolArray,
    top: int,
    total: int,
    n_items: int,
    lasting: FloatArray | None = None,
    decidable: BoolArray | None = None,
) -> IntArray:
    """Return how many of `total` further items each target runs, to settle the best `top`.

    Step by step, the pair across the boundary that is least sure gets more, the one of the two
    whose variance falls more. A target's variance falls as that of a random sample: with
    1/n - 1/N. (Least sure pairs first: Kalyanakrishnan et al. 2012, LUCB; Chen et al. 2000, OCBA.)

    Parameters
    ----------
    scores : ndarray, shape (targets,)
        Estimated full scores, the best first.
    errors : ndarray, shape (targets, targets)
        Standard errors of the differences, that items not run leave.
    answered : ndarray of int, shape (targets,)
    known : ndarray of bool, shape (targets,)
        Whether the score is known, so that a target needs no items.
    top, total, n_items : int
    lasting : ndarray, shape (targets, targets), optional
        Standard errors of the differences that are left when all items ran.
    decidable : ndarray of bool, shape (targets, targets), optional
        Pairs that all items would decide; the others are worth no item.

    Examples
    --------
    >>> errors = np.full((3, 3), 0.05)
    >>> n, known = np.full(3, 20), np.zeros(3, dtype=bool)
    >>> allocate(np.array([0.7, 0.69, 0.3]), errors, n, known, 1, 40, 1000).tolist()
    [20, 20, 0]
    """
    variances = np.maximum(own_variances(errors), 1e-12)
    n, added = answered.astype(np.float64), np.zeros(len(scores), dtype=np.intp)
    start = np.maximum(1 / np.maximum(n, 1) - 1 / n_items, 1e-12)

    def at(number: FloatArray) -> FloatArray:
        left = np.maximum(1 / np.maximum(number, 1) - 1 / n_items, 0) / start
        return np.asarray(np.where(known, 0.0, variances * left))

    step = max(1, total // STEPS)
    while total > 0:
        room = np.where(known, 0, n_items - n - added)
        best: tuple[float, int, int] | None = None
        now = at(n + added)
        for i, j in itertools.product(range(top), range(top, len(scores))):
            if room[i] <= 0 and room[j] <= 0:
                continue
            if decidable is not None and not decidable[i, j]:
                continue
            variance = now[i] + now[j] + (0.0 if lasting is None else float(lasting[i, j]) ** 2)
            sure = float(scores[i] - scores[j]) / math.sqrt(max(variance, 1e-18))
            if best is None or sure < best[0]:
                best = sure, i, j
        if best is None:
            break
        gains = now - at(n + added + np.minimum(step, room))
        which = max(best[1:], key=lambda target: (room[target] > 0, gains[target]))
        more = int(min(step, room[which], total))
        added[which] += more
        total -= more
    return added
