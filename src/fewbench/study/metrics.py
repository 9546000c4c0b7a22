"""The table of metrics: what judges a method's estimates against the truth over targets.

Arrays have shape (targets,), values are in [0, 1] and 1 is best (notation as in the documentation).
A metric is NaN where it is not defined, such as a rank correlation of one target or of equal
estimates. Weights say how often each target counts, for resampling.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, get_args

import numpy as np

from fewbench._names import did_you_mean
from fewbench._types import FloatArray
from fewbench.algorithms import ties
from fewbench.errors import StudyError
from fewbench.uncertainty.bounds import EXACT, ranks_among

TOP = 10
TIED = 1.5 * 10.0**-EXACT
"""Scores nearer than this are equal up to rounding."""
OF_TASKS = "task_"
"""Prefix of a metric of each task, averaged over tasks."""
INTERVALS = re.compile(r"(coverage|half_width)([\d.]+)")
MetricUnit = Literal["score", "ratio", "share", "correlation", "rank", "s", "items"]


@dataclass(frozen=True)
class TargetScores:
    """Targets' true and estimated scores, and what several metrics are made of.

    Parameters
    ----------
    truth, estimate : ndarray, shape (targets,)
    sources : ndarray, shape (sources,)
        Full scores of the sources, for the ranks of targets.
    weights : ndarray, shape (rows, targets)
        How often each target counts, a whole number.
    """

    truth: FloatArray
    estimate: FloatArray
    sources: FloatArray
    weights: FloatArray

    @cached_property
    def error(self) -> FloatArray:
        """Absolute errors, shape (targets,)."""
        return np.abs(self.estimate - self.truth)

    @cached_property
    def true_rank(self) -> FloatArray:
        """Each target's rank among the sources, by its true score."""
        return ranks_among(self.sources, self.truth)

    @cached_property
    def rank_error(self) -> FloatArray:
        """Absolute differences of true and estimated rank, shape (targets,)."""
        return np.abs(self.true_rank - ranks_among(self.sources, self.estimate))

    @cached_property
    def correlations(self) -> dict[str, FloatArray]:
        """Correlations and the share of pairs in order, shape (rows,) each."""
        return weighted_correlations(self.truth, self.estimate, self.weights)

    def mean(self, values: FloatArray) -> FloatArray:
        """Return the mean over the targets, shape (rows,)."""
        return _over(self.weights @ values, self.weights.sum(axis=1))

    def mean_of_best(self, values: FloatArray) -> FloatArray:
        """Return the mean weighted by 1 / true rank, shape (rows,)."""
        weights = self.weights / self.true_rank
        return _over(weights @ values, weights.sum(axis=1))


@dataclass(frozen=True)
class Metric:
    """A number that judges a method.

    Parameters
    ----------
    title : str
    unit : str
        "score": a difference of scores, which is shown on the scale of the scores; "ratio" of two
        of these; "share" (0 to 1, shown in percent); "correlation" (-1 to 1); "rank"; "s"; "items".
    meaning : str
    function : callable, optional
        Returns the metric of `TargetScores`, shape (rows,). None for what is measured otherwise.

    Raises
    ------
    StudyError
        For an unknown unit.
    """

    title: str
    unit: MetricUnit
    meaning: str
    function: Callable[[TargetScores], FloatArray] | None = None

    def __post_init__(self) -> None:
        if self.unit not in (units := get_args(MetricUnit)):
            raise StudyError(
                f"metric {self.title!r} has the unknown unit {self.unit!r}",
                hint=f"use one of {', '.join(units)}",
            )

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest possible value."""
        low = -1.0 if self.unit == "correlation" else 0.0
        return low, 1.0 if self.unit in ("correlation", "share") else math.inf


def point_metrics(truth: FloatArray, estimate: FloatArray, sources: FloatArray) -> dict[str, float]:
    """Return every metric of point estimates.

    Parameters
    ----------
    truth, estimate : ndarray, shape (targets,)
    sources : ndarray, shape (sources,)
        Full scores of the sources, for the ranks of targets.

    Examples
    --------
    >>> m = point_metrics(np.array([0.2, 0.6]), np.array([0.3, 0.6]), np.array([0.25, 0.9]))
    >>> round(m["mae"], 3), m["kendall_tau"], m["rank_mae"]
    (0.05, 1.0, 0.5)
    """
    once = weighted_metrics(truth, estimate, sources, np.ones((1, len(truth))))
    return {name: float(values[0]) for name, values in once.items()}


def weighted_metrics(
    truth: FloatArray, estimate: FloatArray, sources: FloatArray, weights: FloatArray
) -> dict[str, FloatArray]:
    """Return every metric of point estimates for each row of weights, shape (rows,).

    `weights` has shape (rows, targets) and says how often each target counts, a whole number.
    """
    # Equal scores must tie in spite of rounding.
    truth, estimate, sources = (np.round(scores, EXACT) for scores in (truth, estimate, sources))
    targets = TargetScores(truth, estimate, sources, weights)
    functions = {name: metric.function for name, metric in METRICS.items()}
    return {name: compute(targets) for name, compute in functions.items() if compute is not None}


def weighted_correlations(
    truth: FloatArray, estimate: FloatArray, weights: FloatArray
) -> dict[str, FloatArray]:
    """Return correlations and the share of pairs in order, for each row of weights."""
    true, guessed = _signs(truth), _signs(estimate)
    differ, apart, agree = (
        ((weights @ pairs) * weights).sum(axis=1)
        for pairs in (np.abs(true), np.abs(guessed), true * guessed)
    )
    varied = (differ > 0) & (apart > 0)
    return {
        # Kendall's tau-b, ties counted as the field does.
        "kendall_tau": np.where(varied, _over(agree, np.sqrt(differ * apart)), np.nan),
        # Ranks minus their mean are sums of signs; ties share their mean rank.
        "spearman": np.where(varied, _pearson(weights @ true, weights @ guessed, weights), np.nan),
        "pearson": np.where(varied, _pearson(truth, estimate, weights), np.nan),
        # Equal estimates count half.
        "pairwise_accuracy": _over((differ + agree) / 2, differ),
    }


def kendall_tau(a: FloatArray, b: FloatArray) -> float:
    """Return Kendall's tau-b, NaN if either is constant."""
    return float(weighted_correlations(a, b, np.ones((1, len(a))))["kendall_tau"][0])


def pearson(a: FloatArray, b: FloatArray) -> float:
    """Return Pearson's correlation, NaN if either is constant."""
    return float(weighted_correlations(a, b, np.ones((1, len(a))))["pearson"][0])


def _pearson(a: FloatArray, b: FloatArray, weights: FloatArray) -> FloatArray:
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        x, y = (v - (weights * v).sum(axis=1, keepdims=True) / total for v in (a, b))
    both = (weights * x * y).sum(axis=1)
    return _over(both, np.sqrt((weights * x * x).sum(axis=1) * (weights * y * y).sum(axis=1)))


def top_recall(
    truth: FloatArray, estimate: FloatArray, sources: FloatArray, weights: FloatArray, k: int
) -> FloatArray:
    """Share of the true best k of sources and targets that the estimates find."""
    counts = _with_sources(sources, weights)
    most = np.minimum(k, counts.sum(axis=1))[:, None]

    def best(targets: FloatArray) -> FloatArray:
        order = ties.argsort(-np.concatenate([sources, targets]))
        sorted_counts = counts[:, order]
        before = np.cumsum(sorted_counts, axis=1) - sorted_counts
        taken = np.empty_like(counts)
        taken[:, order] = np.clip(most - before, 0, sorted_counts)
        return taken

    both = np.minimum(best(truth), best(estimate)).sum(axis=1)
    return np.where(weights.any(axis=1), _over(both, most[:, 0]), np.nan)


def _ndcg(
    truth: FloatArray, estimate: FloatArray, sources: FloatArray, weights: FloatArray
) -> FloatArray:
    """Normalized discounted cumulative gain of the whole list; gains are the true scores."""
    counts = _with_sources(sources, weights)
    gains = np.concatenate([sources, truth])
    length = int(counts.sum(axis=1).max())
    discounts = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(length) + 2))])

    def gain(targets: FloatArray) -> FloatArray:
        order = ties.argsort(-np.concatenate([sources, targets]))
        last = np.cumsum(counts[:, order], axis=1).astype(np.intp)
        first = np.concatenate([np.zeros((len(last), 1), np.intp), last[:, :-1]], axis=1)
        return np.asarray((discounts[last] - discounts[first]) @ gains[order])

    return np.where(weights.any(axis=1), _over(gain(estimate), gain(truth)), np.nan)


def _with_sources(sources: FloatArray, weights: FloatArray) -> FloatArray:
    """Return how often each source (once) and target counts, shape (rows, both)."""
    return np.concatenate([np.ones((len(weights), len(sources))), weights], axis=1)


def _signs(values: FloatArray) -> FloatArray:
    """Return the sign of each pair's difference, 0 if equal up to rounding."""
    gaps = values[:, None] - values
    return np.where(np.abs(gaps) < TIED, 0.0, np.sign(gaps))


def _over(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)


def nrmse(estimate: FloatArray, truth: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Return root mean square errors over root mean squares of the truth, by the last axis.

    NaN if all of the truth is 0.

    Parameters
    ----------
    estimate : ndarray, shape (targets,) or (estimates, targets)
    truth : ndarray, shape (targets,)
    weights : ndarray, shape (rows, targets), optional
        How often each target counts; of one estimate, the result then has shape (rows,).

    Examples
    --------
    >>> nrmse(np.array([0.5, 0.7]), np.array([0.6, 0.8])).round(3).item()
    0.141
    """
    weights = np.ones_like(truth) if weights is None else weights
    return np.sqrt(_over((estimate - truth) ** 2 @ weights.T, truth**2 @ weights.T))


def _max_error(targets: TargetScores) -> FloatArray:
    largest = np.where(targets.weights > 0, targets.error, 0.0).max(axis=1)
    return np.where(targets.weights.any(axis=1), largest, np.nan)


def _correlation(name: str, targets: TargetScores) -> FloatArray:
    return targets.correlations[name]


METRICS = {
    "mae": Metric(
        "Error",
        "score",
        "Mean absolute error: how far the estimates are from the true full scores, on average "
        "over targets.",
        lambda targets: targets.mean(targets.error),
    ),
    "rmse": Metric(
        "RMSE",
        "score",
        "Root mean squared error: large errors weigh more.",
        lambda targets: np.sqrt(targets.mean(targets.error**2)),
    ),
    "nrmse": Metric(
        "NRMSE",
        "ratio",
        "RMSE divided by the root mean square of the true scores.",
        lambda targets: nrmse(targets.estimate, targets.truth, targets.weights),
    ),
    "max_error": Metric("Worst", "score", "The largest error among the targets.", _max_error),
    "kendall_tau": Metric(
        "Kendall τ",
        "correlation",
        "Agreement of the estimated with the true ranking: 1 is the same order, 0 none.",
        partial(_correlation, "kendall_tau"),
    ),
    "spearman": Metric(
        "Spearman ρ", "correlation", "Correlation of the ranks.", partial(_correlation, "spearman")
    ),
    "pearson": Metric(
        "Pearson r", "correlation", "Correlation of the scores.", partial(_correlation, "pearson")
    ),
    "pairwise_accuracy": Metric(
        "Pairs in order",
        "share",
        "Share of target pairs whose order the estimates get right.",
        partial(_correlation, "pairwise_accuracy"),
    ),
    "rank_mae": Metric(
        "Rank error",
        "rank",
        "Mean absolute difference of estimated and true rank.",
        lambda targets: targets.mean(targets.rank_error),
    ),
    "weighted_mae": Metric(
        "Error of the best",
        "score",
        "Mean absolute error, with a weight of 1 / true rank for each target.",
        lambda targets: targets.mean_of_best(targets.error),
    ),
    "weighted_rank_mae": Metric(
        "Rank error of the best",
        "rank",
        "Rank error, with a weight of 1 / true rank for each target.",
        lambda targets: targets.mean_of_best(targets.rank_error),
    ),
    "top10_recall": Metric(
        f"Best {TOP} found",
        "share",
        f"Share of the true best {TOP} of sources and targets that the estimates find.",
        lambda targets: top_recall(
            targets.truth, targets.estimate, targets.sources, targets.weights, TOP
        ),
    ),
    "ndcg": Metric(
        "NDCG",
        "share",
        "Normalized discounted cumulative gain of the list of sources and targets.",
        lambda targets: _ndcg(targets.truth, targets.estimate, targets.sources, targets.weights),
    ),
    "expected_random_mae": Metric(
        "Expected error of random sampling",
        "score",
        "Expected error of random sampling with the same number of items, for the same targets.",
    ),
    "ratio_to_random": Metric(
        "Ratio to random",
        "ratio",
        "The error divided by the expected error of random sampling with the same number of items, "
        "for the same targets. Below 1 is better than random.",
    ),
    "ratio_to_random_ridge": Metric(
        "Ratio to random-ridge",
        "ratio",
        "The error divided by that of ridge regression on random items: what choosing the items "
        "adds.",
    ),
    "task_mae": Metric("Task error", "score", "Mean absolute error of the per-task estimates."),
    "sampled": Metric(
        "Sampled", "share", "Share of targets whose interval rests on a random sample of items."
    ),
    "outside": Metric(
        "Outside range",
        "share",
        "Share of targets whose estimate warns that they may be outside the range of the source "
        "models.",
    ),
    "items_run": Metric("Items run", "items", "Mean number of items that were run."),
    "seconds_fit": Metric("Fit", "s", "Time to choose the items from the sources."),
    "seconds_predict": Metric(
        "Predict", "s", "Time to learn from the sources and estimate the targets."
    ),
}
"""Every metric by its name; those of tasks and of intervals are found by `find_metric`."""


def find_metric(name: str) -> Metric:
    """Return a metric, also of tasks (`task_rmse`) or intervals (`coverage90`, `half_width90`).

    Raises
    ------
    StudyError
        If it is not in the table, so that nobody guesses its unit.

    Examples
    --------
    >>> find_metric("task_rmse").unit, find_metric("coverage90").range
    ('score', (0.0, 1.0))
    >>> find_metric("half_width90").title
    '90% half width'
    """
    if of_intervals := INTERVALS.fullmatch(name):
        kind, level = of_intervals.groups()
        if kind == "half_width":
            return Metric(
                f"{level}% half width", "score", f"Mean half width of the {level}% intervals."
            )
        return Metric(
            f"In {level}% interval",
            "share",
            f"Share of targets whose true score lies in the method's {level}% interval. {level}% "
            "is right; less means overconfident.",
        )
    if name in METRICS:
        return METRICS[name]
    plain = name.removeprefix(OF_TASKS)
    if plain not in METRICS:
        raise StudyError(
            f"unknown metric {name!r}",
            hint=did_you_mean(
                name,
                [
                    *METRICS,
                    *(f"{OF_TASKS}{metric}" for metric in METRICS if METRICS[metric].function),
                ],
                f"use one of {', '.join(METRICS)}, or {OF_TASKS} before a name",
            ),
            kind="unknown",
        )
    return METRICS[plain]
