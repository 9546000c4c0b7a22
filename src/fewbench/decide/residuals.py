"""Errors of models and of differences, in units of their spread, and their quantiles.

Two models of one part and of different groups make a pair; where the models of a session ran the
same items, only models of one session do. A difference from a known score rests on single models.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.evaluation.opening import FEWEST
from fewbench.evaluation.past_errors import equal_weights
from fewbench.scores import Scores

GROWTH = 2
PATIENCE = 0.25
"""Of several looks, the interval of an earlier one is wider, by the answers' ratio to this power
(Wang & Tsiatis 1987, Biometrics 43(1)): it leaves more of the level to the last look."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Errors of a method on held-out sources.

    Attributes
    ----------
    errors : ndarray, shape (judged, looks, 1 + tasks)
        True score minus estimate, in [-1, 1]; first of the full score, then of every task.
    spreads : ndarray, same shape
        Units of the errors.
    estimates : ndarray, shape (judged,)
        Estimated full scores after the last look.
    models, groups, parts : ndarray of int, shape (judged,)
        Positions of the models, their groups, and the part that each was held out with.
    sessions : ndarray of int, shape (judged,)
        Models with one number ran the same items; -1 where each ran its own.
    distances : ndarray, shape (judged,)
        How far beyond weaker sources a model is (`evaluation.beyond`); NaN if it was learned from
        models like it.
    """

    errors: FloatArray
    spreads: FloatArray
    estimates: FloatArray
    models: IntArray
    groups: IntArray
    parts: IntArray
    sessions: IntArray
    distances: FloatArray

    def only(self, beyond: bool) -> "HeldOut":
        """Return the models that were learned from weaker ones only, or the others."""
        kept = np.isfinite(self.distances) == beyond
        return HeldOut(**{field.name: getattr(self, field.name)[kept] for field in fields(self)})

    def eased(self) -> "HeldOut":
        """Return the errors with units that are larger at earlier looks."""
        return replace(self, spreads=self.spreads * slack(self.spreads.shape[1])[:, None])

    def last(self) -> "HeldOut":
        """Return the errors after the last look alone."""
        return replace(self, errors=self.errors[:, -1:], spreads=self.spreads[:, -1:])


@dataclass(frozen=True, eq=False)
class Residuals:
    """Errors in units of their spread: the largest over the looks, full score first.

    Attributes
    ----------
    sizes : ndarray, shape (pairs or models, 1 + tasks)
    weights : ndarray, shape (pairs or models,)
        Sum 1; every group counts the same.
    groups, models : int
        Number of groups and of models. So many units count for pairs, too: for normal errors, the
        90 % quantile over all pairs of G groups varies as that of 1.6 G independent pairs would.
    """

    sizes: FloatArray
    weights: FloatArray
    groups: int
    models: int

    def quantile(self, level: float) -> tuple[float, int, str | None]:
        """Return the conformal quantile of the full score, its units, and a warning or None.

        As for single estimates: with too few groups for the level, models count instead, with a
        warning; with too few models the quantile is infinite.
        """
        needed = math.ceil(level / (1 - level) - 1e-9)
        units, warning = self.groups, None
        if units < needed <= self.models:
            units = self.models
            warning = (
                f"there are only {self.groups} independent groups of source models to measure the "
                "error on. The interval treats source models as unrelated, so it may be too narrow"
            )
        if units < needed:
            return math.inf, units, (
                f"an interval at {level:.0%} needs {needed} independent source models (or pairs of "
                f"them) with all items answered; there are {units}. The interval shows only what "
                "the answers leave possible"
            )  # fmt: skip
        order = np.argsort(self.sizes[:, 0], kind="stable")
        reached = np.cumsum(self.weights[order]) * units / (units + 1) >= level - 1e-12
        found = float(self.sizes[order[reached.argmax()], 0]) if reached.any() else math.inf
        return found, units, warning

    def scales(self) -> FloatArray:
        """Return the root mean squares, shape (1 + tasks,)."""
        return np.asarray(np.sqrt(self.weights @ self.sizes**2))


def looks(budget: int) -> tuple[int, ...]:
    """Return the numbers of answers at which a sequential decision is calibrated.

    >>> looks(100)
    (10, 20, 40, 80, 100)
    """
    found = [min(FEWEST, budget)]
    while found[-1] < budget:
        found.append(min(budget, GROWTH * found[-1]))
    return tuple(found)


def slack(n_looks: int) -> FloatArray:
    """Return how much wider the interval is at each look than at the last one.

    >>> slack(3).round(2).tolist()
    [1.41, 1.19, 1.0]
    """
    return np.asarray(float(GROWTH) ** (PATIENCE * np.arange(n_looks - 1, -1, -1)))


def of_models(held: HeldOut) -> Residuals:
    """Return residuals of single models, for a difference from a known score."""
    unit = held.spreads
    sizes = np.divide(np.abs(held.errors), unit, out=np.zeros_like(unit), where=unit > 0)
    counts = np.bincount(held.groups, minlength=1)
    weights = 1.0 / counts[held.groups]
    n_groups = len(np.unique(held.groups))
    return Residuals(sizes.max(axis=1), weights / max(weights.sum(), 1e-300), n_groups, len(sizes))


def of_pairs(one: HeldOut, other: HeldOut, difference: float) -> Residuals:
    """Return residuals of differences over pairs of different groups held out together.

    Models that are close in score err alike. So pairs count if their estimated difference is, as
    the two targets' is, below the median over all pairs, or above (Mondrian conformal prediction).

    Parameters
    ----------
    one, other : HeldOut
        Errors of the two targets' methods; they may be the same.
    difference : float
        Estimated difference of the two targets.
    """
    first = second = np.arange(len(one.models))
    if one is not other:
        row = {model: at for at, model in reversed(list(enumerate(other.models.tolist())))}
        found = [(at, row[model]) for at, model in enumerate(one.models.tolist()) if model in row]
        first = np.array([at for at, _ in found], dtype=np.intp)
        second = np.array([at for _, at in found], dtype=np.intp)
    groups, parts = one.groups[first], one.parts[first]
    if one is other and (one.sessions >= 0).all():
        parts = one.sessions
    fits = np.equal.outer(parts, parts) & ~np.equal.outer(groups, groups)
    if one is other:
        fits = np.triu(fits)
    i, j = np.nonzero(fits)
    near = as_close(one.estimates[first[i]] - other.estimates[second[j]], difference)
    i, j = i[near], j[near]
    n_looks = max(one.errors.shape[1], other.errors.shape[1])
    sizes = np.zeros((len(i), one.errors.shape[2]))
    for look in range(n_looks):
        a, b = min(look, one.errors.shape[1] - 1), min(look, other.errors.shape[1] - 1)
        apart = one.errors[first[i], a] - other.errors[second[j], b]
        unit = np.hypot(one.spreads[first[i], a], other.spreads[second[j], b])
        size = np.divide(np.abs(apart), unit, out=np.zeros_like(unit), where=unit > 0)
        sizes = np.maximum(sizes, size)
    counts = np.bincount(groups, minlength=1)
    weights = 1.0 / (counts[groups[i]] * counts[groups[j]])
    used = len(np.unique(groups[np.concatenate([i, j])]))
    models = len(np.unique(np.concatenate([one.models[first[i]], other.models[second[j]]])))
    return Residuals(sizes, weights / max(weights.sum(), 1e-300), used, models)


def over_sampling(held: HeldOut, at: Sequence[int], distance: float, scores: Scores) -> float:
    """Return errors of differences beyond the sources over those of paired random sampling.

    Root mean square over pairs that ran the same items, with groups weighted equally; NaN with
    fewer than two groups. Of the pairs the half counts that is as far beyond as two targets are.

    Parameters
    ----------
    held : HeldOut
        Models that were learned from weaker ones.
    at : sequence of int
        Their numbers of answers.
    distance : float
        Mean distance of the two targets beyond the sources.
    scores : Scores
        The sources.
    """
    fits = np.equal.outer(held.sessions, held.sessions)
    i, j = np.nonzero(np.triu(fits & ~np.equal.outer(held.groups, held.groups)))
    if len(np.unique(held.groups[i])) < 2:
        return math.nan
    off = np.abs((held.distances[i] + held.distances[j]) / 2 - distance)
    kept = off <= np.median(off)
    i, j = i[kept], j[kept]
    rows, full = scores.filled_cells, scores.full_scores()
    a, b = held.models[i], held.models[j]
    square = ((rows[a] - rows[b]) ** 2).mean(axis=1) - (full[a] - full[b]) ** 2
    left = np.array([max(1 / n - 1 / scores.n_items, 0) for n in at])
    variances = np.maximum(square, 1 / scores.n_items)[:, None] * left
    errors = held.errors[i, :, 0] - held.errors[j, :, 0]
    known = variances > 0
    ratios = np.divide(errors**2, variances, out=np.zeros_like(errors), where=known).sum(axis=1)
    weights = equal_weights(held.groups[i])
    return float(np.sqrt(weights @ (ratios / np.maximum(known.sum(axis=1), 1))))


def as_close(differences: FloatArray, difference: float) -> BoolArray:
    """Return which differences are on the same side of their median size as another one.

    >>> as_close(np.array([0.1, -0.4, 0.3]), -0.2).tolist()
    [True, False, True]
    """
    sizes = np.abs(differences)
    if not len(sizes):
        return np.empty(0, dtype=bool)
    middle = float(np.median(sizes))
    return np.asarray(sizes <= middle if abs(difference) <= middle else sizes > middle)
