"""All differences of several scores at once: which are sure together.

Errors of all scores are drawn from a normal distribution whose differences have the given standard
errors. A pair is distinguished if its difference, in standard errors, exceeds what the largest of
all pairs reaches by error alone. Distinguished pairs are removed, and the others are tested again
(max-t, step-down: Romano & Wolf 2005, Econometrica 73(4)). A model may be the best unless another
one is surely above it: tests against the best alone (Hsu 1981, Annals of Statistics 9(5)) leave
fewer models, but exclude one of two runs of one model in .22 of cases, while its range of ranks
begins at 1.
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
        squares = np.where(np.isfinite(errors), errors, 1.0) ** 2
        means = squares.mean(axis=0)
        sizes, axes = np.linalg.eigh(-0.5 * (squares - means - means[:, None] + means.mean()))
        # Rounding leaves tiny eigenvalues, whose square roots would tell equal scores apart.
        kept = sizes > max(EQUAL * sizes[-1], 0.0)
        sizes, axes = sizes[kept], axes[:, kept]
        # Products of a matrix with itself take half the time.
        quarter, half = axes * sizes**0.25, axes * np.sqrt(sizes)
        return cls(quarter @ quarter.T, half @ half.T, axes @ axes.T, len(sizes))

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

    def quantile(self, reach: NDArray[np.floating[Any]], level: float) -> float:
        """Return the bound that errors exceed in a share 1 - level of the cases; 0 without errors.

        The length of the errors is integrated out: its square has a chi-square distribution, which
        is independent of the direction. For two scores nothing is left to chance.

        Parameters
        ----------
        reach : ndarray, shape (draws,)
            How far errors of length 1 reach in each of the `directions`.
        level : float
        """
        from scipy.optimize import brentq
        from scipy.special import gammaincc

        half, lengths = max(self.dimensions, 1) / 2, np.maximum(reach, TINY)

        def too_many(bound: float) -> float:
            return float(gammaincc(half, (bound / lengths) ** 2 / 2).mean()) - (1 - level)

        return float(brentq(too_many, 0.0, LARGEST, xtol=TINY)) if reach.any() else 0.0


def surely_above(
    scores: FloatArray, errors: FloatArray, p_values: FloatArray, level: float
) -> BoolArray:
    """Return whether the row's model is better than the column's, for all pairs together.

    Parameters
    ----------
    scores : ndarray, shape (models,)
    errors, p_values : ndarray, shape (models, models)
        Standard errors of the differences, and their two-sided p values, each by itself.
    level : float

    Examples
    --------
    For a single pair, a difference of 2 standard errors is sure at 90%; for three it is not.

    >>> errors = 0.05 * (1 - np.eye(3))
    >>> p_values = np.array([[1, 0.046, 0.046], [0.046, 1, 1], [0.046, 1, 1]])
    >>> scores, two = np.array([0.5, 0.4, 0.4]), (slice(2), slice(2))
    >>> surely_above(scores[:2], errors[two], p_values[two], 0.9).tolist()
    [[False, True], [False, False]]
    >>> bool(surely_above(scores, errors, p_values, 0.9).any())
    False
    """
    from scipy.special import ndtri

    n, rounded = len(scores), np.round(scores, EXACT)
    # Standard errors of a normal distribution, as p values may come from intervals of any shape.
    size = np.where(rounded[:, None] == rounded, 0.0, -ndtri(p_values / 2))
    distribution = Errors.from_matrix(errors)
    inverse = distribution.inverse
    draws = min(max(WORK // n**2, FEWEST_DRAWS), MOST_DRAWS)
    drawn = distribution.directions(draws).astype(np.float32)
    apart = np.zeros((n, n), dtype=bool)
    while True:
        reach = _widest(drawn, np.where(apart, 0.0, inverse).astype(np.float32))
        more = (size > distribution.quantile(reach, level)) & ~apart
        if not more.any():
            return np.asarray(apart & (rounded[:, None] > rounded))
        apart |= more


def _widest(drawn: Float32Array, inverse: Float32Array) -> Float32Array:
    """Return the largest difference of any two models, shape (draws,)."""
    largest = np.zeros(drawn.shape[1], dtype=drawn.dtype)
    for i in range(len(drawn)):
        others = i + 1 + np.flatnonzero(inverse[i, i + 1 :])
        apart = np.abs(drawn[others] - drawn[i]) * inverse[i, others, None]
        np.maximum(largest, apart.max(axis=0, initial=0.0), out=largest)
    return largest
