"""Beyond the sources: item characteristic curves with correlated residuals.

Given ability g, from far below the weakest source to far above the strongest one, the answers are

    y = P(g) + sqrt(V) e + V (1, d) beta,    V = P(1 - P),  beta ~ N(0, I)

with P the curves averaged over their own uncertainty and d the standardised intercepts. The
covariance of the residuals e is a fifth of the sources' (its leading directions);
the rest is independent. The prior of g is flat over the grid.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fewbench._blocks import Matrix, beside, by_rows, cell_by_cell, column_blocks
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.abilities import EDGES, Abilities
from fewbench.algorithms.item_curves import LEAST, ItemCurves
from fewbench.algorithms.kriging.inside import Gaussian, bernoulli, leading_directions

SAMPLE_SHARE = 0.2
DIRECTIONS, DESIGN_DIRECTIONS = 16, 48
FLOOR = 0.03
"""Residuals are standardised by chances that stay so far from 0 and 1."""
LEAST_RESIDUAL = 0.3
DESIGNS = 5
TOGETHER = 16
"""Answers that are processed at a time: numpy's calls cost more than the arithmetic of one."""


@dataclass(frozen=True, eq=False)
class Filter:
    """What some answers say at every node of the grid, updated answer by answer.

    Attributes
    ----------
    factors : ndarray, shape (nodes, k)
        Posterior mean of the factors.
    covariance : ndarray, shape (nodes, k, k)
    likelihood : ndarray, shape (nodes,)
        Gaussian log likelihood.
    score : ndarray, shape (nodes,)
        Bernoulli log score of the one-step-ahead means.
    """

    factors: FloatArray
    covariance: FloatArray
    likelihood: FloatArray
    score: FloatArray


@dataclass(frozen=True, eq=False)
class Beyond:
    """Curves over a grid of abilities.

    Attributes
    ----------
    edges, edge_scores : ndarray, shape (2,)
        The sources' 5% and 95% quantiles of ability and of the first wanted score.
    grid : ndarray, shape (nodes,)
    chances : ndarray, shape (nodes, candidates)
        Chance of a right answer.
    shared, own : ndarrays, shapes (k, candidates) and (candidates,)
        Factors of the residuals, and the variance that they leave.
    basis : ndarray, shape (2, candidates)
        Ones and standardized difficulties.
    wanted_mean, wanted_noise : ndarray, shape (nodes, wanted)
    wanted_factors : ndarray, shape (nodes, wanted, k + 2)
    below, above : tuple of Gaussian
        By which items are chosen: at some abilities from the sources' median to either end.
    """

    edges: FloatArray
    edge_scores: FloatArray
    grid: FloatArray
    chances: FloatArray
    shared: FloatArray
    own: FloatArray
    basis: FloatArray
    wanted_mean: FloatArray
    wanted_noise: FloatArray
    wanted_factors: FloatArray
    below: tuple[Gaussian, ...]
    above: tuple[Gaussian, ...]

    @classmethod
    def fit(
        cls, scores: Matrix, weights: FloatArray, candidates: IntArray, abilities: Abilities
    ) -> "Beyond":
        """Fit the sources. Parameters as for `Inside.fit`."""
        curves, sources = abilities.curves, abilities.sources
        full = by_rows(scores, lambda part: part @ weights[0])
        grid = abilities.grid

        def residuals(items: slice | IntArray) -> FloatArray:
            chances = abilities.at_sources(items)

            def of_rows(rows: slice) -> FloatArray:
                cut = np.clip(chances[rows], LEAST, 1 - LEAST)
                rest = scores[rows, items] - cut
                rest /= _deviation(cut)
                return rest

            return cell_by_cell(chances.shape, of_rows)

        every = column_blocks(scores)
        whole = residuals(every[0]) if len(every) == 1 else None
        pool = residuals(candidates) if whole is None else whole[:, candidates]
        directions = leading_directions(np.asfortranarray(pool), DESIGN_DIRECTIONS)
        turned = (np.sqrt(SAMPLE_SHARE / len(scores)) * directions).T
        along, squares = [], []
        for items in every:
            rest = residuals(items) if whole is None else whole
            along.append(turned @ rest)
            squares.append(np.square(rest, out=rest).mean(axis=0))  # used for the last time
        leading, square = beside(along), beside(squares)
        # Eigenvectors come in ascending order: the last are the leading ones.
        shared = leading[-DIRECTIONS:]
        # Far beyond the sources their correlations hold only in part: a fifth is kept, and the rest
        # is independent noise, so that the variance of an answer stays the same.
        alone = (1 - SAMPLE_SHARE) * np.maximum(square, LEAST_RESIDUAL * square.mean())
        specific = alone + np.maximum(SAMPLE_SHARE * square - (shared**2).sum(axis=0), 0)
        difficulty = (curves.intercept - curves.intercept.mean()) / (curves.intercept.std() + 1e-9)
        basis = np.vstack([np.ones(len(difficulty)), difficulty])
        median = float(np.quantile(sources, 0.5))
        chances = abilities.chances
        spread, deviation = chances * (1 - chances), _deviation(chances)

        def designs(end: float) -> tuple[Gaussian, ...]:
            at = np.linspace(median, end, DESIGNS)
            # With more directions than the rest.
            how = leading, basis, alone, weights, candidates
            return tuple(_linear(curves, float(g), *how) for g in at)

        return cls(
            edges=np.quantile(sources, EDGES),
            edge_scores=np.quantile(full, EDGES),
            grid=grid,
            chances=chances[:, candidates],
            shared=shared[:, candidates],
            own=specific[candidates],
            basis=basis[:, candidates],
            wanted_mean=chances @ weights.T,
            wanted_noise=(deviation**2 * specific) @ (weights**2).T,
            wanted_factors=np.stack(
                [_weighed(w, deviation, shared, spread, basis) for w in weights], axis=1
            ),
            below=designs(grid[0] + 0.5),
            above=designs(grid[-1] - 0.5),
        )

    @cached_property
    def deviation(self) -> FloatArray:
        """Standard deviation of an answer, shape (nodes, candidates)."""
        return _deviation(self.chances)

    def start(self) -> Filter:
        """Return what is known before any answer."""
        nodes, k = len(self.grid), len(self.shared) + 2
        return Filter(
            np.zeros((nodes, k)),
            np.broadcast_to(np.eye(k), (nodes, k, k)).copy(),
            np.zeros(nodes),
            np.zeros(nodes),
        )

    def hear(self, known: Filter, items: IntArray, answers: FloatArray) -> Filter:
        """Update by more answers (a Kalman filter over the factors), some at a time."""
        mean, covariance = known.factors.copy(), known.covariance.copy()
        likelihood, score = known.likelihood.copy(), known.score.copy()
        loadings, noise = self._loadings(items)
        for at in range(0, len(items), TOGETHER):
            some = slice(at, at + TOGETHER)
            load, part = loadings[:, some], answers[some]
            along = np.matmul(load, covariance)
            joint = np.matmul(along, load.swapaxes(1, 2))
            places = np.arange(len(part))
            joint[:, places, places] += noise[:, some]
            lower = np.linalg.cholesky(joint)
            off = part - self.chances[:, items[some]] - np.matmul(load, mean[:, :, None])[:, :, 0]
            # In units of the Cholesky factor, each answer's error is given the answers before it.
            solved = np.linalg.solve(lower, np.concatenate([along, off[:, :, None]], axis=2))
            gain, off = solved[:, :, :-1], solved[:, :, -1]
            deviation = lower[:, places, places]
            likelihood -= (0.5 * off**2 + np.log(deviation)).sum(axis=1)
            score += bernoulli(part, part - deviation * off).sum(axis=1)
            mean += np.matmul(off[:, None], gain)[:, 0]
            covariance -= np.matmul(gain.swapaxes(1, 2), gain)
        return Filter(mean, covariance, likelihood, score)

    def predict(
        self, known: Filter, items: IntArray, answers: FloatArray, own: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return means and variances of the wanted scores at every node, (nodes, wanted).

        `own` are the items' weights in the wanted scores, shape (wanted, n).
        """
        loadings, noise = self._loadings(items)
        left = self.wanted_factors - np.matmul(own, loadings)
        means = (
            self.wanted_mean
            - self.chances[:, items] @ own.T
            + own @ answers
            + np.einsum("gwk,gk->gw", left, known.factors)
        )
        variances = np.einsum("gwk,gwk->gw", np.matmul(left, known.covariance), left)
        # Items that were run are known: their own noise leaves the wanted score.
        variances += np.maximum(self.wanted_noise - noise @ (own**2).T, 0)
        return means, variances

    def _loadings(self, items: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return factors of items at all nodes, (nodes, n, k), and their noise, (nodes, n)."""
        chances, deviation = self.chances[:, items], self.deviation[:, items]
        shared = deviation[:, :, None] * self.shared[:, items].T
        effects = (chances * (1 - chances))[:, :, None] * self.basis[:, items].T
        noise = deviation**2 * (self.own[items] + 1e-4)
        return np.concatenate([shared, effects], axis=2), noise


def _weighed(
    weights: FloatArray,
    deviation: FloatArray,
    shared: FloatArray,
    spread: FloatArray,
    basis: FloatArray,
) -> FloatArray:
    """Return the factors of a weighted mean of all items at every node, shape (nodes, k)."""
    at = np.flatnonzero(weights)
    if len(at) < len(weights):  # a task: its own items are far fewer
        weights, deviation, spread = weights[at], deviation[:, at], spread[:, at]
        shared, basis = shared[:, at], basis[:, at]
    return np.concatenate([(deviation * weights) @ shared.T, (spread * weights) @ basis.T], axis=1)


def _linear(
    curves: ItemCurves,
    ability: float,
    shared: FloatArray,
    basis: FloatArray,
    specific: FloatArray,
    weights: FloatArray,
    candidates: IntArray,
) -> Gaussian:
    """Return the Gaussian around an ability, linear in it."""
    chances = curves.expected(np.array([ability]))[0]
    spread, deviation = chances * (1 - chances), _deviation(chances)
    factors = np.vstack([deviation * shared, spread * basis, spread * curves.slope])
    noise = deviation**2 * specific
    return Gaussian(
        chances[candidates],
        factors[:, candidates].astype(np.float32),
        noise[candidates],
        weights @ chances,
        factors @ weights.T,
        weights**2 @ noise,
        weights[:, candidates],
    )


def _deviation(chances: FloatArray) -> FloatArray:
    cut = np.clip(chances, FLOOR, 1 - FLOOR)
    rest = 1 - cut
    rest *= cut
    return np.sqrt(rest, out=rest)
