"""The outcome of a plan: what to run, what to expect, and how sure that is."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from fewbench._files import written_whole
from fewbench._names import counted
from fewbench.errors import StudyError
from fewbench.study.learning_curve import LearningCurve
from fewbench.study.splits import SplitSettings

Target = Literal["like", "family", "stronger"]
TARGETS: dict[Target, tuple[SplitSettings, str]] = {
    "like": (SplitSettings("random"), "like the source models"),
    "family": (SplitSettings("group"), "of a new family"),
    "stronger": (SplitSettings("performance"), "stronger than all source models"),
}
"""Relations of the target to the sources: the split that imitates it, and words for it."""


@dataclass(frozen=True)
class Forecast:
    """What to expect for targets in one relation to the sources; errors on the scores' scale.

    Attributes
    ----------
    target : {"like", "family", "stronger"}
    method, items
        What to run.
    reason : str
        Why this method.
    is_better : bool
        Whether the method is clearly better than plain random sampling.
    error, error_low, error_high : float
        Expected absolute error at `items`, and its 90 % interval.
    items_low, items_high : int or None
        The numbers of items at which the ends of that interval reach what is wanted.
    half_width, coverage : float
        Mean half width of the estimates' intervals, and the share of them that held the truth.
    random_items : int
        What plain random sampling needs for the same.
    random_error : float
        What plain random sampling errs by with `items`, exactly.
    ratio, ratio_low, ratio_high : float
        Error over random sampling's; for `difference`, squared errors of differences.
    margin : float or None
        For `difference`: the smallest difference that `items` tell.
    n_targets, n_sources : int
        Of a repeat of the backtest.
    is_extrapolated : bool
        Whether `items` is above all budgets that were run.
    cost, random_cost, full_cost : float or None
        Of a run on `items`, on `random_items` and on all items, in the unit of the costs.
    breakeven, breakeven_random : int or None
        New models after which the full runs of all sources have paid, in place of full runs and
        in place of random sampling.
    """

    target: Target
    method: str
    items: int
    reason: str
    is_better: bool
    error: float
    error_low: float
    error_high: float
    items_low: int | None
    items_high: int | None
    half_width: float
    coverage: float
    random_items: int
    random_error: float
    ratio: float
    ratio_low: float
    ratio_high: float
    margin: float | None
    n_targets: int
    n_sources: int
    is_extrapolated: bool
    cost: float | None
    random_cost: float | None
    full_cost: float | None
    breakeven: int | None
    breakeven_random: int | None


@dataclass(frozen=True, eq=False)
class Plan:
    """How many items to run, with which method.

    Attributes
    ----------
    goal, wanted : str, float
        "error", "half_width", "budget" or "difference", and its value.
    level : float
        Level of the intervals.
    power : float
        For `difference`: share of such pairs that are told apart.
    forecasts : tuple of Forecast
        One for each relation of the target to the sources; the first is the one of `answer`.
    curves : DataFrame
        One row per relation, method and number of items: error with its 90 % interval, and plain
        random sampling's.
    learning : LearningCurve or None
        Error by number of sources; None if plain random sampling is the answer.
    notes : tuple of str
        What to know of these numbers.
    n_items, n_models : int
        Of the table.
    span : float
        Range of the scores' scale, in which errors are given.
    facts : dict of str
    """

    goal: str
    wanted: float
    level: float
    power: float
    forecasts: tuple[Forecast, ...]
    curves: pd.DataFrame
    learning: LearningCurve | None
    notes: tuple[str, ...]
    n_items: int
    n_models: int
    span: float
    facts: dict[str, str]

    @property
    def answer(self) -> str:
        """What to run, in a sentence, and another for stronger models."""
        first, *others = self.forecasts
        said = [f"Run {self._said(first)}"]
        said += [
            f"For a model {TARGETS[one.target][1]}, run {self._said(one)}"
            for one in others
            if one.target == "stronger"
        ]
        return " ".join(said)

    def _said(self, one: Forecast) -> str:
        d, run = self.digits, f"{counted(one.items, 'item')} with {one.method}"
        if one.items >= self.n_items:
            run = f"all {self.n_items:,} items: no part of them is enough"
        elif one.items > self.n_items / 2:
            run = f"{one.items:,} of {self.n_items:,} items with {one.method}"
        expected = f"expected error {one.error:.{d}f}"
        width = "" if math.isnan(one.half_width) else f"interval ±{one.half_width:.{d}f}"
        if self.goal == "difference":
            told = f"{self.power:.0%} of pairs that differ by {self.wanted:g} are told apart"
            return f"{run}: {told} ({expected} per model)."
        if self.goal == "half_width":
            return f"{run}: {width} at {self.level:.0%}, {expected}."
        return f"{run}: {expected}{f' ({width} at {self.level:.0%})' if width else ''}."

    @property
    def digits(self) -> int:
        """Digits after the point that errors are shown with."""
        return max(0, 3 - round(math.log10(self.span)))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per relation of the target to the sources."""
        return pd.DataFrame([asdict(one) for one in self.forecasts]).set_index("target")

    def __repr__(self) -> str:
        """Return the answer and the table."""
        columns = ["method", "items", "error", "half_width", "ratio", "random_items"]
        return f"{self.answer}\n{self.to_frame()[columns].to_string()}"

    def plot(self, target: str | None = None) -> Any:
        """Return an Altair chart of the error by number of items.

        `target` is like, family or stronger (default: that of the answer).
        """
        from fewbench.charts.planning import error_by_items

        rows = self.to_dict()["curves"]
        known = list(dict.fromkeys(row["target"] for row in rows))
        wanted = self.forecasts[0].target if target is None else target
        if wanted not in known:
            raise StudyError(f"no errors for targets {wanted!r}", hint=f"use {' or '.join(known)}")
        return error_by_items(rows, wanted, self.span)

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.answer)}</p>{self.to_frame().to_html()}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; undefined numbers are None."""
        learning = None
        if self.learning is not None:
            learning = {
                "method": self.learning.method,
                "items": self.learning.items,
                "says": self.learning.says,
                "sources": [
                    {"sources": n, "error": e.value * self.span}
                    | {"low": e.low * self.span, "high": e.high * self.span}
                    for n, e in zip(self.learning.sources, self.learning.errors, strict=True)
                ],
            }
        made = {
            "answer": self.answer,
            "goal": self.goal,
            "wanted": self.wanted,
            "level": self.level,
            "power": self.power,
            "forecasts": [asdict(one) for one in self.forecasts],
            "curves": self.curves.to_dict("records"),
            "learning": learning,
            "notes": list(self.notes),
            "facts": self.facts,
        }
        return dict(_plain(made))

    def to_json(self) -> str:
        """Return the plan as indented JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def save_json(self, path: str | os.PathLike[str]) -> None:
        """Write `to_json` to a file, whole or not at all."""
        with written_whole(Path(path)) as temporary:
            temporary.write_text(self.to_json() + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    """Return values for JSON: no NaN, no numpy numbers."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value
