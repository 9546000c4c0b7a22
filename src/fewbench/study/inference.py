"""Uncertainty of comparisons: intervals, p-values and "as good as the best".

All targets of a repeat share what was drawn (items, sources), so their errors are correlated, and
resampling targets alone would be too optimistic. Here repeats and models are resampled, both with
replacement, and each error has the product of its two counts as weight (Owen 2007, "The pigeonhole
bootstrap", Ann. Appl. Stat. 1(2)).
"""

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fewbench._seeds import child_seed
from fewbench._types import ArrayLike, FloatArray, IntArray
from fewbench.methods.sources import source_groups
from fewbench.scores import Scores
from fewbench.uncertainty.sampling import drawn_error, hypergeometric_error

LEVEL = 0.9
RESAMPLES = 1999
"""Resamples; the smallest p-value is 0.001."""
FEWEST_REPEATS = 3
FEWEST_TARGETS = 15
"""Fewest targets of a table in a mean over tables."""
_KEPT = 0.8
"""Share of resamples with a defined statistic that an interval needs."""


# Intervals by two-way resampling


@dataclass(frozen=True)
class Figure:
    """A number with its standard error and interval, NaN where it is undefined."""

    value: float
    se: float = math.nan
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Paired:
    """Mean difference of absolute errors, its interval (level 90%), and a two-sided p-value.

    The p-value is the smallest level whose interval excludes 0. Interval and p-value are NaN with
    fewer than 3 repeats.
    """

    difference: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, eq=False)
class TwoWay:
    """Resamples of repeats and models, the same for everything compared. See `two_way`.

    "Parts" are values of single repeats, shape (repeats, 1 + resamples), NaN if undefined: the
    value for the targets as they are, then for each resample of the models. A statistic, made of
    parts by `mean`, has shape (1 + 3 * resamples,): its value for the data as they are; then with
    repeats and models resampled; with only repeats resampled; with only models resampled. The last
    two give the variance due to each.

    Attributes
    ----------
    repeats : ndarray, shape (1 + resamples, repeats)
        How often each repeat was drawn; the first row is ones.
    models : ndarray, shape (1 + resamples, groups)
        How often each group of models was drawn; the first row is ones.
    group_of : tuple of ndarray of int, one per repeat
        The group of each target.
    fixed : bool
        Whether all repeats have the same targets. Percentiles are then too narrow with few
        repeats, and the ends of intervals are Student's t about the value.

    Notes
    -----
    Two-way resampling counts the variance due to neither repeats nor models three times, and
    underestimates the variance due to a few repeats. Standard errors and intervals correct the
    variance (Cameron, Gelbach & Miller 2011, Journal of Business & Economic Statistics 29(2)) and
    intervals widen by Student's t with the degrees of freedom of the variance shares
    (Satterthwaite 1946, Biometrics Bulletin 2(6)). If targets are drawn, the ends are percentiles,
    stretched about the value to that width.

    The level was measured in studies of models drawn from a simulated and a real population: 90%
    intervals of errors, ratios and differences contain the population's value in 85 to 97% of
    200 studies each, with 3 and 10 repeats, drawn and fixed targets; of rank correlations in 92 to
    99% (`benchmarks/compare_level.py`). Without the correction, fixed targets had 97 to 100%.
    """

    repeats: FloatArray
    models: FloatArray
    group_of: tuple[IntArray, ...]
    fixed: bool

    @property
    def n_repeats(self) -> int:
        """Number of repeats."""
        return len(self.group_of)

    @property
    def has_intervals(self) -> bool:
        """Whether there are enough repeats and groups of models for intervals."""
        return self.n_repeats >= FEWEST_REPEATS and self.models.shape[1] > 1

    def weights(self, repeat: int) -> FloatArray:
        """Return the weights of a repeat's targets, shape (1 + resamples, targets)."""
        return self.models[:, self.group_of[repeat]]

    def first(self, resamples: int) -> "TwoWay":
        """Return only the first resamples, for slow statistics."""
        return TwoWay(
            self.repeats[: 1 + resamples], self.models[: 1 + resamples], self.group_of, self.fixed
        )

    def parts(self, values: Sequence[FloatArray | None]) -> FloatArray:
        """Return each repeat's mean over its targets, shape (repeats, 1 + resamples).

        `values` holds one array of shape (targets,) per repeat, or None for a repeat without
        values.
        """
        means = np.full((self.n_repeats, len(self.repeats)), np.nan)
        for repeat, row in enumerate(values):
            if row is not None:
                weights = self.weights(repeat)
                with np.errstate(invalid="ignore"):
                    means[repeat] = weights @ row / weights.sum(axis=1)
        return means

    def mean(self, parts: FloatArray) -> FloatArray:
        """Return the mean over repeats with equal weights, without undefined ones."""
        drawn = self.repeats[1:].T
        once = np.broadcast_to(parts[:, :1], drawn.shape)
        weights = np.concatenate([self.repeats.T, drawn, np.ones_like(drawn)], axis=1)
        values = np.concatenate([parts, once, parts[:, 1:]], axis=1)
        is_finite = np.isfinite(values)
        weights[~is_finite] = 0.0
        with np.errstate(invalid="ignore"):
            total = (weights * np.where(is_finite, values, 0.0)).sum(axis=0)
            return np.asarray(total / weights.sum(axis=0))

    def total(self, sums: FloatArray) -> FloatArray:
        """Return the sum of values of repeats and groups of models, shape (repeats, groups)."""
        repeats, models = self.repeats, self.models
        both = np.einsum("br,rg,bg->b", repeats, sums, models, optimize=True)
        return np.concatenate([both, repeats[1:] @ sums.sum(axis=1), models[1:] @ sums.sum(axis=0)])

    def difference(self, ours: FloatArray, theirs: FloatArray) -> FloatArray:
        """Return the difference of two means over the repeats with both."""
        return self.mean(ours - theirs)

    def ratio(self, ours: FloatArray, theirs: FloatArray) -> FloatArray:
        """Return the ratio of two means over the repeats with both, NaN for a divisor of 0."""
        both = np.where(np.isfinite(ours) & np.isfinite(theirs), 1.0, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            base = self.mean(theirs * both)
            return np.where(base > 0, self.mean(ours * both) / base, np.nan)

    def figure(
        self,
        statistic: FloatArray,
        level: float = LEVEL,
        *,
        ratio: bool = False,
        least: float = -math.inf,
        most: float = math.inf,
    ) -> Figure:
        """Return a statistic's value, standard error and interval.

        `ratio` marks a positive ratio, whose interval is computed on logarithms. The interval is
        clipped to [`least`, `most`].
        """
        value = float(statistic[0])
        drawn = self._drawn(statistic)
        if drawn is None:
            return Figure(value)
        logs = ratio and value > 0 and bool((drawn[0] > 0).all())
        low, high = self._ends(value, drawn, np.array([1 - level]), logs)
        se = math.sqrt(self._variance(drawn)[0])
        return Figure(value, se, max(float(low[0]), least), min(float(high[0]), most))

    def p_value(self, statistic: FloatArray, null: float = 0.0, *, ratio: bool = False) -> float:
        """Return the smallest level whose interval excludes `null`, NaN without intervals."""
        drawn = self._drawn(statistic)
        if drawn is None:
            return math.nan
        value = float(statistic[0])
        logs = ratio and value > 0 and bool((drawn[0] > 0).all())
        count = len(drawn[0])
        levels = np.arange(1, count // 2 + 1) * 2 / (count + 1)
        low, high = self._ends(value, drawn, levels, logs)
        excluded = np.flatnonzero((low > null) | (high < null))
        return float(levels[excluded[0]]) if len(excluded) else 1.0

    def compare(self, ours: FloatArray, theirs: FloatArray) -> Paired:
        """Return the difference of two means, with its interval and p-value."""
        statistic = self.difference(ours, theirs)
        figure = self.figure(statistic)
        return Paired(figure.value, figure.low, figure.high, self.p_value(statistic))

    def _drawn(self, statistic: FloatArray) -> list[FloatArray] | None:
        """Return the three kinds of resampled values, or None if they give no interval."""
        if not self.has_intervals or not np.isfinite(statistic[0]):
            return None
        kinds = [kind[np.isfinite(kind)] for kind in np.split(statistic[1:], 3)]
        resamples = (len(statistic) - 1) // 3
        return kinds if min(map(len, kinds)) >= _KEPT * resamples else None

    def variance(self, statistic: FloatArray) -> tuple[float, float]:
        """Return a statistic's variance and degrees of freedom, NaN without intervals."""
        drawn = self._drawn(statistic)
        return (math.nan, math.nan) if drawn is None else self._variance(drawn)

    def _variance(self, drawn: list[FloatArray]) -> tuple[float, float]:
        both, by_repeats, by_models = (float(kind.var(ddof=1)) for kind in drawn)
        n_repeats, n_models = self.n_repeats, self.models.shape[1]
        neither = max(both - by_repeats - by_models, 0.0)
        by_repeats *= n_repeats / (n_repeats - 1)
        by_models *= n_models / (n_models - 1)
        whole = max(by_repeats + by_models - neither, by_repeats, by_models)
        of_parts = by_repeats**2 / (n_repeats - 1) + (whole - by_repeats) ** 2 / (n_models - 1)
        return whole, max(whole**2 / of_parts, n_repeats - 1) if of_parts else math.inf

    def _ends(
        self, value: float, drawn: list[FloatArray], alphas: FloatArray, logs: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends of the intervals with these error rates."""
        from scipy import stats  # half a second, for which help of commands does not wait

        if logs:
            value, drawn = math.log(value), [np.log(kind) for kind in drawn]
        variance, freedom = self._variance(drawn)
        quantiles = stats.t.ppf(1 - alphas / 2, freedom)
        if self.fixed:
            low, high = (value + sign * math.sqrt(variance) * quantiles for sign in (-1, 1))
        else:
            both = float(drawn[0].var(ddof=1))
            wider = quantiles / stats.norm.ppf(1 - alphas / 2)
            stretch = wider * math.sqrt(variance / both) if both else np.ones_like(alphas)
            # Ends are order statistics, so that the p-value is exactly the smallest level.
            ordered = np.sort(drawn[0])
            at = np.floor(alphas / 2 * (len(ordered) + 1) + 1e-9).astype(np.intp)
            at = np.clip(at, 1, len(ordered))
            low = value + stretch * (ordered[at - 1] - value)
            high = value + stretch * (ordered[-at] - value)
        return (np.exp(low), np.exp(high)) if logs else (low, high)


def two_way(
    targets: Sequence[Sequence[str]],
    groups: Mapping[str, Hashable] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> TwoWay:
    """Draw repeats and groups of models with replacement.

    Parameters
    ----------
    targets : sequence of sequence of str
        The targets of each repeat.
    groups : mapping of str, optional
        The group of each target that is drawn as one (see `model_groups`); by default each target
        is its own group.
    seed : int
        Seed of the resampling.
    resamples : int

    Examples
    --------
    >>> resampled = two_way([["a", "b", "c"], ["a", "d", "b"], ["c", "d", "e"]])
    >>> errors = [np.array([.1, .2, .3]), np.array([.2, .2, .2]), np.array([.1, .1, .1])]
    >>> figure = resampled.figure(resampled.mean(resampled.parts(errors)))
    >>> round(figure.value, 4), figure.low < figure.value < figure.high
    (0.1667, True)
    """
    named: dict[Hashable, int] = {}
    group_of = tuple(
        np.array(
            [
                named.setdefault(("", name) if groups is None else groups[name], len(named))
                for name in names
            ],
            dtype=np.intp,
        )
        for names in targets
    )
    rng = np.random.default_rng(child_seed(seed, 7))
    fixed = len({frozenset(names) for names in targets}) == 1
    return TwoWay(
        _counts(rng, len(group_of), resamples), _counts(rng, len(named), resamples), group_of, fixed
    )


def _counts(rng: np.random.Generator, size: int, resamples: int) -> FloatArray:
    drawn = rng.multinomial(size, np.full(size, 1 / size), resamples)
    return np.concatenate([np.ones((1, size)), drawn])


def model_groups(scores: Scores) -> dict[str, int]:
    """Return each model's group: a family, or models with (nearly) the same answers.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> model_groups(simulate(4, 20))
    {'model-00': 0, 'model-01': 0, 'model-02': 1, 'model-03': 1}
    """
    return dict(zip(scores.model_ids, source_groups(scores).tolist(), strict=True))


def too_few_repeats(n_repeats: int) -> str | None:
    """Return a warning if there are too few repeats for intervals; else None."""
    if n_repeats >= FEWEST_REPEATS:
        return None
    run = "1 repeat is" if n_repeats == 1 else f"{n_repeats} repeats are"
    return (
        f"no intervals: {run} too few to say how sure a number is, because the targets of a repeat "
        "share most of their items, so that their errors move together; run at least "
        f"{FEWEST_REPEATS - n_repeats} more."
    )


# The one rule for "as good as the best"


@dataclass(frozen=True)
class Best:
    """The method with the lowest mean error, and those as good.

    Attributes
    ----------
    best : str or None
        None if no method has an error.
    level : frozenset of str
        The best and every method as good as the best; empty if `judged` is False.
    judged : bool
        Whether there are intervals.
    """

    best: str | None
    level: frozenset[str]
    judged: bool


def tied_with_best(
    resampled: TwoWay,
    errors: Mapping[str, FloatArray],
    exact: Mapping[str, FloatArray] | None = None,
) -> Best:
    """Return the method with the lowest mean error, and all that are tied with it.

    The best is chosen by the same errors that judge the others, so by chance alone it is further
    from them than a method chosen beforehand. A method is therefore worse than the best only if
    their difference, in standard errors, is larger than the largest difference between any two
    methods is by chance at `LEVEL` (`_told_apart`). Measured on two real tables with six equal
    methods, 90% and 3 to 10 repeats: some other method is worse than the best in .07 to .13 of the
    studies; by Holm's rule for a best that was chosen beforehand it was .12 to .16.

    Parameters
    ----------
    resampled : TwoWay
    errors : mapping of str to ndarray, shape (repeats, 1 + resamples)
        Each method's mean errors (`TwoWay.parts`).
    exact : mapping of str to ndarray, optional
        Expected errors of methods that are among `errors`, in the same form. These methods are
        judged by them, not by the errors that were drawn.
    """
    errors = {name: (exact or {}).get(name, parts) for name, parts in errors.items()}
    means = {name: float(resampled.mean(parts)[0]) for name, parts in errors.items()}
    means = {name: mean for name, mean in means.items() if math.isfinite(mean)}
    if not means:
        return Best(None, frozenset(), False)
    best = min(means, key=lambda name: means[name])
    if not resampled.has_intervals:
        return Best(best, frozenset(), False)
    pairs = list(itertools.combinations(means, 2))
    differences = [resampled.difference(errors[method], errors[other]) for method, other in pairs]
    apart = _told_apart(resampled, differences, 1 - LEVEL)
    worse = {max(pair, key=means.__getitem__) for pair in itertools.compress(pairs, apart)
             if best in pair}  # fmt: skip
    return Best(best, frozenset(means) - worse, True)


def _told_apart(resampled: TwoWay, differences: Sequence[FloatArray], alpha: float) -> list[bool]:
    """Return which differences are not 0, with a chance of `alpha` for any false one.

    Each difference has a one-sided p-value for either sign. They are compared with the quantile of
    the least p-value over all resamples; those found are left out and the others are judged again
    (Romano & Wolf 2005, Econometrica 73(4): stepwise multiple testing).
    """
    from scipy import stats  # as above

    p_values, about = [], []
    for statistic in differences:
        variance, freedom = resampled.variance(statistic)
        resamples = np.split(statistic[1:], 3)[0]
        deviation = float(np.nanstd(resamples, ddof=1))
        if not variance > 0 or not deviation > 0:  # no interval, or equal in all repeats
            p_values.append(1.0)
            about.append(np.zeros(len(resamples)))
            continue
        p_values.append(2 * float(stats.t.sf(abs(statistic[0]) / math.sqrt(variance), freedom)))
        about.append(np.nan_to_num((resamples - statistic[0]) / deviation))
    if not p_values:
        return []
    sign = np.array([1 if statistic[0] >= 0 else -1 for statistic in differences])
    drawn, p = np.array(about) * sign[:, None], np.array(p_values)
    apart = np.zeros(len(p), dtype=np.bool_)
    while not apart.all():
        # For a difference that was found, only the opposite sign is still to be judged.
        largest = np.maximum(drawn[~apart].max(axis=0), -drawn.min(axis=0))
        least = 2 * float(stats.norm.sf(np.quantile(largest, 1 - alpha)))
        is_new = ~apart & (p <= least)
        if not is_new.any():
            break
        apart |= is_new
    return apart.tolist()


# Plain random sampling's exact error


def expected_random_mae(
    scores: Scores, budget: int, models: ArrayLike | None = None, seed: int = 0
) -> FloatArray:
    """Return the expected absolute error of plain random sampling, shape (models,), in [0, 1].

    The estimate is the mean of `budget` items drawn without replacement, by the items' weights in
    the full score. For right and wrong answers and a micro average the expectation is exact;
    otherwise it is the mean over `DRAWS` random subsets, the same for all models.

    Parameters
    ----------
    scores : Scores
        A model that lacks cells runs as large a share of the items drawn as it ran of all, and is
        judged by what it ran.
    budget : int
        Number of items, from 1 to all.
    models : array-like of int, optional
        Positions of the models (default: all).
    seed : int
        Seed of the subsets.

    Examples
    --------
    >>> from fewbench.scores import from_arrays
    >>> table = from_arrays([[1, 1, 0, 0], [1, 1, 1, 1]], models=["a", "b"])
    >>> expected_random_mae(table, 2).round(4).tolist()
    [0.1667, 0.0]
    """
    rows = np.arange(scores.n_models) if models is None else np.asarray(models, dtype=np.intp)
    values = scores.cells[rows]
    if budget >= scores.n_items:
        return np.zeros(len(rows))
    ran = ~np.isnan(values)
    binary = bool(((values == 0) | (values == 1) | ~ran).all())
    if not binary or not scores.counts_equally:
        return drawn_error(values, scores.item_weights, budget, seed)
    errors, sizes = np.empty(len(rows)), ran.sum(axis=1)
    for size in np.unique(sizes).tolist():
        n, of_size = max(1, round(budget * size / scores.n_items)), sizes == size
        errors[of_size] = hypergeometric_error(np.nansum(values[of_size], axis=1), n, size)
    return errors
