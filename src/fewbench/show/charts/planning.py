"""Charts of a plan: error by number of items, and by number of source models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fewbench.scores import Unit
from fewbench.show.charts import comparison, forms

RANDOM = "random"


def error_by_items(curves: Sequence[Mapping[str, Any]], target: str, unit: Unit) -> Any | None:
    """Error of the backtested methods by number of items; random sampling by its exact error.

    Parameters
    ----------
    curves : sequence of dict
        `target`, `method`, `items`, `error`, `random_error`, as in a plan's JSON.
    target : str
        The relation of targets to source models.
    unit : Unit
        How errors are printed.
    """
    rows = []
    for row in curves:
        error = row["random_error" if row["method"] == RANDOM else "error"]
        if row["target"] == target and error is not None:
            rows.append(
                {"method": row["method"], "budget": row["items"], "split": target, "mae": error}
            )
    return comparison.error_by_items(pd.DataFrame(rows), target, unit) if rows else None


def error_by_sources(learning: Mapping[str, Any], unit: Unit) -> Any | None:
    """Error by number of source models: `sources`, a list of `sources`, `error`, `low`, `high`."""
    points = [
        {"step": one["sources"], "score": one["error"], "low": one["low"], "high": one["high"]}
        for one in learning["sources"]
    ]
    shown = forms.in_unit(points, unit, ("score", "low", "high"))
    return forms.course(shown, "number of source models", unit.points_title("error"))
