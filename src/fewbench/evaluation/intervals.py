"""How sure an estimate is: intervals for plain sampling, and for any method at all.

For a simple random sample the interval is exact (binary scores: inverted hypergeometric tests)
or Wilson's with the finite-population correction. For every other method it comes from the
method's own errors on source models that it was not fitted on (cross-fitted residuals). Sources
of one family, or nearly the same, are left out together and count as one, after Lee, Barber &
Willett 2023 (arXiv 2306.06342): a new model is a new group.
"""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fewbench._seeds import child_seed
from fewbench.algorithms.soundness.twins import duplicate_groups
from fewbench.errors import FewbenchError, MethodError, ScoresError
from fewbench.evaluation.replay import replay
from fewbench.methods.base import Method
from fewbench.methods.static import StaticMethod
from fewbench.scores import Scores

FloatArray = NDArray[np.float64]
FOLDS = 5
MOST_JUDGED = 100
NEARLY_COMPLETE = 0.01


def check_level(level: float) -> None:
    """Raise FewbenchError unless 0 < level < 1."""
    if not 0.0 < level < 1.0:
        raise FewbenchError(f"an interval at level {level}", hint="use a share such as 0.9")


def sampling_interval(
    mean: float, n: int, n_items: int, level: float, *, binary: bool
) -> tuple[float, float]:
    """Interval for the mean of n_items items from a simple random sample of n of them.

    Parameters
    ----------
    mean : float
        Mean of the sample, in [0, 1].
    n, n_items : int
        Sizes of the sample and of the whole.
    level : float
        Stated coverage, such as 0.9.
    binary : bool
        Whether scores are 0 or 1: then the interval is exact, else Wilson's.

    Examples
    --------
    >>> low, high = sampling_interval(0.5, 20, 1000, 0.9, binary=True)
    >>> round(low, 3), round(high, 3)
    (0.304, 0.696)
    >>> sampling_interval(0.3, 10, 10, 0.9, binary=True)
    (0.3, 0.3)
    """
    check_level(level)
    if n >= n_items:
        return mean, mean
    if binary:
        return exact_interval(round(mean * n), n, n_items, level)
    return wilson_interval(mean, n, n_items, level)


@lru_cache(maxsize=4096)
def exact_interval(hits: int, n: int, n_items: int, level: float) -> tuple[float, float]:
    """Equal-tailed hypergeometric interval for the share of right items of n_items.

    The least and the greatest number of right items in the whole that would not be rejected by a
    one-sided test at (1 - level) / 2 after `hits` of n.
    """
    from scipy.stats import hypergeom

    tail = (1.0 - level) / 2.0
    right = range(hits, n_items - (n - hits) + 1)  # what the sample leaves possible
    # The more are right, the likelier so many hits or more: both ends are found by halving.
    low = bisect_right(right, tail, key=lambda r: hypergeom.sf(hits - 1, n_items, r, n))
    high = bisect_left(right, -tail, key=lambda r: -hypergeom.cdf(hits, n_items, r, n)) - 1
    return right[low] / n_items, right[high] / n_items


def wilson_interval(
    mean: float, n: int, n_items: int, level: float, effect: float = 1.0
) -> tuple[float, float]:
    """Wilson's score interval, n enlarged by the finite-population correction.

    `effect` is the variance over that of binary scores (`sampling_effect`).

    For scores between 0 and 1 it is wide: no variance exceeds the binomial one at the same mean.
    """
    from scipy.special import ndtri

    if n >= n_items:
        return mean, mean
    z = float(ndtri(0.5 + level / 2.0))
    effective = n * (n_items - 1) / (n_items - n) / max(effect, 1e-9)
    centre = (mean + z**2 / (2 * effective)) / (1 + z**2 / effective)
    half = z / (1 + z**2 / effective)
    half *= math.sqrt(mean * (1 - mean) / effective + z**2 / (4 * effective**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def expected_random_error(score: float, n: int, n_items: int, effect: float = 1.0) -> float:
    """Mean absolute error of plain random sampling of n of n_items items at a full score.

    sqrt(2/π · effect · p (1 - p)/n · (1 - n/N)), the normal approximation; `effect` is
    `sampling_effect`, 1 for binary scores.
    """
    variance = effect * max(score * (1 - score), 0.0) / n * (1 - n / n_items)
    return math.sqrt(2 / math.pi * variance)


def sampling_effect(scores: Scores) -> float:
    """Variance of plain random sampling over that of binary scores of the same full score.

    1 for binary scores and a micro average. Below 1 for scores between 0 and 1; above for a macro
    average over tasks of unequal size, whose few items weigh much. The mean over the sources of
    N² · mean(w² (c - P)²) / (P (1 - P)), the linearised variance of a weighted mean.
    """
    full = scores.full_scores()
    spread = full * (1 - full)
    used = spread > 1e-9
    if not used.any():
        return 1.0
    weights = scores.n_items * scores.item_weights
    deviations = weights * (scores.filled[used] - full[used, None])
    return float(((deviations**2).mean(axis=1) / spread[used]).mean())


@dataclass(frozen=True, eq=False)
class Calibration:
    """A method's errors on sources that it was not fitted on.

    Attributes
    ----------
    errors : ndarray, shape (sources,)
        Absolute errors of the full score.
    groups : ndarray of int, shape (sources,)
        Numbers of the groups that were left out together.
    unused : int
        Sources whose error was not measured: cells are missing, too few others are left, or
        enough were drawn without them.
    """

    errors: FloatArray
    groups: NDArray[np.intp]
    unused: int = 0

    @property
    def mean_error(self) -> float | None:
        """The mean absolute error, groups weighing the same; None without any source."""
        if not len(self.errors):
            return None
        weights = 1.0 / np.bincount(self.groups)[self.groups]
        return float(np.average(self.errors, weights=weights))

    def half_width(self, level: float) -> tuple[float, str | None]:
        """Return the half width of an interval at a level, and a warning if one is due.

        Every group weighs the same, and one more group weighs at infinity, for the target. With
        too few groups for the level every source counts by itself (and the warning says so);
        with too few sources the half width is infinite.
        """
        check_level(level)
        needed = math.ceil(level / (1 - level) - 1e-9)
        counts = np.bincount(self.groups)
        n_groups = int((counts > 0).sum())
        if n_groups >= needed:
            weights = 1.0 / (n_groups + 1) / counts[self.groups]
            return self._quantile(weights, level), None
        n_sources = len(self.errors)
        if n_sources >= needed:
            weights = np.full(n_sources, 1.0 / (n_sources + 1))
            return self._quantile(weights, level), (
                f"there are only {n_groups} families or groups of sources: the interval treats "
                "sources as unrelated and may be too narrow for a model of a new family"
            )
        return math.inf, (
            f"an interval at {level:.0%} from past errors needs {needed} sources that answered "
            f"all items, there are {n_sources} ({self.unused} others): it shows only what the "
            "answers leave possible"
        )

    def _quantile(self, weights: FloatArray, level: float) -> float:
        order = np.argsort(self.errors, kind="stable")
        reached = np.cumsum(weights[order]) >= level - 1e-12
        return float(self.errors[order][reached.argmax()]) if reached.any() else math.inf


def cross_fit(
    method: Method, scores: Scores, budget: int, seed: int, folds: int = FOLDS
) -> Calibration:
    """Measure a method's errors on the sources, each estimated without its own group.

    The whole method is repeated on the other groups, selection included, so that its choice of
    items cannot have seen the model that it is judged on. Sources with more than a hundredth of
    their cells missing are learned from, but not judged: their truth is not known. A method that
    adapts, and so chooses items anew for every source, is judged on at most `MOST_JUDGED` of them.

    Parameters
    ----------
    method : Method
        Any; only the protocol is used.
    scores : Scores
        The sources.
    budget, seed : int
        As for the evaluation itself.
    folds : int
        Parts into which the groups are divided.
    """
    if scores.n_models < 3:
        return Calibration(np.empty(0), np.empty(0, dtype=np.intp), scores.n_models)
    groups = apart = source_groups(scores)
    if groups.max() == 0:  # one group cannot be left out; half_width says what that means
        apart = np.arange(scores.n_models)
    n_groups = int(apart.max()) + 1
    fold_of = _folds(apart, n_groups, min(folds, n_groups), seed)
    known = np.isnan(scores.values).mean(axis=1) <= NEARLY_COMPLETE
    if not isinstance(method, StaticMethod):  # which choose items anew for each
        order = np.random.default_rng(child_seed(seed, 2)).permutation(np.flatnonzero(known))
        known[order[MOST_JUDGED:]] = False
    whole = scores.complete()
    errors = np.full(scores.n_models, np.nan)
    for fold in range(int(fold_of.max()) + 1):
        held = np.flatnonzero((fold_of == fold) & known)
        if not len(held):
            continue
        aside = whole.take(models=held)
        try:
            rest = scores.take(models=np.flatnonzero(fold_of != fold))
            said = replay(method, rest, aside, budget, child_seed(seed, 1, fold))
        except (MethodError, ScoresError):  # too few sources are left for the method
            continue
        errors[held] = np.abs(said.scores - aside.full_scores())
    done = ~np.isnan(errors)
    return Calibration(errors[done], groups[done], int((~done).sum()))


def calibrate(method: Method, scores: Scores, budget: int, seed: int) -> Calibration | None:
    """Measure a method's errors; None for the mean of a simple random sample, which needs none.

    With a macro average it does: the exact interval says nothing of tasks that were not drawn.
    """
    if method.plain_sampling and scores.average == "micro":
        return None
    return cross_fit(method, scores, budget, seed)


def source_groups(scores: Scores) -> NDArray[np.intp]:
    """Group the sources by family and by (nearly) identical answers, shape (models,)."""
    families = None
    if "family" in scores.models:
        families = scores.models["family"].fillna("").to_numpy(dtype=object)
    return duplicate_groups(scores.filled, families)


def _folds(groups: NDArray[np.intp], n_groups: int, folds: int, seed: int) -> NDArray[np.intp]:
    """Deal the groups, largest first and ties at random, each to the smallest fold so far."""
    sizes = np.bincount(groups, minlength=n_groups)
    shuffled = np.random.default_rng(child_seed(seed, 0)).permutation(n_groups)
    filled = np.zeros(folds, dtype=np.intp)
    fold_of = np.empty(n_groups, dtype=np.intp)
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        fold_of[group] = filled.argmin()
        filled[fold_of[group]] += sizes[group]
    return fold_of[groups]
