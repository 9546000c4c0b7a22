"""How well targets are estimated at each step of what is varied, and how sure that is."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fewbench.evaluation.ranks import EXACT
from fewbench.study.inference import TwoWay, two_way
from fewbench.study.metrics import weighted_correlations

FloatArray = NDArray[np.float64]
RESAMPLES = 499
METRICS = ("mae", "kendall_tau")


@dataclass(frozen=True, eq=False)
class Performance:
    """Error and ranking at several steps.

    Attributes
    ----------
    steps : DataFrame
        One row a step, in order: `natives` and `agreement` as in `Trial.run`, means over targets;
        `mae` and `kendall_tau`, means over repeats, with 90 % intervals (`…_low`, `…_high`); and
        by how much they are above those of the step `against` (`…_gap`, `…_gap_low`,
        `…_gap_high`). Intervals resample repeats and targets, the same for all steps (see
        `fewbench.study.inference`); NaN with fewer than 3 repeats.
    against : str
        The step that the others are held against.
    runs : DataFrame
        One row a step, repeat and target: truth and estimate.
    """

    steps: pd.DataFrame
    against: str
    runs: pd.DataFrame

    def at(self, step: str) -> dict[str, float]:
        """Return the numbers of a step by their column."""
        row = self.steps.loc[[step]].to_numpy(np.float64)[0]
        return dict(zip(map(str, self.steps), row.tolist(), strict=True))


def measure(
    runs: pd.DataFrame,
    against: str,
    seed: int = 0,
    within: Sequence[str] = ("repeat",),
    groups: Mapping[str, Hashable] | None = None,
) -> Performance:
    """Measure error and ranking of runs, as `Trial.run` gives them.

    Parameters
    ----------
    runs : DataFrame
        Columns step, target, truth, estimate, repeat, and those of `within`. Every step has the
        same targets; `natives` and `agreement` are averaged where they are there.
    against : str
        The step to hold the others against.
    seed : int
        Of the resampling.
    within : sequence of str
        Error and ranking are taken within each combination of these columns, and averaged, each
        repeat weighing the same.
    groups : mapping of str, optional
        The group of each target that is resampled as one (see `model_groups`).

    Examples
    --------
    >>> runs = pd.DataFrame({"step": ["a"] * 3 + ["b"] * 3, "repeat": 0, "target": list("xyz") * 2,
    ...                      "truth": [.1, .2, .3] * 2, "estimate": [.1, .2, .3, .3, .2, .1]})
    >>> measure(runs, "a").steps[["mae", "kendall_tau", "kendall_tau_gap"]].round(2)
           mae  kendall_tau  kendall_tau_gap
    step
    a     0.00          1.0              0.0
    b     0.13         -1.0             -2.0
    """
    first = runs[runs["step"] == against]
    repeats = [part for _, part in first.groupby("repeat", sort=False)]
    resampled = two_way([list(part["target"]) for part in repeats], groups, seed, RESAMPLES)
    found: dict[str, dict[str, FloatArray]] = {}
    for step, rows in runs.groupby("step", sort=False):
        each = []
        for repeat, (_, of_repeat) in enumerate(rows.groupby("repeat", sort=False)):
            at = pd.Index(repeats[repeat]["target"])
            weights = resampled.weights(repeat)
            each.append(
                [
                    _weighted(part, weights[:, at.get_indexer(pd.Index(part["target"]))])
                    for _, part in of_repeat.groupby(list(within), sort=False)
                ]
            )
        found[str(step)] = {
            name: np.stack([_mean([part[name] for part in parts]) for parts in each])
            for name in METRICS
        }
    table = {step: _row(resampled, of, found[against]) for step, of in found.items()}
    steps = pd.DataFrame.from_dict(table, orient="index").rename_axis("step")
    for place, column in enumerate(c for c in ("natives", "agreement") if c in runs):
        steps.insert(place, column, runs.groupby("step", sort=False)[column].mean())
    return Performance(steps, against, runs)


def _row(
    resampled: TwoWay, of: dict[str, FloatArray], base: dict[str, FloatArray]
) -> dict[str, float]:
    row = {}
    for name in METRICS:
        whole, gap = resampled.mean(of[name]), resampled.difference(of[name], base[name])
        for column, values in ((name, whole), (f"{name}_gap", gap)):
            figure = resampled.figure(values, ratio=column == "mae")
            row[column], row[f"{column}_low"] = figure.value, figure.low
            row[f"{column}_high"] = figure.high
    return row


def _weighted(part: pd.DataFrame, weights: FloatArray) -> dict[str, FloatArray]:
    """Error and Kendall's tau-b where each target counts as often as its weight says."""
    truth, estimate = (
        np.round(part[name].to_numpy(np.float64), EXACT) for name in ("truth", "estimate")
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "mae": weights @ np.abs(estimate - truth) / weights.sum(axis=1),
            "kendall_tau": weighted_correlations(truth, estimate, weights)["kendall_tau"],
        }


def _mean(parts: list[FloatArray]) -> FloatArray:
    """Mean of what is defined; NaN where nothing is."""
    values = np.stack(parts)
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0))
