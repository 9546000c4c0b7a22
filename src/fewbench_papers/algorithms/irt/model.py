"""Item response models: how likely a model of some ability is right on an item.

The compensatory multidimensional 2PL model (Reckase 2009, "Multidimensional Item Response Theory"),

    P(right) = 1 / (1 + exp(-(a · ability + b))),

with discrimination a and intercept b (the higher, the easier) of each item.
"""

from dataclasses import dataclass

import numpy as np

from fewbench.support import BoolArray, FloatArray, IntArray

MOST_STEPS = 100
MOST_HALVINGS = 30
CLOSE = 1e-9
SMALL = 1e-3  # tanh(x / 2) / 2x is 1/4 there, to single precision
CUTS = np.linspace(0.01, 0.99, 99)


@dataclass(frozen=True, eq=False)
class IrtAbilities:
    """Abilities with their uncertainty.

    `means`, shape (models, dimensions), are on a scale where the sources have mean 0 and variance
    1; `covariances` have shape (models, dimensions, dimensions).
    """

    means: FloatArray
    covariances: FloatArray

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors, shape (models, dimensions)."""
        return np.asarray(np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2)))


@dataclass(frozen=True, eq=False)
class ItemResponse:
    """A fitted item response model.

    `discrimination` has shape (items, dimensions), `intercept` (items,). `sources` are the
    abilities of the fitted models.
    """

    discrimination: FloatArray
    intercept: FloatArray
    sources: IrtAbilities

    @property
    def dimensions(self) -> int:
        """Number of abilities."""
        return int(self.discrimination.shape[1])

    def expected(self, abilities: FloatArray, items: IntArray | None = None) -> FloatArray:
        """Return chances to be right, (models, items), at abilities, (models, dimensions).

        `items` are positions; by default all items.
        """
        at = slice(None) if items is None else items
        return _logistic(abilities @ self.discrimination[at].T + self.intercept[at])

    def information(self, abilities: FloatArray) -> FloatArray:
        """Return each item's Fisher information on the ability, shape (models, items).

        With several abilities it is the trace. `abilities` are those of `expected`.
        """
        size = (self.discrimination**2).sum(axis=1)
        return np.asarray(self._weights(abilities, slice(None)) * size)

    def abilities(self, items: IntArray, answers: FloatArray, spread: float = 1.0) -> IrtAbilities:
        """Estimate the most likely abilities from answers, with a normal prior.

        - `items`, shape (n,): Positions of the answered items; n may be 0.
        - `answers`, shape (models, n): Scores in [0, 1], NaN where not run; fractional scores count
          as that share of a right answer.
        - `spread`: Standard deviation of the prior; the sources' is 1.

        Returns IrtAbilities. Covariances are the inverse information, prior included.
        """
        a = self.discrimination[items]
        run = ~np.isnan(answers)
        right = np.where(run, answers, 0.0)
        theta = np.zeros((len(answers), self.dimensions))
        squares = (a[:, :, None] * a[:, None, :]).reshape(len(a), self.dimensions**2)
        prior = np.eye(self.dimensions) / spread**2
        moving = np.arange(len(answers))  # each stops by itself: none depends on the others
        for _ in range(MOST_STEPS):
            posterior = _Posterior(self, items, right[moving], run[moving], spread)
            fisher = (run[moving] * self._weights(theta[moving], items)) @ squares
            precision = prior + fisher.reshape(-1, *prior.shape)
            slope = posterior.slope(theta[moving])
            step = np.asarray(np.linalg.solve(precision, slope[:, :, None])[:, :, 0], np.float64)
            new = posterior.uphill(theta[moving], step)
            far = np.abs(new - theta[moving]).max(axis=1) > CLOSE
            theta[moving] = new
            moving = moving[far]
            if not len(moving):
                break
        fisher = (run * self._weights(theta, items)) @ squares
        precision = prior + fisher.reshape(-1, *prior.shape)
        return IrtAbilities(theta, np.asarray(np.linalg.inv(precision), dtype=np.float64))

    def _weights(self, abilities: FloatArray, at: IntArray | slice) -> FloatArray:
        """Return the information on the logit: the variance of the answer."""
        right = _logistic(abilities @ self.discrimination[at].T + self.intercept[at])
        return np.asarray(right * (1.0 - right))


@dataclass(frozen=True, eq=False)
class _Posterior:
    """Log posterior of abilities given answers; `right` and `run` have shape (models, n)."""

    model: ItemResponse
    items: IntArray
    right: FloatArray
    run: BoolArray
    spread: float

    def slope(self, theta: FloatArray) -> FloatArray:
        """Return the slope of the log posterior, shape (models, dimensions)."""
        a = self.model.discrimination[self.items]
        by_logit = self.run * (self.right - self.model.expected(theta, self.items))
        return np.asarray(by_logit @ a - theta / self.spread**2)

    def height(self, theta: FloatArray) -> FloatArray:
        """Return the log posterior up to a constant, shape (models,)."""
        chance = np.clip(self.model.expected(theta, self.items), 1e-300, 1.0 - 1e-16)
        by_item = self.right * np.log(chance) + (self.run - self.right) * np.log1p(-chance)
        return np.asarray(by_item.sum(axis=1) - 0.5 * (theta**2).sum(axis=1) / self.spread**2)

    def uphill(self, theta: FloatArray, step: FloatArray) -> FloatArray:
        """Take a step, halved while it leads down."""
        before = self.height(theta)
        # At the maximum the height differs by rounding alone, which must not halve the step thirty
        # times.
        before = before - 1e-12 * np.abs(before)
        size = np.ones((len(theta), 1))
        for _ in range(MOST_HALVINGS):
            down = self.height(theta + size * step) < before
            if not down.any():
                break
            size[down] /= 2.0
        return np.asarray(theta + size * step)


def curvature(logits: FloatArray) -> FloatArray:
    """Curvature of the parabola that bounds the logistic likelihood and touches it at `logits`.

    tanh(x / 2) / 2x (Jaakkola & Jordan 2000, "Bayesian parameter estimation via variational
    methods"): maximizing the parabola is a linear regression and never lowers the likelihood.
    """
    half = 0.5 * np.maximum(np.abs(logits), SMALL)
    bound = np.tanh(half)
    bound /= 4.0 * half
    return bound


def _logistic(x: FloatArray) -> FloatArray:
    from scipy.special import expit

    return np.asarray(expit(x))


def best_cuts(values: FloatArray, group_of: IntArray) -> FloatArray:
    """Return the cut of each group of items above which a score counts as right, shape (groups,).

    The cut with the least mean absolute difference between the share of a model's scores above the
    cut and their mean, as tinyBenchmarks chooses it (Polo et al. 2024, arXiv 2402.14992, section
    3.3). If all scores are 0 or 1, the cut is 0.5. `values`, shape (models, items), are in [0, 1],
    NaN where not run; groups 0, 1, … in `group_of`, shape (items,), are not empty.

    >>> best_cuts(np.array([[0.2, 0.3, 0.9, 0.8]]), np.zeros(4, dtype=int)).round(2).tolist()
    [0.3]
    """
    cuts = np.full(int(group_of.max()) + 1, 0.5)
    for group in range(len(cuts)):
        part = values[:, group_of == group]
        run = ~np.isnan(part)
        if ((part == 0) | (part == 1) | ~run).all():
            continue
        run_rows = run.any(axis=1)
        part, run = part[run_rows], run[run_rows]
        count = run.sum(axis=1)
        mean = np.where(run, part, 0.0).sum(axis=1) / count
        off = [
            float(np.abs((part > cut).sum(axis=1) / count - mean).mean()) for cut in CUTS
        ]  # NaN is not above
        cuts[group] = CUTS[int(np.argmin(off))]
    return cuts


def binary(values: FloatArray, cuts: FloatArray) -> FloatArray:
    """Return 1 where a score, (models, items), is above its item's cut, else 0 or NaN."""
    return np.where(np.isnan(values), np.nan, (values > cuts).astype(np.float64))
