"""The outcome of a study: tidy tables, warnings and facts."""

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewbench._files import written_whole
from fewbench.errors import StudyError
from fewbench.scores import Scale, Scores
from fewbench.study.cell import Cell, CellResult
from fewbench.study.paired import Difference, error_difference, error_ratio

REFERENCES = ("random", "random-ridge")
ERRORS = ("mae", "rmse", "max_error", "weighted_mae")  # on the scores' own scale in JSON
BESIDE = ("_sd", "_se", "_low", "_high")  # columns that qualify the one they are named after
KEYS = ["method", "budget", "split"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods compared on models whose truth is known.

    Attributes
    ----------
    cells : DataFrame
        One row a method, budget and split: `n_targets`, and for each metric its mean over the
        repeats, its standard deviation over them (`…_sd`: how far one run may lie from the mean)
        and its standard error (`…_se`: how sure the mean is). `ratio_to_random` and
        `ratio_to_random_ridge` are ratios of mean absolute errors with a 90 % interval (`…_low`,
        `…_high`) by a paired bootstrap over targets. Scores are in [0, 1].
    repeats : DataFrame
        One row a method, budget, split and repeat: every metric, for paired comparisons.
    estimates : DataFrame
        One row a method, budget, split, repeat and target: truth, estimate, low, high.
    task_errors : DataFrame
        One row a method, budget, split and task: mean absolute error and number of items.
    facts : dict of str
        What was run.
    warnings : list of str
        What to know before trusting the numbers.
    """

    cells: pd.DataFrame
    repeats: pd.DataFrame
    estimates: pd.DataFrame
    task_errors: pd.DataFrame
    facts: dict[str, str]
    warnings: list[str]
    scale: Scale
    seed: int

    def paired(self, method: str, other: str, budget: int, split: str | None = None) -> Difference:
        """Compare two methods' errors on the same targets (negative: `method` is better)."""
        chosen = self.estimates[self.estimates["budget"] == budget]
        if split is not None:
            chosen = chosen[chosen["split"] == split]
        elif chosen["split"].nunique() > 1:
            raise StudyError("which split?", hint=f"one of {', '.join(chosen['split'].unique())}")
        one, two = (_errors(chosen[chosen["method"] == name]) for name in (method, other))
        if one.empty or two.empty:
            raise StudyError(f"{method!r} and {other!r} at {budget} items are not both here")
        return error_difference(one, two, self.seed)

    def to_json(self) -> str:
        """Return cells, facts, seed and warnings as JSON; errors on the scores' own scale."""
        span = self.scale.high - self.scale.low
        cells = []
        for row in self.cells.to_dict("records"):
            metrics: dict[str, Any] = {}
            for name in [str(column) for column in self.cells.columns]:
                if name in (*KEYS, "n_targets") or name.endswith(BESIDE):
                    continue
                if name.startswith("seconds_"):
                    metrics[name] = _plain(row[name])
                    continue
                unit = span if name.removeprefix("task_") in ERRORS else 1.0
                unit = span if name.startswith("width") else unit
                metrics[name] = {
                    part: _plain(row[column] * unit)
                    for part, column in [
                        ("mean", name),
                        ("se", f"{name}_se"),
                        ("low", f"{name}_low"),
                        ("high", f"{name}_high"),
                    ]
                    if column in row
                }
            cells.append({key: row[key] for key in [*KEYS, "n_targets"]} | {"metrics": metrics})
        return json.dumps(
            {
                "cells": cells,
                "seed": self.seed,
                "fingerprint": self.facts["fingerprint"],
                "versions": self.facts["versions"],
                "facts": self.facts,
                "warnings": self.warnings,
            },
            indent=2,
        )

    def save_json(self, path: str | os.PathLike[str]) -> None:
        """Write `to_json` to a file, whole or not at all."""
        with written_whole(Path(path)) as temporary:
            temporary.write_text(self.to_json() + "\n", encoding="utf-8")


def summarise(
    scores: Scores,
    cells: Sequence[Cell],
    results: Sequence[CellResult],
    facts: dict[str, str],
    warnings: list[str],
    seed: int,
) -> Comparison:
    """Gather the results of cells, given in the same order, into tables."""
    estimates = _estimates(scores, cells, results)
    frame = pd.DataFrame(
        [
            {"method": cell.name, "budget": cell.budget, "split": cell.split_name}
            | {"repeat": cell.repeat, "n_targets": len(result.targets)}
            | {"divided": cell.split.targets.tobytes()}
            | result.metrics
            for cell, result in zip(cells, results, strict=True)
        ]
    )
    errors = {key: _errors(rows) for key, rows in estimates.groupby(KEYS, sort=False)}
    rows = []
    for key, group in frame.groupby(KEYS, sort=False):
        _, budget, split = key
        row: dict[str, Any] = dict(zip(KEYS, key, strict=True))
        row["n_targets"] = round(group["n_targets"].mean())
        fixed = group["divided"].nunique() == 1
        for metric in group.columns.drop([*KEYS, "repeat", "n_targets", "divided"]):
            values = group[metric].dropna().to_numpy(np.float64)
            row[str(metric)] = values.mean() if len(values) else math.nan
            spread = values.std(ddof=1) if len(values) > 1 else math.nan
            if fixed and spread == 0:  # a method without randomness on always the same targets
                spread = math.nan
            row[f"{metric}_sd"] = spread
            row[f"{metric}_se"] = spread / len(values) ** 0.5 if len(values) else math.nan
        for reference in REFERENCES:
            ratio = error_ratio(errors[key], errors[reference, budget, split], seed)
            column = f"ratio_to_{reference.replace('-', '_')}"
            row[column], row[f"{column}_se"] = ratio.ratio, ratio.se
            row[f"{column}_low"], row[f"{column}_high"] = ratio.low, ratio.high
        rows.append(row)
    table = pd.DataFrame(rows)
    for metric in ("seconds_fit", "seconds_predict", "items_run"):
        table = table.drop(columns=[f"{metric}_sd", f"{metric}_se"])
    tasks = _task_errors(scores, cells, results)
    repeats = frame.drop(columns="divided")
    return Comparison(table, repeats, estimates, tasks, facts, warnings, scores.scale, seed)


def _estimates(
    scores: Scores, cells: Sequence[Cell], results: Sequence[CellResult]
) -> pd.DataFrame:
    parts = [
        pd.DataFrame(
            {
                "method": cell.name,
                "budget": cell.budget,
                "split": cell.split_name,
                "repeat": cell.repeat,
                "target": result.targets,
                "truth": result.truth,
                "estimate": result.estimate,
                "low": result.low,
                "high": result.high,
            }
        )
        for cell, result in zip(cells, results, strict=True)
    ]
    table = pd.concat(parts, ignore_index=True)
    family = scores.models.get("family")
    table.insert(5, "family", None if family is None else family.loc[table["target"]].to_numpy())
    return table


def _errors(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[["target", "repeat"]].assign(error=(rows["estimate"] - rows["truth"]).abs())


def _task_errors(
    scores: Scores, cells: Sequence[Cell], results: Sequence[CellResult]
) -> pd.DataFrame:
    sizes = np.bincount(scores.task_of)
    long = [
        {"method": cell.name, "budget": cell.budget, "split": cell.split_name}
        | {"task": task, "mae": error, "n_items": int(size)}
        for cell, result in zip(cells, results, strict=True)
        for task, error, size in zip(scores.tasks, result.task_mae, sizes, strict=False)
    ]
    columns = [*KEYS, "task", "n_items", "mae"]
    table = pd.DataFrame(long, columns=columns)
    return table.groupby(columns[:-1], sort=False)["mae"].mean().reset_index()


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
