"""The two pictures made of dot rows: error relative to random, and interval coverage."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from fewbench.report.dotrows import Axis, Dot, dot_rows
from fewbench.report.identity import Look
from fewbench.report.results import Results
from fewbench.report.words import fixed, percent, tick

Rows = list[tuple[Look, list[Dot]]]


def ratio_rows(
    results: Results, split: str, order: Sequence[str], looks: Mapping[str, Look]
) -> Markup | None:
    """Each method's error as a share of random sampling's, or None without one."""

    def rows(where: str) -> Rows:
        others = [m for m in order if m != results.reference]
        return _rows(results, where, others, looks, "ratio_to_random")

    mine = rows(split)
    every = [d for s in results.splits for _, dots in rows(s) for d in dots]
    values = [d.value for d in every]
    if not mine or not values:
        return None
    # One very wide interval must not squeeze all the others: it is cut at the frame.
    widest = max([*(d.high for d in every if math.isfinite(d.high)), *values])
    high = max(1.2, min(widest, 1.6 * max(values)) * 1.02)
    log = high > 4
    low = min(0.1, *values) * 0.9 if log else 0.0
    axis = Axis(low, high, 1.0, "random", fixed, tick, "← better than random", "worse →",
                log=log)  # fmt: skip
    return dot_rows(mine, axis, f"Error relative to random sampling, {split} split")


def coverage_rows(
    results: Results, split: str, level: int, order: Sequence[str], looks: Mapping[str, Look]
) -> Markup | None:
    """How often each method's intervals held the truth, or None where there are none."""
    metric = f"coverage{level}"
    mine = _rows(results, split, order, looks, metric)
    every = [
        d.value
        for s in results.splits
        for _, dots in _rows(results, s, order, looks, metric)
        for d in dots
    ]
    if not mine:
        return None
    low = math.floor(min([*every, level / 100 - 0.2]) * 10) / 10
    axis = Axis(max(low, 0.0), 1.0, level / 100, f"stated {level}%", percent, percent,
                "← too narrow", "too wide →")  # fmt: skip
    return dot_rows(mine, axis, f"Share of {level}% intervals that held the truth, {split} split")


def _rows(
    results: Results,
    split: str,
    order: Sequence[str],
    looks: Mapping[str, Look],
    metric: str,
) -> Rows:
    found: Rows = []
    for method in order:
        dots = []
        for budget in results.budgets:
            cell = results.at(method, budget, split)
            if not cell.has(metric):
                continue
            low, high = cell[f"{metric}_low"], cell[f"{metric}_high"]
            dots.append(Dot(budget, cell[metric], low, high))
        if dots:
            found.append((looks[method], dots))
    return found
