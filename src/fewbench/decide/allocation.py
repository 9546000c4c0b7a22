"""Which targets are the best: how likely each is, and where to spend items to settle it."""

import math
from dataclasses import dataclass

import numpy as np

from fewbench._blocks import blocks
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms import ties
from fewbench.algorithms.best_of_many import DRAWS as DRAWS_TO_SHARE
from fewbench.algorithms.best_of_many import FEW_ITEMS, share_out
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
SURE = 8.0
"""Standard errors by which no draw is off."""
SPREADS = 200
"""Number of variances between models among which the likeliest one is found."""

Ends = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Outlook:
    """What scores are expected to be, as some of the highest are high by luck.

    The models whose scores are near that of the best vary about their mean by as much as their
    scores vary beyond their errors (REML); each score is drawn towards the mean by as much as it is
    imprecise, and the mean towards the precise ones. If the scores vary no more than by their
    errors, all models are expected alike.

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
    def of(
        cls,
        scores: FloatArray,
        errors: FloatArray,
        top: int = 1,
        own: FloatArray | None = None,
        distribution: Errors | None = None,
    ) -> "Outlook":
        """Return what is expected of scores whose differences have these standard errors.

        Parameters
        ----------
        scores : ndarray, shape (targets,)
        errors : ndarray, shape (targets, targets)
            Infinite if unknown.
        top : int
            Scores are near if they are less than `FAR` standard errors from this highest one.
        own : ndarray, shape (targets,), optional
            Standard errors of the scores themselves (default: the mean of the near scores is
            known). Errors of differences do not say how far the mean of all is off.
        distribution : Errors, optional
            Those of the matrix, if they are made.

        Examples
        --------
        >>> errors = 0.03 * (1 - np.eye(3))
        >>> Outlook.of(np.array([0.53, 0.5, 0.5]), errors).scores.round(3).tolist()
        [0.51, 0.51, 0.51]
        >>> Outlook.of(np.array([0.6, 0.55, 0.5]), errors).scores.round(3).tolist()
        [0.591, 0.55, 0.509]

        A low score that is imprecise hardly lowers what is expected of a precise one:

        >>> own = np.array([0.01, 0.1])
        >>> errors = np.hypot(own[:, None], own) * (1 - np.eye(2))
        >>> Outlook.of(np.array([0.8, 0.7]), errors, own=own).scores.round(3).tolist()
        [0.799, 0.799]
        """
        distribution, n = distribution or Errors.from_matrix(errors), len(scores)
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
        is_known = np.isfinite(errors[among]).all(axis=1)
        level = 0.0
        if own is not None and is_known.all():  # what the differences tell of the mean's error
            with_mean = (own[near] ** 2 - (errors[among] ** 2).mean(axis=1)) / 2
            level = float((with_mean @ axes) @ (seen / (spread + sizes)))
        expected, gains, root = scores.copy(), np.zeros(n), distribution.root.copy()
        expected[near] -= by_luck + level
        unsure = 2 / max(len(near) - 3, 1) * by_luck**2
        gained = np.maximum(axes**2 @ (sizes * (1 - kept)) - unsure, 0.0)
        gains[near] = np.where(is_known, gained, 0.0)  # an unknown error gains nothing
        root[:, near] -= root[:, near] @ ((axes * (1 - np.sqrt(kept))) @ axes.T)
        return cls(expected, root, gains)

    def interval(self, at: int, score: float, ends: Ends, level: float) -> tuple[float, float]:
        """Return the interval of an expected score; `ends` are those of the score by itself."""
        from scipy.special import ndtri

        gain = float(ndtri(0.5 + level / 2)) ** 2 * float(self.gains[at])
        below, above = (math.sqrt(max((end - score) ** 2 - gain, 0.0)) for end in ends)
        expected = float(self.scores[at])
        return max(expected - below, 0.0), min(expected + above, 1.0)


def chances_of_top(
    scores: FloatArray, errors: FloatArray, top: int, distribution: Errors | None = None
) -> FloatArray:
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
    distribution : Errors, optional
        Those of the matrix, if they are made.

    Examples
    --------
    Scores that differ by no more than their errors, and by more:

    >>> errors = 0.03 * (1 - np.eye(3))
    >>> chances_of_top(np.array([0.53, 0.5, 0.5]), errors, 1).round(2).tolist()
    [0.33, 0.33, 0.33]
    >>> chances_of_top(np.array([0.57, 0.5, 0.48]), errors, 1).round(2).tolist()
    [0.98, 0.02, 0.0]
    """
    n, outlook = len(scores), Outlook.of(scores, errors, top, distribution=distribution)
    expected, chances = np.round(outlook.scores, EXACT), np.zeros(n)
    best, root = np.argsort(-expected, kind="stable")[:top], outlook.root
    sizes = (root**2).sum(axis=0)
    apart = sizes[best, None] + sizes - 2 * root[:, best].T @ root
    behind = expected[best, None] - expected > SURE * np.sqrt(np.maximum(apart, TINY))
    able = np.flatnonzero(~behind.all(axis=0))  # to be among the best in a draw
    rng, expected, root, n_able = np.random.default_rng(0), expected[able], root[:, able], len(able)
    for part in blocks(DRAWS, n):
        drawn = expected + rng.standard_normal((part.stop - part.start, n)) @ root
        last = np.partition(drawn, n_able - top, axis=1)[:, n_able - top, None]
        above, level = drawn > last + EQUAL, np.abs(drawn - last) <= EQUAL
        left = top - above.sum(axis=1, keepdims=True)
        chances[able] += (above + level * left / level.sum(axis=1, keepdims=True)).sum(axis=0)
    return chances / DRAWS


def allocate(
    scores: FloatArray,
    errors: FloatArray,
    answered: IntArray,
    room: IntArray,
    top: int,
    total: int,
    rng: np.random.Generator,
) -> IntArray:
    """Return how many of `total` further items each target runs, to settle the best `top`.

    By what is expected of the scores (`Outlook`); see `fewbench.algorithms.best_of_many.share_out`.

    Parameters
    ----------
    scores : ndarray, shape (targets,)
        Estimated full scores, the best first.
    errors : ndarray, shape (targets, targets)
        Standard errors of the differences, that items not run leave.
    answered, room : ndarray of int, shape (targets,)
        Items that each target ran, and can still run.
    top, total : int
    rng : Generator

    Examples
    --------
    >>> errors = np.full((3, 3), 0.05)
    >>> n, rng = np.full(3, 20), np.random.default_rng(0)
    >>> allocate(np.array([0.7, 0.69, 0.3]), errors, n, 1000 - n, 1, 40, rng).tolist()
    [20, 20, 0]
    """
    fewest = np.minimum(answered[:, None], answered)
    wider = errors * np.sqrt(1 + FEW_ITEMS / (fewest + FEW_ITEMS))
    outlook = Outlook.of(scores, wider, top)
    drawn = outlook.scores + rng.standard_normal((DRAWS_TO_SHARE, len(scores))) @ outlook.root
    step = max(1, total // STEPS)
    return share_out(drawn, answered, room, total, step, rng, top)
