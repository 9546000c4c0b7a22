"""A comparison as plain values for charts, missing ones NaN."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pandas as pd

NAN = math.nan
_KEYS = ("method", "budget", "split")
_OWN = ("n_targets", "n_repeats", "expected_random_mae", "level_with_best")


class Comparison(Protocol):
    """What `write_report` reads; `fewbench.study` makes one."""

    @property
    def cells(self) -> pd.DataFrame:
        """One row per method, budget and split, with the metrics as columns."""

    @property
    def estimates(self) -> pd.DataFrame:
        """One row per method, budget, split, repeat and target."""

    @property
    def task_errors(self) -> pd.DataFrame:
        """One row per method, budget, split and task; may be empty."""

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts on the run."""

    @property
    def warnings(self) -> Sequence[str]:
        """Warnings about the numbers."""


@dataclass(frozen=True)
class Cell:
    """The metrics of one method at one budget on one split."""

    method: str
    budget: int
    split: str
    n_targets: int = 0
    values: Mapping[str, float] = field(default_factory=dict)

    def __getitem__(self, metric: str) -> float:
        return self.values.get(metric, NAN)

    def has(self, metric: str) -> bool:
        """Whether there is a number for `metric`."""
        return math.isfinite(self[metric])


@dataclass(frozen=True)
class Estimate:
    """One target's full score and estimate, in [0, 1]."""

    target: str
    truth: float
    value: float
    low: float
    high: float

    @property
    def misses(self) -> bool:
        """Whether an interval was given and the truth lies outside it."""
        return self.truth < self.low or self.truth > self.high


@dataclass(frozen=True)
class Results:
    """Everything the page shows, in the order of the input."""

    cells: Mapping[tuple[str, int, str], Cell]
    estimates: Mapping[tuple[str, str], Sequence[Estimate]]
    tasks: Mapping[tuple[str, str], Mapping[str, float]]
    task_sizes: Mapping[str, int]
    methods: Sequence[str]
    budgets: Sequence[int]
    splits: Sequence[str]
    metrics: Sequence[str]
    levels: Sequence[int]
    reference: str | None
    focus: int | None
    repeats: int
    failures: Sequence[str] = ()

    def at(self, method: str, budget: int, split: str) -> Cell:
        """The cell, or one without numbers."""
        return self.cells.get((method, budget, split)) or Cell(method, budget, split)

    def error(self, method: str, budget: int, split: str) -> float:
        """The error by which a method is judged: of the reference its expected one, if known."""
        cell = self.at(method, budget, split)
        exact = method == self.reference and cell.has("expected_random_mae")
        return cell["expected_random_mae" if exact else "mae"]

    def ranked(self, budget: int | None, split: str) -> list[str]:
        """Methods that were run there, lowest error first, those without one last."""
        ran = [m for m in self.methods if (m, budget, split) in self.cells]
        order = {m: i for i, m in enumerate(self.methods)}

        def key(method: str) -> tuple[bool, float, int]:
            error = self.error(method, budget or 0, split)
            return (not math.isfinite(error), error if math.isfinite(error) else 0, order[method])

        return sorted(ran, key=key)


def read(comparison: Comparison) -> Results:
    """Read the frames of a comparison."""
    frame = comparison.cells
    metrics = [str(c) for c in frame.columns if c not in (*_KEYS, *_OWN)]
    cells: dict[tuple[str, int, str], Cell] = {}
    for row in _rows(frame):
        cell = Cell(
            str(row["method"]), int(row["budget"]), str(row["split"]),
            int(_number(row.get("n_targets"), 0)),
            {m: _number(row.get(m)) for m in (*metrics, *_OWN[1:])},
        )  # fmt: skip
        cells[cell.method, cell.budget, cell.split] = cell
    methods = list(dict.fromkeys(c.method for c in cells.values()))
    budgets = sorted({c.budget for c in cells.values()})
    focus = budgets[(len(budgets) - 1) // 2] if budgets else None
    levels = [int(m[8:]) for m in metrics if re.fullmatch(r"coverage\d+", m)]
    estimates, repeats = _estimates(comparison.estimates, focus)
    tasks, sizes = _tasks(comparison.task_errors, focus)
    return Results(
        cells, estimates, tasks, sizes, methods, budgets,
        list(dict.fromkeys(c.split for c in cells.values())),
        metrics, sorted(levels), _reference(list(cells.values()), methods), focus, repeats,
        _failures(getattr(comparison, "failures", None)),
    )  # fmt: skip


def _failures(frame: pd.DataFrame | None) -> list[str]:
    """One sentence per failed method and reason."""
    said = []
    if frame is not None and len(frame):
        for (method, reason), rows in frame.groupby(["method", "reason"], sort=False):
            first = rows.iloc[0]
            where = f"{first['budget']} items, {first['split']} split, repeat {first['repeat']}"
            more = f" and {len(rows) - 1} more cells" if len(rows) > 1 else ""
            said.append(f"{method} at {where}{more}: {reason}")
    return said


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(k): v for k, v in row.items()} for row in frame.to_dict("records")]


def _number(value: Any, otherwise: float = NAN) -> float:
    return otherwise if value is None or pd.isna(value) else float(value)


def _reference(cells: Sequence[Cell], methods: Sequence[str]) -> str | None:
    """The random draw that the others are compared with: by name, else by its ratio of 1."""
    for wanted in ("random", "random sampling", "random-sampling", "random_sampling"):
        for name in methods:
            if name.lower() == wanted:
                return name
    for name in methods:
        ratios = [c["ratio_to_random"] for c in cells if c.method == name]
        if ratios and all(r == 1 for r in ratios):
            return name
    return None


def _estimates(
    frame: pd.DataFrame, focus: int | None
) -> tuple[dict[tuple[str, str], list[Estimate]], int]:
    """The first repeat at the focus budget, as in a single run."""
    found: dict[tuple[str, str], list[Estimate]] = {}
    if frame.empty or focus is None:
        return found, 0
    first = frame.groupby(["method", "budget", "split"])["repeat"].transform("min")
    for row in _rows(frame[(frame["budget"] == focus) & (frame["repeat"] == first)]):
        one = Estimate(
            str(row["target"]), _number(row["truth"]), _number(row["estimate"]),
            _number(row.get("low")), _number(row.get("high")),
        )  # fmt: skip
        if math.isfinite(one.truth) and math.isfinite(one.value):
            found.setdefault((str(row["method"]), str(row["split"])), []).append(one)
    return found, int(frame["repeat"].nunique())


def _tasks(
    frame: pd.DataFrame, focus: int | None
) -> tuple[dict[tuple[str, str], dict[str, float]], dict[str, int]]:
    found: dict[tuple[str, str], dict[str, float]] = {}
    sizes: dict[str, int] = {}
    if frame.empty or focus is None:
        return found, sizes
    for row in _rows(frame[frame["budget"] == focus]):
        task = str(row["task"])
        found.setdefault((str(row["method"]), str(row["split"])), {})[task] = _number(row["mae"])
        sizes.setdefault(task, int(_number(row.get("n_items"), 0)))
    return found, sizes
