"""The page of a plan: what to run, what to expect, and the errors it rests on."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, Protocol

from fewbench._page import Page, Section, Table
from fewbench.charts import planning as figures
from fewbench.charts import theme
from fewbench.report.frame import write_page
from fewbench.report.sections import render

TARGETS = {
    "like": "Like the source models",
    "family": "Of a new family",
    "stronger": "Stronger than all source models",
}


class Planned(Protocol):
    """Anything that gives a plan as plain values, as `fewbench plan --json` prints it."""

    @property
    def digits(self) -> int:
        """Digits after the point that errors are shown with."""

    @property
    def span(self) -> float:
        """Range of the scores' scale."""

    def to_dict(self) -> dict[str, Any]:
        """Return `answer`, `forecasts`, `curves`, `learning`, `notes` and `facts`."""


def write_plan(plan: Planned, path: str | os.PathLike[str], source: str = "") -> Path:
    """Write a plan as one HTML file that needs nothing else.

    Parameters
    ----------
    plan : Planned
        What `fewbench.plan` returned.
    path : str or os.PathLike
        An existing file is replaced only once the new one is complete.
    source : str
        The name of the scores, for the title.

    Returns
    -------
    Path
        The file that was written.
    """
    return write_page(render(page(plan, source)), path)


def page(plan: Planned, source: str = "") -> Page:
    """What a plan shows."""
    made, digits = plan.to_dict(), plan.digits

    def fixed(value: float | None) -> str:
        return "–" if value is None else f"{value:.{digits}f}"

    def between(low: float | None, high: float | None) -> str:
        return "" if low is None or low == high else f"{fixed(low)}–{fixed(high)}"

    curves, learning = made["curves"], made["learning"]
    rows = [
        [
            TARGETS[one["target"]], one["method"], f"{one['items']:,}", fixed(one["error"]),
            between(one["error_low"], one["error_high"]),
            "–" if one["half_width"] is None else f"±{fixed(one['half_width'])}",
            f"{one['random_items']:,}", one["reason"],
        ]
        for one in made["forecasts"]
    ]  # fmt: skip
    head = [("Target model", False), ("Method", False), ("items", True), ("error", True),
            ("range", True), ("interval", True), ("random needs", True),
            ("Because", False)]  # fmt: skip
    first = made["forecasts"][0]
    start = f"fewbench start {quote(source or 'SCORES')} --method {quote(first['method'])} "
    start += f"--budget {first['items']} -o DIR"
    sections = [
        Section(
            "run", "What to run",
            ["By how the target model stands to the source models. The range of the error is its "
             "90% interval over repeats and models of the backtest. The interval is the mean half "
             "width of an estimate’s interval."],
            tables=[Table("What to run", head, rows)],
            commands=[start],
        ),
        Section(
            "items", "Error and items",
            ["Mean absolute error of the methods that were backtested, in percentage points of the "
             "scores’ range, by number of items. Random sampling’s error is exact."],
            charts=[
                (TARGETS[target], partial(figures.error_by_items, curves, target, plan.span))
                for target in dict.fromkeys(row["target"] for row in curves)
            ],
        ),
    ]  # fmt: skip
    if learning is not None:
        counts = [
            [f"{one['sources']:,}", fixed(one["error"]), between(one["low"], one["high"])]
            for one in learning["sources"]
        ]
        head = [("Source models", False), ("error", True), ("range", True)]
        sections.append(
            Section(
                "sources", "Number of source models",
                [f"Error of {learning['method']} with {learning['items']} items."],
                learning["says"],
                charts=[("", partial(figures.error_by_sources, learning))],
                tables=[Table("Number of source models", head, counts)],
            )
        )  # fmt: skip
    notes = [note[0].upper() + note[1:] + "." for note in made["notes"]]
    facts = {key.capitalize(): value for key, value in made["facts"].items()}
    sections.append(Section("notes", "What to know", lines=notes))
    sections.append(Section("facts", "What was run", facts=facts))
    names = list(dict.fromkeys(row["method"] for row in curves))
    look = theme.looks(names, figures.RANDOM if figures.RANDOM in names else None)
    return Page(
        "plan",
        f"Plan for {source}" if source else "Plan of an evaluation",
        made["answer"],
        sections=[one for one in sections if one.id != "items" or curves],
        methods=list(look.values()),
    )
