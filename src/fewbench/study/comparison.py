"""The result of a comparison: tidy tables, warnings and facts."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._types import FloatArray
from fewbench.errors import StudyError
from fewbench.scores import Scale, Unit
from fewbench.show.page import Shown, plain
from fewbench.study.inference import LEVEL, Paired, TwoWay
from fewbench.study.learning_curve import LearningCurve
from fewbench.study.metrics import find_metric
from fewbench.study.splits import whole_split

REFERENCES = ("random", "random-ridge")
BESIDE = ("_sd", "_se", "_low", "_high", "_repeats", "_tasks")
"""Suffixes of columns that qualify another column."""
OWN = ("n_sources", "n_targets", "n_repeats", "expected_random_mae", "tied_with_best")
"""Columns of a cell that are not metrics."""
KEYS = ["method", "budget", "split"]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """Methods compared on models with known full scores.

    Scores, errors and widths are on the scale of the scores.

    Attributes
    ----------
    cells : DataFrame
        One row per method, budget and split, the lowest error of a budget and split first.
        `n_sources` and `n_targets` are per repeat, `n_repeats` counts those that did not fail. Each
        metric is a mean over repeats, with its standard deviation over repeats (`…_sd`), and its
        standard error and 90% interval (`…_se`, `…_low`, `…_high`) by resampling repeats and models
        (see `fewbench.study.inference`). These are NaN with fewer than 3 repeats. `ratio_to_random`
        divides the mean absolute error by `expected_random_mae`, the expected error of plain random
        sampling for the same targets; the method random has the errors of the items that were
        drawn. `ratio_to_random_ridge` divides by the error of random-ridge. `tied_with_best` says
        whether the method is as good as the best (missing without intervals). If a metric is
        undefined for some repeats or tasks, `…_repeats` and `…_tasks` say over how many its mean
        is.
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
    metrics : tuple of str
        Metrics that were asked for: tables show them.
    """

    cells: "pd.DataFrame"
    repeats: "pd.DataFrame"
    estimates: "pd.DataFrame"
    task_errors: "pd.DataFrame"
    failures: "pd.DataFrame"
    facts: dict[str, str]
    warnings: list[str]
    scale: Scale
    seed: int
    resampled: dict[str, TwoWay]
    metrics: tuple[str, ...] = ()

    @property
    def unit(self) -> Unit:
        """How scores and errors are printed."""
        return Unit(self.scale)

    def paired(self, method: str, other: str, budget: int, split: str | None = None) -> Paired:
        """Compare two methods' errors on the same targets.

        The errors are those of `estimates`: for random the errors of the items that were drawn,
        not the expected error.

        Parameters
        ----------
        method, other : str
            Two methods of the comparison.
        budget : int
            Number of items.
        split : str, optional
            Name of the split, needed with several splits.

        Returns
        -------
        Paired
            The mean difference, below 0 if `method` is better, with its 90% interval.

        Raises
        ------
        StudyError
            If a method has no errors at this budget, or several splits are there.
        """
        chosen = self.estimates[self.estimates["budget"] == budget]
        if split is not None:
            chosen = chosen[chosen["split"] == split]
        elif chosen["split"].nunique() > 1:
            raise StudyError(
                "the comparison has several splits: name one",
                hint=f"use one of {', '.join(chosen['split'].unique())}",
                kind="conflict",
            )
        first, two = (chosen[chosen["method"] == name] for name in (method, other))
        if first.empty or two.empty:
            raise StudyError(
                f"no errors of {method!r} and {other!r} at {budget} items",
                hint="compare both at this budget",
            )
        resampled = self.resampled[first["split"].iloc[0]]
        return resampled.compare(_errors(first, resampled), _errors(two, resampled))

    def learning_curve(self, method: str, budget: int, split: str | None = None) -> LearningCurve:
        """Return a method's error by number of source models, on the scale of the scores.

        Parameters
        ----------
        method : str
        budget : int
        split : str, optional
            Name of a split with all of its source models (default: that of the first).

        Raises
        ------
        StudyError
            If the method has no such errors.
        """
        chosen = whole_split(str(self.cells["split"].iloc[0])) if split is None else split
        rows = self.cells[(self.cells["method"] == method) & (self.cells["budget"] == budget)]
        rows = rows[rows["split"].map(whole_split) == chosen].sort_values("n_sources")
        errors: dict[int, FloatArray] = {}
        for name, n_sources in zip(rows["split"], rows["n_sources"], strict=True):
            keys = dict(zip(KEYS, (method, budget, name), strict=True))
            estimates = self.estimates[(self.estimates[KEYS] == pd.Series(keys)).all(axis=1)]
            if len(estimates):
                errors[int(n_sources)] = _errors(estimates, self.resampled[name])
        if not errors:
            raise StudyError(
                f"no errors of {method!r} at {budget} items on the split {chosen!r}",
                hint="compare the method at this budget and split",
            )
        return LearningCurve.from_errors(method, budget, errors, self.resampled[name])

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per method, budget and split: error, ratio to random sampling, rank."""
        columns = [*KEYS, "n_sources", "mae", "expected_random_mae", "ratio_to_random"]
        columns += ["ratio_to_random_low", "ratio_to_random_high", "kendall_tau"]
        kept = [name for name in columns if name in self.cells]
        return self.cells[[*kept, "tied_with_best"]]

    @property
    def exit_code(self) -> int:
        """1 if a method failed on a split, else 0."""
        return int(len(self.failures) > 0)

    def to_dict(self) -> dict[str, Any]:
        """Return cells, facts, seed and warnings as plain values."""
        cells = []
        for row in self.cells.to_dict("records"):
            metrics: dict[str, Any] = {}
            for name in [str(column) for column in self.cells.columns]:
                if name in (*KEYS, *OWN) or name.endswith(BESIDE):
                    continue
                if find_metric(name).unit == "s":
                    metrics[name] = row[name]
                    continue
                metrics[name] = {"mean": row[name]} | {
                    part: row.get(f"{name}_{part}") for part in ("se", "low", "high")
                }
                for part in ("repeats", "tasks"):  # how many are in the mean if not all
                    if pd.notna(row.get(f"{name}_{part}")):
                        metrics[name][f"n_{part}"] = row[f"{name}_{part}"]
            judged = row["tied_with_best"]
            here = (self.failures[KEYS] == [row[key] for key in KEYS]).all(axis=1)
            cells.append(
                {key: row[key] for key in [*KEYS, "n_sources", "n_targets", "n_repeats"]}
                | {"expected_random_mae": row["expected_random_mae"]}
                | {"tied_with_best": None if pd.isna(judged) else bool(judged)}
                | {"failed": self.failures.loc[here, ["repeat", "reason"]].to_dict("records")}
                | {"metrics": metrics}
            )
        return plain(
            {
                "cells": cells,
                "seed": self.seed,
                "interval_level": LEVEL,
                "fingerprint": self.facts["fingerprint"],
                "versions": self.facts["versions"],
                "facts": self.facts,
                "warnings": self.warnings,
            }
        )


def _errors(rows: "pd.DataFrame", resampled: TwoWay) -> FloatArray:
    """Return a method's mean errors by repeat."""
    values: list[FloatArray | None] = [None] * resampled.n_repeats
    for repeat, part in rows.groupby("repeat"):
        gaps = (part["estimate"] - part["truth"]).abs()
        values[int(str(repeat))] = gaps.to_numpy(np.float64)
    return resampled.parts(values)
