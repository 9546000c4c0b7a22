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
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from fewbench._files import written_whole
from fewbench._seeds import child_seed
from fewbench._types import FloatArray, IntArray
from fewbench._version import __version__
from fewbench.decide.residuals import HeldOut
from fewbench.errors import MethodError, ScoresError
from fewbench.evaluation.beyond import place
from fewbench.evaluation.calibration import NEARLY_COMPLETE, source_groups
from fewbench.evaluation.replay import Replay, replays
from fewbench.evaluation.sampling import standard_error
from fewbench.methods import Method
from fewbench.scores import Scores

FOLDS = 5
MOST_PER_FOLD = 20
"""Held-out models per part of an adaptive method, which is run once for each: 190 pairs."""
MOST_IN_GROUPS = 12
"""The same where the models of a group run the same items: each part is run twice then."""
STRONGEST, WEAKER = 0.75, (0.75, 0.5)
"""Pairs beyond the sources are of the sources above a quantile of the full scores. They are learned
from those below it, and from those below a lower one: just beyond, and far beyond."""
FORMAT = 2
"""Raise it when errors are measured differently."""


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
