"""Errors of differences, measured on pairs of held-out source models.

A method's errors on two targets move together: both rest on the same sources and partly on the
same items. So the error of a difference is not the sum of two variances. It is measured: groups of
sources are held out together, the method estimates them from the others, and two models of one
part and of different groups make a pair. A difference from a known score rests on single models.
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
from fewbench.evaluation.calibration import NEARLY_COMPLETE, source_groups
from fewbench.evaluation.opening import FEWEST
from fewbench.evaluation.replay import Replay, replays
from fewbench.evaluation.sampling import standard_error
from fewbench.methods import Method
from fewbench.scores import Scores

FOLDS = 5
MOST_PER_FOLD = 20
"""Held-out models per part of an adaptive method, which is run once for each: 190 pairs."""
GROWTH = 2
FORMAT = 1
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
    """

    errors: FloatArray
    spreads: FloatArray
    estimates: FloatArray
    models: IntArray
    groups: IntArray
    parts: IntArray

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
    n_wanted = 1 + len(scores.tasks)
    errors, spreads = np.empty((0, len(at), n_wanted)), np.empty((0, len(at), n_wanted))
    estimates, judged = np.empty(0), np.empty(0, dtype=np.intp)
    rng = np.random.default_rng(child_seed(0, 11))
    for part in range(FOLDS):
        held = np.flatnonzero((part_of == part) & known)
        if not method.asks_once:
            held = np.sort(rng.permutation(held)[:MOST_PER_FOLD])
        rest = np.flatnonzero(part_of != part)
        if not len(held) or len(rest) < 2:
            continue
        sources, targets = scores.take(models=rest), scores.complete().take(models=held)
        own = child_seed(seed, 1, part)
        try:
            replayed = replays(method, sources, targets, budget, own, limits, tasks=True)
        except (MethodError, ScoresError):  # too few sources are left for the method
            continue
        made = [_errors(one, targets) for one in replayed]
        errors = np.concatenate([errors, np.stack([one for one, _ in made], axis=1)])
        spreads = np.concatenate([spreads, np.stack([one for _, one in made], axis=1)])
        estimates = np.concatenate([estimates, replayed[-1].scores])
        judged = np.concatenate([judged, held])
    return HeldOut(errors, spreads, estimates, judged, groups[judged], part_of[judged])


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
    row = {model: at for at, model in enumerate(other.models.tolist())}
    both = [(at, row[model]) for at, model in enumerate(one.models.tolist()) if model in row]
    first = np.array([at for at, _ in both], dtype=np.intp)
    second = np.array([at for _, at in both], dtype=np.intp)
    groups, parts = one.groups[first], one.parts[first]
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
    models = len(np.unique(np.concatenate([i, j])))
    return Residuals(sizes, weights / max(weights.sum(), 1e-300), used, models)


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
