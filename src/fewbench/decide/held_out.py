"""Errors of differences, measured on pairs of held-out source models.

A method's errors on two targets move together: both rest on the same sources and partly on the
same items. So the error of a difference is not the sum of two variances. It is measured: groups of
sources are held out together, the method estimates them from the others, and two models of one
part and of different groups make a pair. A difference from a known score rests on single models.

Where a method gives several targets the same items, the models of a part run in groups as large,
and only models of one group make a pair. Such a method also runs on the strongest sources, learned
from weaker ones: pairs beyond the sources.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from fewbench._files import written_whole
from fewbench._seeds import child_seed
from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench._version import __version__
from fewbench.errors import MethodError, ScoresError
from fewbench.evaluation.beyond import place
from fewbench.evaluation.calibration import NEARLY_COMPLETE, source_groups
from fewbench.evaluation.opening import FEWEST
from fewbench.evaluation.past_errors import equal_weights
from fewbench.evaluation.replay import Replay, replays
from fewbench.evaluation.sampling import standard_error
from fewbench.methods import Method
from fewbench.scores import Scores

FOLDS = 5
MOST_PER_FOLD = 20
"""Held-out models per part of an adaptive method, which is run once for each: 190 pairs."""
MOST_IN_GROUPS = 12
"""The same where the models of a group run the same items: each part is run twice then."""
GROWTH = 2
PATIENCE = 0.25
"""Of several looks, the interval of an earlier one is wider, by the answers' ratio to this power
(Wang & Tsiatis 1987, Biometrics 43(1)): it leaves more of the level to the last look."""
STRONGEST, WEAKER = 0.75, (0.75, 0.5)
"""Pairs beyond the sources are of the sources above a quantile of the full scores. They are learned
from those below it, and from those below a lower one: just beyond, and far beyond."""
FORMAT = 2
"""Raise it when errors are measured differently."""


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


def measure(
    method: Method,
    scores: Scores,
    budget: int,
    seed: int,
    at: Sequence[int],
    folder: Path | None = None,
) -> HeldOut:
    """Run the whole method on held-out sources and return its errors after `at` answers.

    Parameters
    ----------
    method : Method
    scores : Scores
        The sources. Models with over 1 % of cells missing are learned from but not judged.
    budget, seed : int
        As for the evaluation. The parts do not depend on the seed, so that two evaluations with
        different seeds are judged on the same pairs.
    at : sequence of int
        Numbers of answers, increasing, at most the budget.
    folder : Path, optional
        Where the errors are kept.
    """
    path = None
    if folder is not None:
        made_of = (__version__, FORMAT, FOLDS, MOST_PER_FOLD, scores.fingerprint, scores.average)
        key = repr((*made_of, method.describe(), budget, seed, tuple(at)))
        path = folder / f"decisions-{hashlib.sha256(key.encode()).hexdigest()[:12]}.npz"
        if (kept := _read(path)) is not None:
            return kept
    found = _measure(method, scores, budget, seed, at)
    if path is not None:
        _keep(found, path)
    return found


def _measure(method: Method, scores: Scores, budget: int, seed: int, at: Sequence[int]) -> HeldOut:
    groups = source_groups(scores)
    if groups.max() == 0:
        groups = np.arange(scores.n_models)
    known = scores.missing_shares <= NEARLY_COMPLETE
    part_of = _parts(groups, min(FOLDS, int(groups.max()) + 1))
    limits: list[int | None] = [None if n == budget else n for n in at]
    rng = np.random.default_rng(child_seed(0, 11))
    full = scores.full_scores()
    divisions = [
        (part, np.flatnonzero(part_of != part), np.flatnonzero((part_of == part) & known))
        for part in range(FOLDS)
    ]
    if method.together > 1:
        above = np.flatnonzero((full > np.quantile(full, STRONGEST)) & known)
        own = np.isin(groups, groups[above])
        for step, share in enumerate(WEAKER):
            below = np.flatnonzero((full <= np.quantile(full, share)) & ~own)
            divisions.append((FOLDS + step, below, above))
    made: list[HeldOut] = []
    for part, rest, held in divisions:
        if not method.asks_once:
            few = method.together > 1 and part < FOLDS
            held = np.sort(rng.permutation(held)[: MOST_IN_GROUPS if few else MOST_PER_FOLD])
        if not len(held) or len(rest) < 2:
            continue
        orders = [held]
        if method.together > 1:  # close pairs, then any
            orders = [held[np.argsort(full[held], kind="stable")], rng.permutation(held)]
        for held in orders:
            sources, targets = scores.take(models=rest), scores.complete().take(models=held)
            try:
                replayed = replays(
                    method, sources, targets, budget, child_seed(seed, 1, part), limits, tasks=True
                )
            except (MethodError, ScoresError):  # too few sources are left for the method
                break
            found = [_errors(one, targets) for one in replayed]
            sessions = np.full(len(held), -1)
            if method.together > 1:
                first = 1 + (made[-1].sessions.max() if made else -1)
                sessions = first + np.arange(len(held)) // method.together
            inside = np.full(len(held), np.nan)
            made.append(
                HeldOut(
                    np.stack([errors for errors, _ in found], axis=1),
                    np.stack([spreads for _, spreads in found], axis=1),
                    replayed[-1].scores,
                    held,
                    groups[held],
                    np.full(len(held), part),
                    sessions,
                    _distances(sources, targets, replayed[-1]) if part >= FOLDS else inside,
                )
            )
    if not made:
        shape, nothing = (0, len(at), 1 + len(scores.tasks)), np.empty(0, dtype=np.intp)
        empty = (np.empty(shape), np.empty(shape), np.empty(0), *(nothing,) * 4)
        return HeldOut(*empty, np.empty(0))
    return HeldOut(
        **{
            field.name: np.concatenate([getattr(one, field.name) for one in made])
            for field in fields(HeldOut)
        }
    )


def _distances(sources: Scores, targets: Scores, said: Replay) -> FloatArray:
    answers = [targets.cells[row, items] for row, items in enumerate(said.items)]
    return place(sources, said.items, answers).distance


def _parts(groups: IntArray, n_parts: int) -> IntArray:
    """Deal the groups, largest first and ties at random, each to the smallest part so far."""
    sizes = np.bincount(groups)
    shuffled = np.random.default_rng(child_seed(0, 10)).permutation(len(sizes))
    filled = np.zeros(n_parts, dtype=np.intp)
    part_of = np.empty(len(sizes), dtype=np.intp)
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        part_of[group] = filled.argmin()
        filled[part_of[group]] += sizes[group]
    return np.asarray(part_of[groups])


def _errors(said: Replay, targets: Scores) -> tuple[FloatArray, FloatArray]:
    """Return errors and spreads of one look, each shape (targets, 1 + tasks)."""
    assert said.tasks is not None
    estimates = np.column_stack([said.scores, said.tasks])
    truth = np.column_stack([targets.full_scores(), targets.task_scores()])
    spreads = np.array(
        [
            spreads_of(row, items, targets, None if said.spread is None else float(said.spread[at]))
            for at, (row, items) in enumerate(zip(estimates, said.items, strict=True))
        ]
    )
    return truth - estimates, spreads


def spreads_of(
    estimates: FloatArray, items: IntArray, scores: Scores, spread: float | None
) -> FloatArray:
    """Return the units of one target's errors, shape (1 + tasks,).

    For the full score the method's own standard error, where it has one; else, and for tasks, that
    of plain sampling with as many items. A task without items has half an item.
    """
    sizes = np.bincount(scores.task_of)
    run = np.bincount(scores.task_of[items], minlength=len(sizes))
    if spread is None:
        spread = standard_error(float(estimates[0]), len(items), scores.n_items)
    of_tasks = [
        standard_error(float(score), max(n, 0.5), size)
        for score, n, size in zip(estimates[1:], run, sizes, strict=True)
    ]
    return np.array([spread, *of_tasks])


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


def _read(path: Path) -> HeldOut | None:
    try:
        with np.load(path, allow_pickle=False) as file:
            return HeldOut(**{field.name: file[field.name] for field in fields(HeldOut)})
    except (OSError, ValueError, KeyError, BadZipFile):
        return None


def _keep(held: HeldOut, path: Path) -> None:
    """Keep errors in a folder, if it can be written to."""
    arrays = {field.name: getattr(held, field.name) for field in fields(HeldOut)}
    try:
        with written_whole(path) as temporary, temporary.open("wb") as file:
            np.savez(file, **arrays)
    except OSError:
        return
