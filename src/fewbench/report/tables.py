"""The headline table, and the long table with every number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fewbench._names import fixed
from fewbench.charts.theme import Look
from fewbench.report.metrics import Metric, headline, is_side_column, metric
from fewbench.report.results import Cell, Results
from fewbench.report.words import level_with_best, points


@dataclass(frozen=True)
class Bar:
    """Where an error and its interval lie on the axis of the table, in percent; None if unknown."""

    at: str | None
    low: str = "0"
    width: str = "0"


@dataclass(frozen=True)
class Row:
    """One method in the headline table."""

    look: Look
    badge: str
    best: bool
    reference: bool
    bar: Bar
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
    at = _share(line, high) if math.isfinite(line) else None
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
                cell.method == reference, _bar(cell, high),
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


def _share(value: float, high: float) -> str:
    """A place on the axis in percent, with a little room at its ends for the marks."""
    return f"{4 + 91 * min(max(value / high, 0.0), 1.0):.1f}"


def _bar(cell: Cell, high: float) -> Bar:
    if not cell.has("mae"):
        return Bar(None)
    at = _share(cell["mae"], high)
    if not cell.has("mae_low"):
        return Bar(at)
    low, top = _share(cell["mae_low"], high), _share(cell["mae_high"], high)
    return Bar(at, low, f"{float(top) - float(low):.1f}")


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


MOST_MODELS = 400


def every_model(
    results: Results, split: str, order: Sequence[str]
) -> tuple[str, list[str], list[list[str]]] | None:
    """A name, the methods, and a row per target: its true score and each method's estimate.

    Of very many targets, the first `MOST_MODELS` by true score; None without any.
    """
    given = {m: results.estimates[m, split] for m in order if (m, split) in results.estimates}
    truth = {e.target: e.truth for row in given.values() for e in row}
    found = {m: {e.target: e for e in row} for m, row in given.items()}
    rows = []
    for target in sorted(truth, key=lambda t: (-truth[t], t))[:MOST_MODELS]:
        cells = [target, points(truth[target], 1)]
        for mine in found.values():
            one = mine.get(target)
            missed = " ✗" if one is not None and one.misses else ""
            cells.append("–" if one is None else points(one.value, 1) + missed)
        rows.append(cells)
    return (f"models-{list(results.splits).index(split)}", list(given), rows) if rows else None
