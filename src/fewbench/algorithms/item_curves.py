"""Item characteristic curves at known abilities: one small logistic regression per item.

P(right on item j | ability g) = 1 / (1 + exp(-(b_j + a_j g))). Shrinkage of intercepts to their
mean, and of slopes to their information-weighted mean, keeps items that all or no models solve
finite. Curves are averaged over the remaining uncertainty of b and a, so they flatten outside the
fitted abilities.
"""

from dataclasses import dataclass

import numpy as np

from fewbench._blocks import CACHED, Matrix, beside, blocks, by_columns, cell_by_cell, whole
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms import ties

STEPS = 12
MOST_GROUPS = 101
"""More models than this are joined by ability, as binomial counts."""
FIRST_VARIANCE = 100.0
"""For the intercepts' prior, before their own variance is known."""
SLOPE_PRECISION = 3.0
INTERCEPT_SHRINKAGE = 0.3
LEAST = 1e-3
"""Chances stay this far from 0 and 1, so that one unexpected answer does not decide all."""


@dataclass(frozen=True, eq=False)
class ItemCurves:
    """Curves of items: `intercept` and `slope`, shape (items,), with their posterior covariance.

    The rows of `covariance`, shape (3, items), are the variance of the intercept, the covariance
    and the variance of the slope.
    """

    intercept: FloatArray
    slope: FloatArray
    covariance: FloatArray

    def at(self, abilities: FloatArray) -> FloatArray:
        """Return the fitted curves themselves at abilities, shape (abilities, items)."""
        return _curves(self.intercept, np.asarray(abilities)[:, None], self.slope)

    def take(self, items: IntArray | slice) -> "ItemCurves":
        """Return the curves of some items."""
        return ItemCurves(self.intercept[items], self.slope[items], self.covariance[:, items])

    def expected(self, abilities: FloatArray) -> FloatArray:
        """Return the chance of a right answer at abilities, shape (abilities, items).

        Averages over the posterior by E σ(x) ≈ σ(mean / sqrt(1 + π/8 variance)).
        """
        at = np.asarray(abilities, dtype=np.float64)[:, None]
        of_b, both, of_a = self.covariance
        variance = of_b + 2 * at * both + at**2 * of_a
        logits = (self.intercept + at * self.slope) / np.sqrt(1 + np.pi / 8 * variance)
        return np.asarray(np.clip(logistic(logits), LEAST, 1 - LEAST))


def score_logits(full: FloatArray, n_items: int) -> FloatArray:
    """Return logits of full scores in [0, 1], half an answer from 0 and 1 at least.

    >>> score_logits(np.array([0.0, 0.5]), 10).round(2).tolist()
    [-3.04, 0.0]
    """
    return np.asarray(np.log((full * n_items + 0.5) / ((1 - full) * n_items + 0.5)))


def fit_curves(answers: Matrix, abilities: FloatArray) -> ItemCurves:
    """Fit each item's curve by penalized maximum likelihood (Newton steps, all items at once).

    `answers`, shape (models, items), are in [0, 1]; fractions count as shares of right answers.
    `abilities` has shape (models,).

    >>> abilities = np.linspace(-2, 2, 40)
    >>> right = (abilities[:, None] > np.array([-1.0, 0.0, 1.0])).astype(float)
    >>> fit_curves(right, abilities).expected(np.array([0.0])).round(1).tolist()
    [[0.9, 0.5, 0.1]]
    """
    sums = by_columns(answers, lambda part: part.sum(axis=0))
    share = (sums + 0.5) / (len(answers) + 1)
    answers, abilities, counts = _grouped(answers, abilities)
    b, a = np.log(share / (1 - share)), np.ones(answers.shape[1])
    centre, variance, slope = 0.0, FIRST_VARIANCE, 1.0
    for last in (False, True):
        for _ in range(STEPS):
            chance = _curves(b, abilities[:, None], a)
            h_bb, h_ab, h_aa = _information(chance, abilities, counts, variance)
            residual = answers - chance
            residual *= counts[:, None]
            g_b = residual.sum(axis=0) - (b - centre) / variance
            g_a = abilities @ residual - SLOPE_PRECISION * (a - slope)
            determinant = h_bb * h_aa - h_ab**2
            step_b = np.clip((h_aa * g_b - h_ab * g_a) / determinant, -2, 2)
            step_a = np.clip((h_bb * g_a - h_ab * g_b) / determinant, -2, 2)
            b, a = b + step_b, a + step_a
            if max(np.abs(step_b).max(), np.abs(step_a).max()) < 1e-4:
                break
        if last:
            break
        # Empirical Bayes: the priors of the second pass are what the first one found.
        weights = share * (1 - share) / (share * (1 - share)).sum()
        centre, slope = float(weights @ b), float(weights @ a)
        variance = max(float(b.var()), 0.25) / INTERCEPT_SHRINKAGE
    chance = _curves(b, abilities[:, None], a)
    h_bb, h_ab, h_aa = _information(chance, abilities, counts, variance)
    determinant = h_bb * h_aa - h_ab**2
    return ItemCurves(b, a, np.stack([h_aa, -h_ab, h_bb]) / determinant)


def _grouped(answers: Matrix, abilities: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Join models of nearly the same ability: mean answers, mean abilities, how many."""
    if len(abilities) <= MOST_GROUPS:
        return whole(answers), abilities, np.ones(len(abilities))
    order = ties.argsort(abilities, scale=1.0)
    # Models of one ability stay together, and counted from either end the groups are the same: a
    # table with right and wrong exchanged gets the same curves, mirrored.
    levels = ties.levels(abilities, scale=1.0)[order]
    firsts, lasts = np.searchsorted(levels, levels), np.searchsorted(levels, levels, "right")
    middle, n = (firsts + lasts) / 2, len(abilities)
    below = np.floor(np.minimum(middle, n - middle) * MOST_GROUPS / n - 1e-9)
    group_of = np.where(middle <= n / 2, below, MOST_GROUPS - 1 - below)
    begins = np.flatnonzero(np.diff(group_of, prepend=-1))
    counts = np.diff(np.append(begins, n)).astype(np.float64)
    some = blocks(answers.shape[1], n, CACHED)  # so that what is sorted is in the cache
    sums = beside([np.add.reduceat(answers[:, at][order], begins, axis=0) for at in some])
    means = np.add.reduceat(abilities[order], begins) / counts
    return sums / counts[:, None], means, counts


def _information(
    chance: FloatArray, abilities: FloatArray, counts: FloatArray, variance: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    weights = 1 - chance
    weights *= chance
    np.maximum(weights, 1e-4, out=weights)
    weights *= counts[:, None]
    return (
        weights.sum(axis=0) + 1 / variance,
        abilities @ weights,
        abilities**2 @ weights + SLOPE_PRECISION,
    )


def logistic(x: FloatArray | float) -> FloatArray:
    """Return 1 / (1 + exp(-x)), without overflow."""
    return _logistic(np.array(x, dtype=np.float64))


def _logistic(x: FloatArray) -> FloatArray:
    """Turn x into its logistic, in place: tables are large."""
    np.clip(x, -30, 30, out=x)
    np.exp(np.negative(x, out=x), out=x)
    x += 1
    np.divide(1, x, out=x)
    return x


def _curves(intercept: FloatArray, abilities: FloatArray, slope: FloatArray) -> FloatArray:
    shape = len(abilities), len(slope)
    return cell_by_cell(shape, lambda rows: _logistic(abilities[rows] * slope + intercept))


def logit(p: FloatArray | float, edge: float = 0.0) -> FloatArray:
    """Return log(p / (1 - p)); probabilities are first kept `edge` away from 0 and 1.

    >>> logit(np.array([0.0, 0.5]), edge=0.1).round(2).tolist()
    [-2.2, 0.0]
    """
    kept = np.clip(p, edge, 1 - edge)
    return np.asarray(np.log(kept) - np.log1p(-kept))
