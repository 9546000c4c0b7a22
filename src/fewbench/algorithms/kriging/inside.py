"""Inside the sources' range: a Gaussian process over items, local to the target.

A target's answers y are Gaussian with the mean and covariance of sources that answer as it does.
Source m weighs

    omega_m ~ exp(-H_m / (h H))

with H_m its mean absolute disagreement with the target on the answered items, and H what is
expected of two sources. The sample covariance is shrunk by half towards the covariance of the item
characteristic curves P at the sources' abilities:

    Sigma = 1/2 cov(Y) + 1/2 cov(P) + dispersion diag(1/2 mean P(1 - P) + .02 p(1 - p))

As factors: never items x items. docs/method.md has the whole model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._blocks import (
    CACHED,
    Matrix,
    beside,
    blocks,
    by_columns,
    by_rows,
    cell_by_cell,
    column_blocks,
    total,
)
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms import ties
from fewbench.algorithms.abilities import Abilities
from fewbench.algorithms.item_curves import ItemCurves

SHRINKAGE = 0.5
"""Weight of the curves' covariance beside the sample covariance."""
BANDWIDTH = 0.15
DIRECTIONS = 8
"""Leading directions of the curves' covariance that are kept."""
NUGGET = 0.02
KEPT_WEIGHT = 0.9999
SMALLEST = 1e-8
"""Directions below this share of the largest are not found from the columns' products."""
SURE = 0.02
"""One-step-ahead means stay so far from 0 and 1 when they are scored."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A Gaussian vector y of the candidates, and wanted weighted means of all items.

    y = mean + factors' f + noise, with f standard normal and independent noise of each item.

    Attributes
    ----------
    mean, noise : ndarray, shape (candidates,)
    factors : ndarray, shape (k, candidates), or function
        Or what makes those of some candidates. With thousands of sources they are megabytes, which
        are needed while items are chosen and not between the rounds of a run.
    wanted_mean, wanted_noise : ndarray, shape (wanted,)
        Mean of each wanted score, and the variance that the items' own noise leaves in it.
    wanted_factors : ndarray, shape (k, wanted)
    weights : ndarray, shape (wanted, candidates)
        Weight of each candidate in the wanted scores.
    """

    mean: FloatArray
    factors: NDArray[Any] | Callable[[IntArray | slice], NDArray[Any]]
    noise: FloatArray
    wanted_mean: FloatArray
    wanted_factors: FloatArray
    wanted_noise: FloatArray
    weights: FloatArray

    def factors_of(self, items: IntArray | slice = slice(None)) -> NDArray[Any]:
        """Return the factors of some candidates, or of all, shape (k, n)."""
        return self.factors(items) if callable(self.factors) else self.factors[:, items]

    def predict(self, items: IntArray, answers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return posterior means and variances of the wanted scores, each shape (wanted,)."""
        of_items = self.factors_of(items).astype(np.float64)
        noise = self.noise[items].astype(np.float64)
        # Simple kriging: the covariance of the answers with the wanted scores, to which an item
        # adds its own noise as well as its factors.
        cross = of_items.T @ self.wanted_factors + noise[:, None] * self.weights[:, items].T
        solved = np.linalg.solve(of_items.T @ of_items + np.diag(noise), cross)
        prior = (self.wanted_factors**2).sum(axis=0) + self.wanted_noise
        means = self.wanted_mean + (answers - self.mean[items]) @ solved
        return means, np.maximum(prior - (cross * solved).sum(axis=0), 1e-10)

    def one_step_ahead(self, items: IntArray, answers: FloatArray) -> FloatArray:
        """Return the Bernoulli log score of each answer, predicted from those before it."""
        from scipy.linalg import solve_triangular

        of_items = self.factors_of(items).astype(np.float64)
        lower = np.linalg.cholesky(of_items.T @ of_items + np.diag(self.noise[items]))
        # The Cholesky factor whitens answer by answer: entry i is the error given the answers
        # before it, over its standard deviation, which stands on the diagonal.
        off = np.diag(lower) * solve_triangular(lower, answers - self.mean[items], lower=True)
        return bernoulli(answers, answers - off)


def bernoulli(answers: FloatArray, chances: FloatArray) -> FloatArray:
    """Return log scores of answers in [0, 1] by chances cut to [.02, .98].

    >>> bernoulli(np.array([1.0, 0.0]), np.array([0.5, 2.0])).round(2).tolist()
    [-0.69, -3.91]
    """
    sure = np.clip(chances, SURE, 1 - SURE)
    return np.asarray(answers * np.log(sure) + (1 - answers) * np.log1p(-sure))


def leading_directions(rows: FloatArray, n: int) -> FloatArray:
    """Return the n leading left singular vectors of centred rows, shape (rows, at most n).

    With more rows than columns, from the columns' products: fewer, and the same directions.
    """
    n = min(n, len(rows) - 1)
    if len(rows) > rows.shape[1] >= n:
        from scipy.linalg import eigh

        last = rows.shape[1] - 1
        squares, vectors = eigh(rows.T @ rows, subset_by_index=(last + 1 - n, last))
        if squares[0] > SMALLEST * squares[-1]:  # else rounding would decide
            return np.asarray(rows @ vectors / np.sqrt(squares))
    _, vectors = np.linalg.eigh(rows @ rows.T)
    return np.asarray(vectors[:, -n:])


def _spread(chances: FloatArray, dispersion: float, rows: slice) -> FloatArray:
    return dispersion * chances[rows] * (1 - chances[rows])


@dataclass(frozen=True, eq=False)
class Inside:
    """The local Gaussian process of the sources.

    Attributes
    ----------
    bandwidth, dispersion : float
    scores : ndarray, shape (sources, candidates)
    abilities : ndarray, shape (sources,)
    curves : ItemCurves
        Curves of the candidates.
    wanted : ndarray, shape (sources, wanted)
        The sources' wanted scores.
    directions : ndarray, shape (sources, directions)
        Leading directions of the curves' covariance.
    along, along_wanted : ndarrays, shapes (directions, candidates) and (directions, wanted)
        The curves along these directions.
    wanted_noise, nugget : ndarrays, shapes (wanted,) and (candidates,)
    weights : ndarray, shape (wanted, candidates)
    """

    bandwidth: float
    dispersion: float
    scores: FloatArray
    abilities: FloatArray
    curves: ItemCurves
    wanted: FloatArray
    directions: FloatArray
    along: FloatArray
    along_wanted: FloatArray
    wanted_noise: FloatArray
    nugget: FloatArray
    weights: FloatArray

    @classmethod
    def fit(
        cls,
        scores: Matrix,
        weights: FloatArray,
        candidates: IntArray,
        abilities: Abilities,
        dispersion: float,
        per_group: float = 1.0,
    ) -> "Inside":
        """Fit the sources.

        Parameters
        ----------
        scores : Matrix, shape (sources, items)
            In [0, 1], without gaps.
        weights : ndarray, shape (wanted, items)
            Weights of the wanted scores, each row of sum 1.
        candidates : ndarray of int, shape (candidates,)
            Items that may be chosen.
        abilities : Abilities
            Abilities from all items.
        per_group : float
            How many sources there are for each independent one. The more, the wider the
            neighborhood: the members of one family are a poor guide to other families.
        dispersion : float
            Variance of the scores, as a share of that of right and wrong answers.
        """
        curves, sources = abilities.curves, abilities.sources
        chances = abilities.at_sources(candidates)
        pool = np.asfortranarray(chances - chances.mean(axis=0))  # as `scores[:, items]` is
        directions = leading_directions(pool, DIRECTIONS)
        of_wanted, variance = [], []
        for items in column_blocks(scores):
            chances = abilities.at_sources(items)
            spread = cell_by_cell(chances.shape, partial(_spread, chances, dispersion))
            variance.append(spread.mean(axis=0))
            np.subtract(chances, chances.mean(axis=0), out=spread)
            of_wanted.append(spread @ weights[:, items].T)
        # An item that all sources get right still has noise: the next model may not.
        share = (by_columns(scores, lambda part: part.sum(axis=0)) + 0.5) / (len(scores) + 1)
        nugget = NUGGET * dispersion * share * (1 - share)
        return cls(
            bandwidth=BANDWIDTH * per_group**0.5,
            dispersion=dispersion,
            scores=scores[:, candidates],
            abilities=sources,
            curves=curves.take(candidates),
            wanted=by_rows(scores, lambda part: part @ weights.T),
            directions=directions,
            along=directions.T @ pool,
            along_wanted=directions.T @ total(of_wanted),
            wanted_noise=weights**2 @ (SHRINKAGE * beside(variance) + nugget),
            nugget=nugget[candidates],
            weights=weights[:, candidates],
        )

    @cached_property
    def all_sources(self) -> Gaussian:
        """The Gaussian of all sources, equally weighted."""
        return self._weighed(np.full(len(self.scores), 1 / len(self.scores)))

    def answers(self, items: IntArray) -> FloatArray:
        """Return the sources' answers to candidates, shape (sources, n)."""
        return self.scores[:, items]

    def near(self, items: IntArray, answers: FloatArray) -> Gaussian:
        """Return the Gaussian of the sources that answer as the target does."""
        theirs = self.scores[:, items]
        apart = np.abs(theirs - answers).mean(axis=1)
        share = theirs.mean(axis=0)
        # The disagreement of two sources drawn at random: near and far mean the same on easy items
        # as on hard ones.
        expected = (2 * share * (1 - share)).mean() * len(theirs) / max(len(theirs) - 1, 1)
        weights = np.exp(-(apart - apart.min()) / (self.bandwidth * (expected + 1e-9)))
        return self._weighed(weights / weights.sum())

    @cached_property
    def _variance(self) -> FloatArray:
        """The variance of an answer at each source's ability, shape (sources, candidates)."""
        chances = self.curves.at(self.abilities)
        variance = np.empty(chances.shape, order="F")
        for rows in blocks(len(chances), chances.shape[1], CACHED):
            variance[rows] = _spread(chances, self.dispersion, rows)
        return variance

    @cached_property
    def _rows(self) -> NDArray[np.float32]:
        """The scores, each source's in one piece of memory: rows of them are taken often."""
        return np.ascontiguousarray(self.scores, dtype=np.float32)

    def _weighed(self, weights: FloatArray) -> Gaussian:
        root = np.sqrt(weights)
        about = root[:, None] * (self.directions - weights @ self.directions)
        values, vectors = np.linalg.eigh(about.T @ about)
        turn = np.sqrt(SHRINKAGE * np.maximum(values, 0))[:, None] * vectors.T
        # On their principal axes: where sources weigh the same, all values are equal, so that
        # rounding decides on the vectors. Factors in single precision would hang on it.
        curves = turn @ self.along
        turn = np.linalg.eigh(curves @ curves.T)[1].T @ turn
        order = ties.argsort(-weights)
        # Sources that weigh next to nothing only cost time.
        used = order[: max(2, int((np.cumsum(weights[order]) < KEPT_WEIGHT).sum()) + 1)]
        scale = (np.sqrt(1 - SHRINKAGE) * root[used])[:, None]
        # Products in double precision, rounded afterwards: those in single precision would differ
        # from one processor to the next by more than the gains of two items.
        mean = (weights @ self.scores).astype(np.float32)
        wanted = weights @ self.wanted
        single, along = scale.astype(np.float32), turn @ self.along

        def factors(items: IntArray | slice) -> NDArray[np.float32]:
            rows, center = self._rows, mean[items]
            if not isinstance(items, slice):  # a few: they are columns of the scores
                rows = np.ascontiguousarray(self.scores[:, items], dtype=np.float32)
            made = np.empty((len(used) + len(turn), len(center)), dtype=np.float32)
            for at in blocks(len(used), len(center), CACHED):
                near = made[: len(used)][at]
                np.take(rows, used[at], axis=0, out=near, mode="clip")  # without a copy
                near -= center
                near *= single[at]
            made[len(used) :] = along[:, items]
            return made

        return Gaussian(
            mean.astype(np.float64),
            factors,
            SHRINKAGE * (weights @ self._variance) + self.nugget,
            wanted,
            np.vstack([scale * (self.wanted[used] - wanted), turn @ self.along_wanted]),
            self.wanted_noise,
            self.weights,
        )
