"""Which targets are the best: how likely each is, and where to spend items to settle it."""

import itertools
import math
from dataclasses import dataclass

import numpy as np

from fewbench._blocks import blocks
from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.algorithms import ties
from fewbench.decide.joint import EQUAL, TINY, Errors
from fewbench.uncertainty.bounds import EXACT

DRAWS = 20_000
"""Draws of all scores, for the probability of being among the best."""
STEPS = 50
"""Number of steps in which the items are given out, about."""
FAR = 5.0
"""Standard errors from the best beyond which scores do not count for how much the best ones differ.
With 3, the best of 20 models that lie 3 points apart is .6 points too low, with 5 .2; without a
limit, where others lie far below, the best is 2 points too high."""
SPREADS = 200
"""Number of variances between models among which the likeliest one is found."""

Ends = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Outlook:
    """What scores are expected to be, as some of the highest are high by luck.

    The models whose scores are near that of the best vary about their mean by as much as their
    scores vary beyond their errors (REML); each score is drawn towards the mean by as much as it is
    imprecise. If the scores vary no more than by their errors, all models are expected alike.

    Attributes
    ----------
    scores : ndarray, shape (targets,)
    root : ndarray, shape (targets, targets)
        Turns independent normal numbers into errors.
    gains : ndarray, shape (targets,)
        By how much the variance of each score falls. How far models lie apart is not known exactly,
        which costs a part of it (Morris 1983, Journal of the American Statistical Association 78).
    """

    scores: FloatArray
    root: FloatArray
    gains: FloatArray

    @classmethod
    def of(cls, scores: FloatArray, errors: FloatArray, top: int = 1) -> "Outlook":
        """Return what is expected of scores whose differences have these standard errors.

        Parameters
        ----------
        scores : ndarray, shape (targets,)
        errors : ndarray, shape (targets, targets)
            Infinite if unknown.
        top : int
            Scores are near if they are less than `FAR` standard errors from this highest one.

        Examples
        --------
        >>> errors = 0.03 * (1 - np.eye(3))
        >>> Outlook.of(np.array([0.53, 0.5, 0.5]), errors).scores.round(3).tolist()
        [0.51, 0.51, 0.51]
        >>> Outlook.of(np.array([0.6, 0.55, 0.5]), errors).scores.round(3).tolist()
        [0.591, 0.55, 0.509]
        """
        distribution, n = Errors.from_matrix(errors), len(scores)
        last = int(np.argsort(-scores, kind="stable")[top - 1])
        near = np.flatnonzero(np.abs(scores - scores[last]) <= FAR * errors[last])
        center, among = np.eye(len(near)) - 1 / len(near), np.ix_(near, near)
        sizes, axes = np.linalg.eigh(center @ distribution.covariance[among] @ center)
        has_error = sizes > EQUAL * max(float(sizes[-1]), TINY)
        if not has_error.any():
            return cls(scores, distribution.root, np.zeros(n))
        sizes, axes = sizes[has_error], axes[:, has_error]
        seen = scores[near] @ axes
        spreads = np.append(0.0, np.geomspace(1e-4, 1e6, SPREADS)) * sizes.mean()
        variances = spreads[:, None] + sizes
        spread = spreads[ties.argmin((np.log(variances) + seen**2 / variances).sum(axis=1))]
        kept = spread / (spread + sizes)
        by_luck = axes @ ((1 - kept) * seen)
        expected, gains, turn = scores.copy(), np.zeros(n), np.eye(n)
        expected[near] -= by_luck
        unsure = 2 / max(len(near) - 3, 1) * by_luck**2
        gains[near] = np.maximum(axes**2 @ (sizes * (1 - kept)) - unsure, 0.0)
        turn[among] -= (axes * (1 - np.sqrt(kept))) @ axes.T
        return cls(expected, distribution.root @ turn, gains)

    def interval(self, at: int, score: float, ends: Ends, level: float) -> tuple[float, float]:
        """Return the interval of an expected score; `ends` are those of the score by itself."""
        from scipy.special import ndtri

        gain = float(ndtri(0.5 + level / 2)) ** 2 * float(self.gains[at])
        below, above = (math.sqrt(max((end - score) ** 2 - gain, 0.0)) for end in ends)
        expected = float(self.scores[at])
        return max(expected - below, 0.0), min(expected + above, 1.0)


def chances_of_top(scores: FloatArray, errors: FloatArray, top: int) -> FloatArray:
    """Return the probability of each score to be among the highest `top`, shape (targets,).

    Draws all scores from what is expected of them (`Outlook`). Equal scores share a place.

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
    Scores that differ by no more than their errors, and by more:

    >>> errors = 0.03 * (1 - np.eye(3))
    >>> chances_of_top(np.array([0.53, 0.5, 0.5]), errors, 1).round(2).tolist()
    [0.33, 0.33, 0.33]
    >>> chances_of_top(np.array([0.57, 0.5, 0.48]), errors, 1).round(2).tolist()
    [0.98, 0.02, 0.0]
    """
    n, outlook = len(scores), Outlook.of(scores, errors, top)
    expected, chances = np.round(outlook.scores, EXACT), np.zeros(n)
    rng = np.random.default_rng(0)
    for part in blocks(DRAWS, n):
        drawn = expected + rng.standard_normal((part.stop - part.start, n)) @ outlook.root
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
