"""How well targets are estimated at each step of what is varied, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fewbench.evaluation.ranks import EXACT

FloatArray = NDArray[np.float64]
RESAMPLES = 500
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
        `…_gap_high`). Intervals are percentiles where targets are resampled with all their
        repeats, the same for all steps.
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
    runs: pd.DataFrame, against: str, seed: int = 0, within: Sequence[str] = ("repeat",)
) -> Performance:
    """Measure error and ranking of runs, as `Trial.run` gives them.

    Parameters
    ----------
    runs : DataFrame
        Columns step, target, truth, estimate, and those of `within`. Every step has the same
        targets; `natives` and `agreement` are averaged where they are there.
    against : str
        The step to hold the others against.
    seed : int
        Of the resampling.
    within : sequence of str
        Error and ranking are taken within each combination of these columns, and averaged.

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
    names = pd.unique(runs["target"])
    at = pd.Index(names)
    rng = np.random.default_rng(seed)
    # The first row is the targets as they are.
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), RESAMPLES)
    weights = np.concatenate([np.ones((1, len(names))), drawn])
    found: dict[str, dict[str, FloatArray]] = {}
    for step, rows in runs.groupby("step", sort=False):
        parts = [
            _weighted(part, weights[:, at.get_indexer(pd.Index(part["target"]))])
            for _, part in rows.groupby(list(within), sort=False)
        ]
        found[str(step)] = {name: _mean([part[name] for part in parts]) for name in METRICS}
    table = {step: _row(of, found[against], len(names)) for step, of in found.items()}
    steps = pd.DataFrame.from_dict(table, orient="index").rename_axis("step")
    for place, column in enumerate(c for c in ("natives", "agreement") if c in runs):
        steps.insert(place, column, runs.groupby("step", sort=False)[column].mean())
    return Performance(steps, against, runs)


def _row(of: dict[str, FloatArray], base: dict[str, FloatArray], n: int) -> dict[str, float]:
    row = {}
    for name in METRICS:
        for column, values in ((name, of[name]), (f"{name}_gap", of[name] - base[name])):
            row[column] = float(values[0])
            known = n > 1 and np.isfinite(values[1:]).any()
            low, high = np.nanquantile(values[1:], [0.05, 0.95]) if known else (np.nan, np.nan)
            row[f"{column}_low"], row[f"{column}_high"] = float(low), float(high)
    return row


def _weighted(part: pd.DataFrame, weights: FloatArray) -> dict[str, FloatArray]:
    """Error and Kendall's tau-b where each target counts as often as its weight says."""
    truth, estimate = (
        np.round(part[name].to_numpy(np.float64), EXACT) for name in ("truth", "estimate")
    )
    total = weights.sum(axis=1)
    true, said = (np.sign(values[:, None] - values) for values in (truth, estimate))

    def pairs(matrix: FloatArray) -> FloatArray:
        return np.asarray(((weights @ matrix) * weights).sum(axis=1))

    untied = np.sqrt(pairs(np.abs(true)) * pairs(np.abs(said)))
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "mae": weights @ np.abs(estimate - truth) / total,
            "kendall_tau": pairs(true * said) / untied,
        }


def _mean(parts: list[FloatArray]) -> FloatArray:
    """Mean of what is defined; NaN where nothing is."""
    values = np.stack(parts)
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0))
