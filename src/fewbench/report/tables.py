"""The headline table, and the long table with every number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from fewbench.report.identity import Look
from fewbench.report.metrics import Metric, headline, is_side_column, metric
from fewbench.report.results import Cell, Results
from fewbench.report.scales import Scale
from fewbench.report.svg import num, rule, tag
from fewbench.report.words import fixed, level_with_best, points


@dataclass(frozen=True)
class Row:
    """One method in the headline table."""

    look: Look
    badge: str
    best: bool
    reference: bool
    bar: Markup
    error: str
    spread: str
    values: list[tuple[str, str]]


@dataclass(frozen=True)
class Group:
    """The rows of one split."""

    split: str
    n_targets: int
    reference_at: str | None
    rows: list[Row]


def columns(results: Results) -> list[Metric]:
    """The headline columns that hold a number anywhere."""
    keys = [k for k in results.metrics if any(c.has(k) for c in results.cells.values())]
    return headline(keys)


def group(results: Results, budget: int, split: str, looks: Mapping[str, Look]) -> Group:
    """The rows of one split at one budget, lowest error first."""
    names = results.ranked(budget, split)
    cells = [results.at(m, budget, split) for m in names]
    _, level, judged = level_with_best(results, budget, split)
    judged = judged and sum(c.has("mae") for c in cells) > 1
    # One axis for all budgets and splits: the marks move when the budget is changed.
    tops = [c["mae_high" if c.has("mae_high") else "mae"] for c in results.cells.values()]
    high = max([t for t in tops if math.isfinite(t)], default=1.0) or 1.0
    reference = results.reference
    line = results.error(reference, budget, split) if reference else math.nan
    at = num(_bar_place(high)(line)) if math.isfinite(line) else None
    rows = []
    for cell in cells:
        badge = ""
        if judged and cell.method in level:
            badge = "lowest error" if len(level) == 1 else "among the lowest"
        if cell.method == reference:
            badge = f"reference · {badge}" if badge else "reference"
        if cell["n_repeats"] == 0:
            badge = f"{badge} · failed" if badge else "failed"
        rows.append(
            Row(
                looks[cell.method], badge, judged and cell.method in level,
                cell.method == reference, _bar(cell, high, looks[cell.method]),
                points(cell["mae"]), f"± {points(cell['mae_se'])}" if cell.has("mae_se") else "",
                [_value(cell, m) for m in columns(results)],
            )
        )  # fmt: skip
    return Group(split, max((c.n_targets for c in cells), default=0), at, rows)


def _value(cell: Cell, wanted: Metric) -> tuple[str, str]:
    """A number and, smaller, its interval where it is a ratio."""
    if not wanted.key.startswith("ratio"):
        return wanted.show(cell[wanted.key]), ""
    low, high = cell[f"{wanted.key}_low"], cell[f"{wanted.key}_high"]
    side = f"{wanted.show(low)}–{wanted.show(high)}" if low <= high else ""
    return wanted.show(cell[wanted.key]), side


BAR = 150.0


def _bar_place(high: float) -> Scale:
    return Scale(0, high, 6, BAR - 8)


def _bar(cell: Cell, high: float, look: Look) -> Markup:
    """The error as a mark on a line; the reference's line runs through the whole column."""
    x = _bar_place(high)
    pieces = [rule(x(0), 9, BAR, 9, "grid")]
    if cell.has("mae_low"):
        low, top = x.clamp(cell["mae_low"]), x.clamp(cell["mae_high"])
        pieces.append(rule(low, 9, top, 9, "interval"))
    if cell.has("mae"):
        pieces.append(look.mark(x(cell["mae"]), 9, 4))
    return tag(
        "svg", *pieces, viewBox=f"0 0 {num(BAR)} 18", width=BAR, height=18.0,
        cls=f"bar {look.cls}", aria_hidden="true", xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip


def every_number(results: Results) -> tuple[list[Metric], list[tuple[Cell, list[str]]]]:
    """All metrics of all cells, standard errors beside their means."""
    keys = [
        k
        for k in results.metrics
        if not is_side_column(k) and any(c.has(k) for c in results.cells.values())
    ]
    wanted = [metric(k) for k in keys]
    rows = []
    for split in results.splits:
        for budget in results.budgets:
            for name in results.ranked(budget, split):
                cell = results.at(name, budget, split)
                rows.append((cell, [_with_error(cell, m) for m in wanted]))
    return wanted, rows


def _with_error(cell: Cell, wanted: Metric) -> str:
    shown = wanted.show(cell[wanted.key])
    error = cell[f"{wanted.key}_se"]
    # Times carry their own units, so an error beside them would be hard to read.
    if not math.isfinite(error) or wanted.unit == "time" or shown == fixed(math.nan):
        return shown
    return f"{shown} ± {wanted.show(error)}"
