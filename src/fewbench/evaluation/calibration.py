"""A method's errors on held-out source models.

Within the sources' range, the whole method is cross-fitted. Sources of one family, or nearly the
same, are held out together and count as one, after Lee, Barber & Willett 2023 (arXiv 2306.06342).
Beyond the range, the method is fitted on the weaker sources and judged on the strongest.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from fewbench._blocks import by_rows
from fewbench._seeds import child_seed
from fewbench._threads import one_thread
from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.algorithms.soundness.likeness import duplicate_groups
from fewbench.errors import EvaluationError, MethodError, ScoresError
from fewbench.evaluation.beyond import RELIABLE, place, reliability
from fewbench.evaluation.past_errors import (
    FOLDS,
    MOST_JUDGED,
    MOST_JUDGED_BEYOND,
    STEPS,
    PastErrors,
    equal_weights,
    joined,
    no_errors,
)
from fewbench.evaluation.replay import Replay, replays
from fewbench.evaluation.sampling import (
    check_level,
    expected_random_error,
    sampling_effect,
    standard_error,
)
from fewbench.executors import InProcess, Lost, Pool
from fewbench.methods.base import Method
from fewbench.scores import Scores

NEARLY_COMPLETE = 0.01
SAMPLES = 20
_GROUPS: WeakKeyDictionary[Scores, IntArray] = WeakKeyDictionary()
"""Groups of sources, which take long to find in a large table."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """A method's past errors, and intervals for a target like the sources.

    Attributes
    ----------
    past : PastErrors
    unused : int
        Number of sources that were not judged: cells are missing, too few others are left, or
        enough were drawn.
    """

    past: PastErrors
    unused: int = 0

    def half_width(self, level: float, spread: float) -> tuple[float, int, str | None]:
        """Return an interval's half width, the number of units behind it, and a warning or None.

        The half width is the conformal quantile of the relative errors, times the target's spread.
        Every group has the same weight, and so has the target, at infinity. With too few groups
        for the level, sources count instead, with a warning; with too few sources, the half width
        is infinite.
        """
        check_level(level)
        needed = math.ceil(level / (1 - level) - 1e-9)
        n_groups, n_sources = self.past.n_groups, len(np.unique(self.past.models))
        if n_groups >= needed:
            quantile = self._quantile(self.past.weights * n_groups / (n_groups + 1), level)
            return quantile * spread, n_groups, None
        if n_sources >= needed:
            weights = equal_weights(self.past.models) * n_sources / (n_sources + 1)
            return (
                self._quantile(weights, level) * spread,
                n_sources,
                f"there are only {n_groups} families or groups of source models. The interval "
                "treats source models as unrelated, so it may be too narrow for a new family",
            )
        return (
            math.inf,
            n_sources,
            f"an interval at {level:.0%} from past errors needs {needed} source models with all "
            f"items answered; there are {n_sources} ({self.unused} others). The interval shows "
            "only what the answers leave possible",
        )

    def _quantile(self, weights: FloatArray, level: float) -> float:
        sizes = np.abs(self.past.relative)
        order = np.argsort(sizes, kind="stable")
        reached = np.cumsum(weights[order]) >= level - 1e-12
        return float(sizes[order][reached.argmax()]) if reached.any() else math.inf


def cross_fit(
    method: Method,
    scores: Scores,
    budget: int,
    seed: int,
    *,
    folds: int = FOLDS,
    divisions: int = 1,
) -> Calibration:
    """Measure a method's errors on the sources, each estimated without its own group.

    The whole method is repeated without the group, selection included. Sources with over 1 % of
    cells missing are learned from but not judged, as their full scores are unknown. An adaptive
    method is judged on at most `MOST_JUDGED` sources.

    Parameters
    ----------
    method : Method
    scores : Scores
        The sources.
    budget, seed : int
        As for the evaluation itself.
    folds : int
        Number of parts that the groups are divided into.
    divisions : int
        Number of random divisions. With one division of 40 sources, the width of an interval can
        vary by a factor of 2 with the seed.
    """
    return cross_fits(method, scores, budget, seed, [None], folds=folds, divisions=divisions)[0]


def cross_fits(
    method: Method,
    scores: Scores,
    budget: int,
    seed: int,
    limits: Sequence[int | None],
    *,
    folds: int = FOLDS,
    divisions: int = 1,
    pool: Pool | None = None,
) -> list[Calibration]:
    """Return `cross_fit` after each of these numbers of answers, increasing, None last.

    `pool` says where the folds run: in this process by default.
    """
    if scores.n_models < 3:
        return [Calibration(no_errors(), scores.n_models) for _ in limits]
    groups = source_groups(scores)
    apart = _apart(groups)
    n_groups = int(apart.max()) + 1
    known = _known(scores)
    effect = sampling_effect(scores, budget)
    if not method.asks_once:  # slow: chooses items for each source
        order = np.random.default_rng(child_seed(seed, 2)).permutation(np.flatnonzero(known))
        known[order[MOST_JUDGED:]] = False
    jobs = []
    for division in range(divisions):
        # The first division does not depend on the number of divisions.
        own = seed if division == 0 else child_seed(seed, 3, division)
        fold_of = _folds(apart, n_groups, min(folds, n_groups), own)
        for fold in range(int(fold_of.max()) + 1):
            held = np.flatnonzero((fold_of == fold) & known)
            rest = np.flatnonzero(fold_of != fold)
            own_seed = child_seed(own, 1, fold)
            jobs.append(_Job(method, rest, held, groups, budget, own_seed, fold, effect, limits))
    found = _judge_all(scores, jobs, pool)
    pasts = [joined(list(parts)) for parts in zip(*found, strict=True)]
    return [Calibration(past, scores.n_models - len(np.unique(past.models))) for past in pasts]


def frontier_fits(
    method: Method,
    scores: Scores,
    budget: int,
    seed: int,
    limits: Sequence[int | None] = (None,),
    *,
    pool: Pool | None = None,
) -> list[PastErrors]:
    """Measure a method's errors on the strongest sources, learned from weaker ones only.

    Returns
    -------
    list of PastErrors
        One for each of `limits` (numbers of answers, increasing, None last). `step` numbers
        `STEPS`. Empty if there are too few sources. Steps are left out if their
        weaker sources hardly differ in ability.
    """
    groups = source_groups(scores)
    apart = _apart(groups)
    known = _known(scores)
    effect = sampling_effect(scores, budget)
    order = np.argsort(np.round(scores.full_scores(), 12), kind="stable")
    jobs = []
    for step, (learned, above) in enumerate(STEPS):
        judged = order[round(above * len(order)) :]
        judged = np.sort(judged[known[judged]])
        if not method.asks_once and len(judged) > MOST_JUDGED_BEYOND:
            rng = np.random.default_rng(child_seed(seed, 4, step))
            judged = np.sort(rng.choice(judged, MOST_JUDGED_BEYOND, replace=False))
        weaker = order[: round(learned * len(order))]
        weaker = np.sort(weaker[~np.isin(apart[weaker], apart[judged])])
        if len(weaker) >= 3 and reliability(scores.take(models=weaker)) >= RELIABLE:
            own = child_seed(seed, 5, step)
            jobs.append(_Job(method, weaker, judged, groups, budget, own, step, effect, limits))
    found = _judge_all(scores, jobs, pool)
    return [joined(list(parts)) for parts in zip(*found, strict=True)] or [no_errors()] * len(
        limits
    )


@dataclass(frozen=True, eq=False)
class _Job:
    """A method to fit on some sources and to judge on others."""

    method: Method
    learned: IntArray
    judged: IntArray
    groups: IntArray
    budget: int
    seed: int
    step: int
    effect: float
    limits: Sequence[int | None]


def _judge_all(scores: Scores, jobs: list[_Job], pool: Pool | None) -> list[list[PastErrors]]:
    found = []
    for one in (pool or InProcess()).in_order(_judge, scores, jobs):
        if isinstance(one, Lost):
            raise EvaluationError(
                f"measuring the method's errors: {one.reason}",
                hint="use one worker, or workers with more memory",
            )
        found.append(one)
    return found


def _judge(scores: Scores, job: _Job) -> list[PastErrors]:
    """Return the errors after each number of answers; none if the method cannot be fitted."""
    if not len(job.judged):
        return [no_errors()] * len(job.limits)
    sources = scores.take(models=job.learned)
    targets = scores.complete().take(models=job.judged)
    with one_thread():  # in any process
        try:
            replayed = replays(job.method, sources, targets, job.budget, job.seed, job.limits)
        except (MethodError, ScoresError):  # too few sources are left for the method
            return [no_errors()] * len(job.limits)
        how = (job.judged, job.groups, job.step, job.effect)
        return [_errors(said, sources, targets, *how) for said in replayed]


def _errors(
    said: Replay,
    sources: Scores,
    targets: Scores,
    judged: IntArray,
    groups: IntArray,
    step: int,
    effect: float,
) -> PastErrors:
    answers = [targets.cells[row, items] for row, items in enumerate(said.items)]
    placed = place(sources, said.items, answers)
    truth = targets.full_scores()
    n_items = sources.n_items
    counts = [len(items) for items in said.items]
    plain = [standard_error(p, n, n_items) for p, n in zip(said.scores, counts, strict=True)]
    return PastErrors(
        truth - said.scores,
        np.array(plain) if said.spread is None else said.spread,
        np.array(
            [
                expected_random_error(p, n, n_items, effect)
                for p, n in zip(truth, counts, strict=True)
            ]
        ),
        placed.chance,
        placed.distance,
        judged,
        groups[judged],
        np.full(len(judged), step),
    )


def sample_fit(scores: Scores, n: int, seed: int) -> PastErrors:
    """Return errors of the means of `SAMPLES` simple random samples per source.

    Their unit is the standard error from each sample's own variance (see `sample_error`), so it
    also fits a target that varies more.
    """
    groups = source_groups(scores)
    judged = np.flatnonzero(_known(scores))
    typical = typical_variance(scores)
    n_items = scores.n_items
    rng = np.random.default_rng(child_seed(seed, 6))
    errors, spreads = [], []
    for row in judged:
        values = scores.filled_cells[row]
        for _ in range(SAMPLES):
            sample = values[rng.choice(n_items, n, replace=False)]
            errors.append(float(values.mean() - sample.mean()))
            spreads.append(sample_error(sample, n_items, typical))
    nothing = np.zeros(len(errors))
    models = np.repeat(judged, SAMPLES)
    return PastErrors(
        np.array(errors),
        np.array(spreads),
        nothing,
        nothing,
        nothing,
        models,
        groups[models],
        np.zeros(len(models), dtype=np.intp),
    )


def typical_variance(scores: Scores) -> float:
    """Return the mean variance of a source's scores over the items."""
    return float(by_rows(scores.filled_cells, lambda part: part.var(axis=1)).mean())


def sample_error(sample: FloatArray, n_items: int, typical: float) -> float:
    """Return the standard error of a sample's mean.

    The typical variance counts as two more answers, so equal answers do not give 0.
    """
    n = len(sample)
    variance = (float(((sample - sample.mean()) ** 2).sum()) + 2 * typical) / (n + 1)
    return math.sqrt(variance * max(1 / n - 1 / n_items, 0.0))


def source_groups(scores: Scores) -> IntArray:
    """Group models by family and by (nearly) identical answers, shape (models,)."""
    if scores not in _GROUPS:
        families = None
        if "family" in scores.models:
            families = scores.models["family"].fillna("").to_numpy(dtype=object)
        _GROUPS[scores] = duplicate_groups(scores.filled_cells, families)
    return _GROUPS[scores]


def _apart(groups: IntArray) -> IntArray:
    """Return the groups to hold out together: the sources themselves if there is one group."""
    return groups if groups.max() > 0 else np.arange(len(groups))


def _known(scores: Scores) -> BoolArray:
    return np.asarray(scores.missing_shares <= NEARLY_COMPLETE)


def _folds(groups: IntArray, n_groups: int, folds: int, seed: int) -> IntArray:
    """Deal the groups, largest first and ties at random, each to the smallest fold so far."""
    sizes = np.bincount(groups, minlength=n_groups)
    shuffled = np.random.default_rng(child_seed(seed, 0)).permutation(n_groups)
    filled = np.zeros(folds, dtype=np.intp)
    fold_of = np.empty(n_groups, dtype=np.intp)
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        fold_of[group] = filled.argmin()
        filled[fold_of[group]] += sizes[group]
    return fold_of[groups]
