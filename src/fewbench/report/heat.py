"""Tables whose cells are shaded: errors per task, and the top of the ranking."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fewbench.charts.theme import Look
from fewbench.report.results import Results
from fewbench.report.words import points, tick

TOP = 10


@dataclass(frozen=True)
class Shade:
    """One cell: what it says and how strongly it is shaded, from 0 to 1."""

    words: str
    heat: float
    strong: bool = False


@dataclass(frozen=True)
class HeatTable:
    """Rows of shaded cells under one column per method."""

    corner: str
    side: str
    looks: list[Look]
    rows: list[tuple[str, str, list[Shade]]]

    @property
    def widest(self) -> int:
        """Length of the longest row name."""
        return max(len(name) for name, _, _ in self.rows)


def places(values: Sequence[float]) -> list[float]:
    """Places from the highest down, equal values sharing the mean of their places.

    >>> places([0.2, 0.9, 0.2])
    [2.5, 1.0, 2.5]
    """
    order = sorted(values, reverse=True)
    first = {v: i for i, v in reversed(list(enumerate(order, 1)))}
    last = {v: i for i, v in enumerate(order, 1)}
    return [(first[v] + last[v]) / 2 for v in values]


def task_table(
    results: Results, split: str, order: Sequence[str], looks: Mapping[str, Look]
) -> HeatTable | None:
    """Error of every method on every task, the hardest tasks first; None below two tasks."""
    errors = {m: results.tasks[m, split] for m in order if (m, split) in results.tasks}
    tasks = list(dict.fromkeys(t for row in errors.values() for t in row))
    if len(tasks) < 2:
        return None

    def mean(task: str) -> float:
        seen = [row[task] for row in errors.values() if math.isfinite(row.get(task, math.nan))]
        return sum(seen) / len(seen) if seen else -1.0

    tasks.sort(key=lambda t: (-mean(t), t))
    # Every split shares the scale, so that a shade means the same error everywhere.
    every = [v for row in results.tasks.values() for v in row.values() if math.isfinite(v)]
    high = max(every, default=0.0) or 1.0
    rows = []
    for task in tasks:
        values = [row.get(task, math.nan) for row in errors.values()]
        shades = [Shade(points(v, 1), v / high if math.isfinite(v) else 0.0) for v in values]
        size = results.task_sizes.get(task, 0)
        rows.append((task, f"{size:,}" if size else "–", shades))
    return HeatTable("Task", "items", [looks[m] for m in errors], rows)


def top_table(
    results: Results, split: str, order: Sequence[str], looks: Mapping[str, Look]
) -> HeatTable | None:
    """The targets that are truly best, and the place each method gives them."""
    given = {m: results.estimates[m, split] for m in order if (m, split) in results.estimates}
    if not given:
        return None
    truth = {e.target: e.truth for row in given.values() for e in row}
    best = sorted(truth, key=lambda t: (-truth[t], t))[:TOP]
    place = {
        m: dict(zip((e.target for e in row), places([e.value for e in row]), strict=True))
        for m, row in given.items()
    }
    rows = []
    for i, target in enumerate(best, 1):
        shades = []
        for found in place.values():
            at = found.get(target, math.nan)
            moved = abs(at - i) if math.isfinite(at) else 0.0
            # Shading grows with the logarithm: off by 2 and off by 4 differ more than 22 and 24.
            heat = min(math.log1p(moved) / math.log1p(30), 1.0)
            shades.append(Shade(tick(at) if math.isfinite(at) else "–", heat, moved < 1))
        rows.append((f"{i}  {target}", points(truth[target], 1), shades))
    return HeatTable("Truly best", "true %", [looks[m] for m in given], rows)
