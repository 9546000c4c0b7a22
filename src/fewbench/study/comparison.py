"""The result of a comparison: tidy tables, warnings and facts."""

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewbench._files import written_whole
from fewbench._types import FloatArray
from fewbench.errors import StudyError
from fewbench.scores import Scale
from fewbench.study.inference import LEVEL, Difference, TwoWay

REFERENCES = ("random", "random-ridge")
ERRORS = ("mae", "rmse", "max_error", "weighted_mae")  # on the scores' own scale in JSON
BESIDE = ("_sd", "_se", "_low", "_high", "_repeats", "_tasks")
"""Suffixes of columns that qualify another column."""
OWN = ("n_targets", "n_repeats", "expected_random_mae", "level_with_best")
"""Columns of a cell that are not metrics."""
KEYS = ["method", "budget", "split"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods compared on models with known full scores.

    Attributes
    ----------
    cells : DataFrame
        One row per method, budget and split. `n_targets` is per repeat, `n_repeats` counts those
        that did not fail. Each metric is a mean over repeats, with its standard deviation over
        repeats (`…_sd`), and its standard error and 90 % interval (`…_se`, `…_low`, `…_high`) by
        resampling repeats and models (see `fewbench.study.inference`); NaN with fewer than 3
        repeats. `ratio_to_random` divides the mean absolute error by `expected_random_mae`, the
        expected error of plain random sampling for the same targets; `ratio_to_random_ridge` by
        the error of random-ridge. `level_with_best` says whether the method is as good as the best
        (missing without intervals). If a metric is undefined for some repeats or tasks,
        `…_repeats` and `…_tasks` say over how many its mean is. Scores are in [0, 1].
    repeats : DataFrame
        One row per method, budget, split and repeat: every metric, for paired comparisons.
    estimates : DataFrame
        One row per method, budget, split, repeat and target: truth, estimate, low, high.
    task_errors : DataFrame
        One row per method, budget, split and task: mean absolute error and number of items.
    failures : DataFrame
        One row per failed cell: method, budget, split, repeat and the reason.
    facts : dict of str
        Settings, versions and properties of the scores.
    warnings : list of str
        What limits trust in the numbers.
    """

    cells: pd.DataFrame
    repeats: pd.DataFrame
    estimates: pd.DataFrame
    task_errors: pd.DataFrame
    failures: pd.DataFrame
    facts: dict[str, str]
    warnings: list[str]
    scale: Scale
    seed: int
    resampled: dict[str, TwoWay]

    def paired(self, method: str, other: str, budget: int, split: str | None = None) -> Difference:
        """Compare two methods' errors on the same targets (negative: `method` is better)."""
        chosen = self.estimates[self.estimates["budget"] == budget]
        if split is not None:
            chosen = chosen[chosen["split"] == split]
        elif chosen["split"].nunique() > 1:
            raise StudyError(
                "the comparison has several splits: name one",
                hint=f"use one of {', '.join(chosen['split'].unique())}",
            )
        one, two = (chosen[chosen["method"] == name] for name in (method, other))
        if one.empty or two.empty:
            raise StudyError(
                f"no errors of {method!r} and {other!r} at {budget} items",
                hint="compare both at this budget",
            )
        resampled = self.resampled[one["split"].iloc[0]]
        return resampled.compare(_errors(one, resampled), _errors(two, resampled))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per method, budget and split: error, ratio to random sampling, rank."""
        columns = [*KEYS, "mae", "expected_random_mae", "ratio_to_random"]
        columns += ["ratio_to_random_low", "ratio_to_random_high", "kendall_tau"]
        kept = [name for name in columns if name in self.cells]
        return self.cells[[*kept, "level_with_best"]].sort_values(["split", "budget", "mae"])

    def __repr__(self) -> str:
        """Return the table as text."""
        return str(self.to_frame().to_string(index=False))

    def plot(self, kind: str = "error", split: str | None = None, level: int = 90) -> Any:
        """Return an Altair chart of one split.

        Parameters
        ----------
        kind : str
            error (by number of items), ratio (to random sampling), coverage, scores or ranks
            (estimated against true, of one run).
        split : str, optional
            Default: the first.
        level : int
            Of coverage: the intervals' level in percent.

        Raises
        ------
        StudyError
            If there is no such split or kind, or nothing to draw.
        """
        from fewbench.charts import comparison as charts

        splits = [str(name) for name in dict.fromkeys(self.cells["split"])]
        chosen = str(split) if split is not None else next(iter(splits), "")
        if chosen not in splits:
            raise StudyError(f"no split {split!r}", hint=f"use one of {', '.join(splits)}")
        kinds = ("error", "ratio", "coverage", "scores", "ranks")
        if kind not in kinds:
            raise StudyError(f"no chart {kind!r}", hint=f"use one of {', '.join(kinds)}")
        cells, made = self.cells, None
        if kind == "error":
            made = charts.error_by_items(cells, chosen)
        elif kind == "ratio":
            made = charts.ratio_to_random(cells, chosen)
        elif kind == "coverage":
            made = charts.coverage(cells, chosen, level)
        else:
            run = charts.one_run(self.estimates, cells, chosen)
            draw = charts.true_and_estimated
            if kind == "ranks":
                draw = charts.true_and_estimated_ranks
            made = draw(run, cells, chosen)
        if made is None:
            raise StudyError(
                f"nothing to draw for {kind!r}", hint="the comparison has no such values"
            )
        return made

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(index=False))

    def to_json(self) -> str:
        """Return cells, facts, seed and warnings as JSON, with errors on the scores' own scale."""
        span = self.scale.high - self.scale.low
        cells = []
        for row in self.cells.to_dict("records"):
            metrics: dict[str, Any] = {}
            for name in [str(column) for column in self.cells.columns]:
                if name in (*KEYS, *OWN) or name.endswith(BESIDE):
                    continue
                if name.startswith("seconds_"):
                    metrics[name] = _plain(row[name])
                    continue
                unit = span if name.removeprefix("task_") in ERRORS else 1.0
                unit = span if name.startswith("width") else unit
                metrics[name] = {"mean": _plain(row[name] * unit)} | {
                    part: _plain(row.get(f"{name}_{part}", math.nan) * unit)
                    for part in ("se", "low", "high")
                }
                for part in ("repeats", "tasks"):  # how many are in the mean, if not all
                    if _plain(row.get(f"{name}_{part}", math.nan)) is not None:
                        metrics[name][f"n_{part}"] = row[f"{name}_{part}"]
            judged = row["level_with_best"]
            here = (self.failures[KEYS] == [row[key] for key in KEYS]).all(axis=1)
            cells.append(
                {key: row[key] for key in [*KEYS, "n_targets", "n_repeats"]}
                | {"expected_random_mae": _plain(row["expected_random_mae"] * span)}
                | {"level_with_best": None if pd.isna(judged) else bool(judged)}
                | {"failed": self.failures.loc[here, ["repeat", "reason"]].to_dict("records")}
                | {"metrics": metrics}
            )
        return json.dumps(
            {
                "cells": cells,
                "seed": self.seed,
                "interval_level": LEVEL,
                "fingerprint": self.facts["fingerprint"],
                "versions": self.facts["versions"],
                "facts": self.facts,
                "warnings": self.warnings,
            },
            indent=2,
        )

    def save_json(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON to a file, completely or not at all."""
        with written_whole(Path(path)) as temporary:
            temporary.write_text(self.to_json() + "\n", encoding="utf-8")


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _errors(rows: pd.DataFrame, resampled: TwoWay) -> FloatArray:
    """Return a method's mean errors by repeat."""
    values: list[FloatArray | None] = [None] * resampled.n_repeats
    for repeat, part in rows.groupby("repeat"):
        gaps = (part["estimate"] - part["truth"]).abs()
        values[int(str(repeat))] = gaps.to_numpy(np.float64)
    return resampled.parts(values)
