"""The page of a plan: what to run, what to expect, and the errors it rests on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from markupsafe import Markup

from fewbench.report.frame import render_page, write_page
from fewbench.report.identity import looks
from fewbench.report.lines import error_lines
from fewbench.report.results import Cell, Results

RANDOM = "random"
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
    made, digits = plan.to_dict(), plan.digits

    def fixed(value: float | None) -> str:
        return "–" if value is None else f"{value:.{digits}f}"

    def between(low: float | None, high: float | None) -> str:
        return "" if low is None or low == high else f"{fixed(low)}–{fixed(high)}"

    learning = made["learning"]
    page = render_page(
        "plan.html.j2",
        title=f"Plan for {source}" if source else "Plan of an evaluation",
        answer=made["answer"],
        rows=[
            {
                "target": TARGETS[one["target"]],
                "method": one["method"],
                "items": f"{one['items']:,}",
                "error": fixed(one["error"]),
                "range": between(one["error_low"], one["error_high"]),
                "width": "–" if one["half_width"] is None else f"±{fixed(one['half_width'])}",
                "random": f"{one['random_items']:,}",
                "reason": one["reason"],
            }
            for one in made["forecasts"]
        ],
        pictures=[
            (TARGETS[target], picture)
            for target in dict.fromkeys(row["target"] for row in made["curves"])
            if (picture := _picture(made["curves"], target, plan.span)) is not None
        ],
        learning=None
        if learning is None
        else {
            "says": learning["says"],
            "method": learning["method"],
            "items": learning["items"],
            "rows": [
                (f"{one['sources']:,}", fixed(one["error"]), between(one["low"], one["high"]))
                for one in learning["sources"]
            ],
        },
        notes=[note[0].upper() + note[1:] + "." for note in made["notes"]],
        facts={key.capitalize(): value for key, value in made["facts"].items()},
    )
    return write_page(page, path)


def _picture(curves: Sequence[Mapping[str, Any]], target: str, span: float) -> Markup | None:
    """Draw error against items of one relation; random sampling by its exact error."""
    rows = [row for row in curves if row["target"] == target]
    cells = {}
    for row in rows:
        error = row["random_error" if row["method"] == RANDOM else "error"]
        if error is not None:
            values = {"mae": error / span, "expected_random_mae": row["random_error"] / span}
            key = (row["method"], row["items"], target)
            cells[key] = Cell(*key, values=values)
    methods = list(dict.fromkeys(method for method, _, _ in cells))
    budgets = sorted({items for _, items, _ in cells})
    if not budgets:
        return None
    reference = RANDOM if RANDOM in methods else None
    results = Results(
        cells, {}, {}, {}, methods, budgets, [target], ["mae"], [], reference,
        budgets[len(budgets) // 2], 0,
    )  # fmt: skip
    return error_lines(results, target, looks(methods, reference))
