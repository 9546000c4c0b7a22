"""Checks of a score table: each failure names the model or item and says what to do."""

from typing import Any

import numpy as np
import pandas as pd

from fewbench._names import some
from fewbench._types import FloatArray
from fewbench.errors import ScoresError


def check_values(values: FloatArray, models: "pd.Index[Any]", items: "pd.Index[Any]") -> None:
    """Raise ScoresError unless values fit the labels, are in [0, 1] or NaN, and none is empty."""
    if values.ndim != 2 or values.shape != (len(models), len(items)):
        raise ScoresError(
            f"scores have shape {values.shape}, but there are {len(models)} models "
            f"and {len(items)} items",
            hint="rows are models, columns are items",
        )
    if values.size == 0:
        raise ScoresError(f"no scores: {len(models)} models and {len(items)} items")
    if np.isinf(values).any():
        row, column = np.argwhere(np.isinf(values))[0]
        raise ScoresError(
            f"model {models[row]!r} has an infinite score on item {items[column]!r}",
            hint="leave the cell empty if the item was not run",
        )
    outside = (values < 0) | (values > 1)
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise ScoresError(
            f"{int(outside.sum())} scores lie outside the stated range, first: model "
            f"{models[row]!r}, item {items[column]!r}",
            hint="correct them; or state the range of the scores where they are imported, as in "
            "--range 0,100 or Scale(0, 100)",
        )
    answered = ~np.isnan(values)
    empty = ~answered.any(axis=1)
    if empty.any():
        names = some(models[np.flatnonzero(empty)])
        raise ScoresError(
            f"{int(empty.sum())} models have no answer at all: {names}", hint="leave them out"
        )
    empty = ~answered.any(axis=0)
    if empty.any():
        names = some(items[np.flatnonzero(empty)])
        raise ScoresError(
            f"{int(empty.sum())} items were answered by no model: {names}", hint="leave them out"
        )


def check_labels(labels: "pd.Index[Any]", kind: str) -> None:
    """Raise ScoresError unless the labels are unique, non-empty strings."""
    bad = _not_text(labels)
    if bad:
        raise ScoresError(
            f"{len(bad)} {kind} ids are empty or not text: {some(bad)}",
            hint=f"every {kind} needs a name",
        )
    if not labels.is_unique:
        twice = labels[labels.duplicated()].unique()
        raise ScoresError(
            f"{len(twice)} {kind} ids appear more than once: {some(twice)}",
            hint=f"give every {kind} an id of its own",
        )


def check_tasks(tasks: "pd.Series[Any]") -> None:
    """Raise ScoresError unless every item has a task."""
    if _not_text(tasks):
        bad = [item for item, task in tasks.items() if _not_text([task])]
        raise ScoresError(f"{len(bad)} items have no task: {some(bad)}", hint="name one for each")


def _not_text(values: Any) -> list[object]:
    distinct = set(np.asarray(values, dtype=object).tolist())
    return [value for value in distinct if not isinstance(value, str) or not value.strip()]
