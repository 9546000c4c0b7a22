"""The metrics by name: how each is written, what it means, and which end is better."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from fewbench._names import fixed
from fewbench.report.words import percent, points, seconds


@dataclass(frozen=True)
class Metric:
    """How one column of the comparison is shown."""

    key: str
    title: str
    unit: str
    show: Callable[[float], str]
    meaning: str


def _pp(value: float) -> str:
    return points(value, 2)


def _width(value: float) -> str:
    return points(value, 1)


_KNOWN = (
    Metric("mae", "Error", "pp", _pp,
           "Mean absolute error: how far the estimates are from the true whole-benchmark scores, "
           "on average over targets, in percentage points (pp)."),
    Metric("rmse", "RMSE", "pp", _pp,
           "Root mean squared error: like the error, but large misses weigh more."),
    Metric("max_error", "Worst", "pp", _pp, "The largest miss among the targets."),
    Metric("ratio_to_random", "Ratio to random", "× error", fixed,
           "The error divided by the expected error of random sampling with the same number of "
           "items, for the same targets. Below 1 is better than random. The interval is a 90% "
           "interval by resampling repeats and models."),
    Metric("ratio_to_random_ridge", "Ratio to random + ridge", "× error", fixed,
           "The error divided by that of ridge regression on randomly drawn items: what choosing "
           "the items adds beyond the regression."),
    Metric("kendall_tau", "Kendall τ", "ranks", fixed,
           "Agreement of the estimated with the true ranking: 1 is the same order, 0 none."),
    Metric("spearman", "Spearman ρ", "ranks", fixed, "Correlation of the ranks."),
    Metric("pearson", "Pearson r", "scores", fixed, "Correlation of the scores."),
    Metric("pairwise_accuracy", "Pairs in order", "share", percent,
           "Share of target pairs whose order the estimates get right."),
    Metric("rank_mae", "Places off", "ranks", lambda v: fixed(v, 1),
           "Mean number of places between estimated and true rank."),
    Metric("task_mae", "Task error", "pp", _pp, "Mean absolute error of the per-task estimates."),
    Metric("beyond", "Beyond sources", "share", percent,
           "Share of targets whose estimate warns that they may be beyond the source models."),
    Metric("seconds_fit", "Fit", "time", seconds, "Time to choose the items from the sources."),
    Metric("seconds_predict", "Predict", "time", seconds,
           "Time to learn from the sources and estimate the targets."),
)  # fmt: skip
_BY_KEY = {m.key: m for m in _KNOWN}
HEADLINE = (
    "ratio_to_random", "ratio_to_random_ridge", "kendall_tau", "coverage", "width",
    "seconds_fit", "seconds_predict",
)  # fmt: skip


def metric(key: str) -> Metric:
    """The metric called `key`; an unknown one is shown as it is."""
    if key in _BY_KEY:
        return _BY_KEY[key]
    if found := re.fullmatch(r"(coverage|width)(\d+)", key):
        kind, level = found.groups()
        if kind == "coverage":
            return Metric(key, f"In {level}% interval", "share", percent,
                          f"Share of targets whose true score lies in the method's {level}% "
                          f"interval. {level}% is right; less means overconfident.")  # fmt: skip
        return Metric(key, f"{level}% width", "pp", _width,
                      f"Mean width of the {level}% intervals.")  # fmt: skip
    return Metric(key, key.replace("_", " "), "", lambda v: fixed(v, 3), "")


def is_side_column(key: str) -> bool:
    """Whether `key` only qualifies another metric: a spread, an interval end, a count."""
    return key.endswith(("_sd", "_se", "_low", "_high", "_repeats", "_tasks"))


def headline(keys: list[str]) -> list[Metric]:
    """The metrics of the headline table, in its order, out of those that there are."""
    return [metric(k) for wanted in HEADLINE for k in keys
            if k == wanted or re.fullmatch(rf"{wanted}\d+", k)]  # fmt: skip
