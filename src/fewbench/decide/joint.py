"""All differences of several scores at once: which are sure together, and which model may be best.

Errors of all scores are drawn from a normal distribution whose differences have the given standard
errors. A pair is distinguished if its difference, in standard errors, exceeds what the largest of
all pairs reaches by error alone. Distinguished pairs are removed, and the others are tested again
(max-t, step-down: Romano & Wolf 2005, Econometrica 73(4)). A model may be the best unless another
one leads by more than the largest lead over it reaches by errors alone (multiple comparisons with
the best: Hsu 1981, Annals of Statistics 9(5)).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._types import BoolArray, FloatArray
from fewbench.uncertainty.bounds import EXACT

EQUAL = 10.0 ** (-EXACT - 1)
"""Scores no further apart than this are equal."""
WORK = 2**25
"""Pairs times draws, about, within the numbers of draws below."""
FEWEST_DRAWS, MOST_DRAWS = 1000, 2000
TINY = 1e-12
LARGEST = 40.0  # standard errors

Float32Array = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class JointVerdicts:
    """What is sure of several scores together.

    Attributes
    ----------
    surely_above : ndarray of bool, shape (models, models)
        Whether the row's model is better than the column's.
    may_be_best : ndarray of bool, shape (models,)
    """

    surely_above: BoolArray
    may_be_best: BoolArray


@dataclass(frozen=True, eq=False)
class Errors:
    """A normal distribution of the errors of several scores.

    Attributes
    ----------
    root : ndarray, shape (models, models)
        Turns independent normal numbers into errors.
    covariance : ndarray, shape (models, models)
    projection : ndarray, shape (models, models)
        On the space in which the errors lie.
    dimensions : int
        Dimensions of this space.
    """

    root: FloatArray
    covariance: FloatArray
    projection: FloatArray
    dimensions: int

    @classmethod
    def from_matrix(cls, errors: FloatArray) -> "Errors":
        """Return errors whose differences have these standard errors.

        As closely as a covariance allows: squared distances, centered, without negative eigenvalues
        (Torgerson 1952, classical scaling). The root is the symmetric one, which does not depend on
        the order and the signs of eigenvectors: draws are the same on every processor.

        Parameters
        ----------
        errors : ndarray, shape (models, models)
            Standard errors of the differences; infinite if unknown.

        Examples
        --------
        >>> two = Errors.from_matrix(np.array([[0, 0.1], [0.1, 0]]))
        >>> two.covariance.round(4).tolist(), two.dimensions
        ([[0.0025, -0.0025], [-0.0025, 0.0025]], 1)
        """
        n = len(errors)
        center = np.eye(n) - 1 / n
        squares = np.where(np.isfinite(errors), errors, 1.0) ** 2
        sizes, axes = np.linalg.eigh(-0.5 * center @ squares @ center)
        # Rounding leaves tiny eigenvalues, whose square roots would tell equal scores apart.
        kept = sizes > max(EQUAL * sizes[-1], 0.0)
        sizes, axes = sizes[kept], axes[:, kept]
        return cls(axes * np.sqrt(sizes) @ axes.T, axes * sizes @ axes.T, axes @ axes.T, len(sizes))

    @property
    def inverse(self) -> FloatArray:
        """One over the standard errors of the differences; 0 where they have none."""
        own = np.diag(self.covariance)
        squares = own[:, None] + own - 2 * self.covariance
        has_error = squares > EQUAL * max(float(squares.max(initial=0.0)), TINY)
        return np.asarray(has_error / np.sqrt(np.maximum(squares, TINY**2)))

    def directions(self, draws: int) -> FloatArray:
        """Return errors of length 1 in units of the distribution, shape (models, draws)."""
        independent = np.random.default_rng(0).standard_normal((draws, len(self.root))).T
        lengths = np.sqrt((independent * (self.projection @ independent)).sum(axis=0))
        return np.asarray(self.root @ independent / np.maximum(lengths, TINY))

    def chance_beyond(self, bound: FloatArray, reach: NDArray[np.floating[Any]]) -> FloatArray:
        """Return how likely errors reach beyond a bound, shape (...,).

        The length of the errors is integrated out: its square has a chi-square distribution, which
        is independent of the direction. For two scores nothing is left to chance.

        Parameters
        ----------
        bound : ndarray, shape (...,)
            Above 0.
        reach : ndarray, shape (..., draws)
            How far errors of length 1 reach in each of the `directions`.
        """
        from scipy.special import gammaincc

        squares = (bound[..., None] / np.maximum(reach, TINY)) ** 2
        return np.asarray(gammaincc(max(self.dimensions, 1) / 2, squares / 2).mean(axis=-1))

    def quantile(self, reach: NDArray[np.floating[Any]], level: float) -> float:
        """Return the bound that errors exceed in a share 1 - level of the cases; 0 without errors.

        Parameters
        ----------
        reach : ndarray, shape (draws,)
            As for `chance_beyond`.
        level : float
        """
        from scipy.optimize import brentq

        def too_many(bound: float) -> float:
            return float(self.chance_beyond(np.array(bound), reach)) - (1 - level)

        return float(brentq(too_many, 0.0, LARGEST, xtol=TINY)) if reach.any() else 0.0


def joint_verdicts(
    scores: FloatArray, errors: FloatArray, p_values: FloatArray, level: float
) -> JointVerdicts:
    """Return which scores differ, and which may be the best, each for all scores together.

    Parameters
    ----------
    scores : ndarray, shape (models,)
    errors, p_values : ndarray, shape (models, models)
        Standard errors of the differences, and their two-sided p values, each by itself.
    level : float

    Examples
    --------
    For a single pair, a difference of 2 standard errors is sure at 90%; for three it is not,
    though the lower two are surely not the best.

    >>> errors = 0.05 * (1 - np.eye(3))
    >>> p_values = np.array([[1, 0.046, 0.046], [0.046, 1, 1], [0.046, 1, 1]])
    >>> scores, two = np.array([0.5, 0.4, 0.4]), (slice(2), slice(2))
    >>> joint_verdicts(scores[:2], errors[two], p_values[two], 0.9).surely_above.tolist()
    [[False, True], [False, False]]
    >>> of_three = joint_verdicts(scores, errors, p_values, 0.9)
    >>> bool(of_three.surely_above.any()), of_three.may_be_best.tolist()
    (False, [True, False, False])
    """
    from scipy.special import ndtri

    n = len(scores)
    rounded = np.round(scores, EXACT)
    # Standard errors of a normal distribution, as p values may come from intervals of any shape.
    size = np.where(rounded[:, None] == rounded, 0.0, -ndtri(p_values / 2))
    lead = np.where(rounded[:, None] > rounded, size, -size)
    distribution = Errors.from_matrix(errors)
    inverse = distribution.inverse
    draws = min(max(WORK // n**2, FEWEST_DRAWS), MOST_DRAWS)
    drawn = distribution.directions(draws).astype(np.float32)

    over = _leads(drawn, inverse.astype(np.float32))
    reach = over.max(axis=0)
    critical = distribution.quantile(reach, level)
    # What is beyond the largest of all pairs is beyond the largest lead over one model.
    leads = lead.max(axis=0)
    may_be_best = leads <= critical
    near = np.flatnonzero(may_be_best & (leads > 0))
    may_be_best[near] = distribution.chance_beyond(leads[near], over[near]) > 1 - level + 1e-12

    apart = np.zeros((n, n), dtype=bool)
    while (more := (size > critical) & ~apart).any():
        apart |= more
        reach = _widest(drawn, np.where(apart, 0.0, inverse).astype(np.float32))
        critical = distribution.quantile(reach, level)
    return JointVerdicts(apart & (lead > 0), may_be_best)


def _leads(drawn: Float32Array, inverse: Float32Array) -> Float32Array:
    """Return the largest lead of any other model over each one, shape (models, draws)."""
    largest = np.zeros_like(drawn)
    for i in range(len(drawn)):
        leads = (drawn[i + 1 :] - drawn[i]) * inverse[i, i + 1 :, None]
        np.maximum(largest[i], leads.max(axis=0, initial=0.0), out=largest[i])
        np.maximum(largest[i + 1 :], -leads, out=largest[i + 1 :])
    return largest


def _widest(drawn: Float32Array, inverse: Float32Array) -> Float32Array:
    """Return the largest difference of any two models, shape (draws,)."""
    largest = np.zeros(drawn.shape[1], dtype=drawn.dtype)
    for i in range(len(drawn)):
        others = i + 1 + np.flatnonzero(inverse[i, i + 1 :])
        apart = np.abs(drawn[others] - drawn[i]) * inverse[i, others, None]
        np.maximum(largest, apart.max(axis=0, initial=0.0), out=largest)
    return largest
