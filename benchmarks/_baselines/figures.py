"""What is made of the cells: errors, ratios to random sampling, and how sure they are.

Intervals are at 95 %, by Student's t on the logarithm of the ratio: with three to ten repeats or
tables a bootstrap would be too narrow.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

FloatArray = NDArray[np.float64]
NONE = float("nan")
LEVEL = 0.95
FEWEST = 3
"""Repeats or tables with which an interval is given: that of two would say nothing."""
AT = 50
"""Budget by which methods are put in order."""


@dataclass(frozen=True)
class Interval:
    """A figure, its interval (NaN where there is none), and of how many figures it is the mean."""

    value: float = NONE
    low: float = NONE
    high: float = NONE
    count: int = 0


def ratio(ours: ArrayLike, theirs: ArrayLike) -> Interval:
    """Ratio of two mean errors, paired over repeats (one error a repeat, in the same order).

    The spread of the ratio is that of the repeats' differences (delta method).
    """
    a, b = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    if not len(a) or a.mean() <= 0 or b.mean() <= 0:
        return Interval()
    return _around(float(a.mean() / b.mean()), a / a.mean() - b / b.mean())


def over_tables(ratios: Iterable[float]) -> Interval:
    """Geometric mean of tables' ratios; the interval is for the mean over tables like these."""
    logs = np.log([one for one in ratios if one > 0])
    if not len(logs):
        return Interval()
    return _around(float(np.exp(logs.mean())), logs)


def _around(value: float, logs: FloatArray) -> Interval:
    """Return the interval of a value whose logarithm has parts that vary as these do."""
    count = len(logs)
    if count < FEWEST:
        return Interval(value, count=count)
    half = student.ppf((1 + LEVEL) / 2, count - 1) * logs.std(ddof=1) / np.sqrt(count)
    return Interval(value, float(value * np.exp(-half)), float(value * np.exp(half)), count)


def by_cell(records: pd.DataFrame) -> pd.DataFrame:
    """One row a table, split, method and budget.

    Parameters
    ----------
    records : DataFrame
        One row a table, split, repeat, method and budget, with `mae` and `tau`; only those that
        came out.

    Returns
    -------
    DataFrame
        `repeats`, `mae` and `tau` with `mae_se` and `tau_se` (NaN if nothing varied), `random` (the
        error of random sampling in the same repeats), `ratio`, `ratio_low`, `ratio_high` and
        `tau_gain`, both to random sampling in the same repeats.
    """
    keys = ["table", "split", "budget", "repeat"]
    random = records[records["method"] == "random"].set_index(keys)[["mae", "tau"]]
    paired = records.join(random.add_suffix("_random"), on=keys)
    rows = []
    for key, group in paired.groupby(["table", "split", "method", "budget"], sort=False):
        both = group.dropna(subset=["mae", "mae_random"])
        against = ratio(both["mae"], both["mae_random"])
        rows.append(
            dict(zip(("table", "split", "method", "budget"), key, strict=True))
            | {"repeats": len(group), "mae": group["mae"].mean(), "tau": group["tau"].mean()}
            | {"mae_se": error_of(group["mae"]), "tau_se": error_of(group["tau"])}
            | {"random": both["mae_random"].mean()}
            | {"ratio": against.value, "ratio_low": against.low, "ratio_high": against.high}
            | {"tau_gain": (group["tau"] - group["tau_random"]).mean()}
        )
    return pd.DataFrame(rows)


def error_of(values: pd.Series) -> float:
    """Standard error of a mean; NaN of one value, or where no repeat differs from another."""
    spread = float(values.std(ddof=1))
    return spread / np.sqrt(values.count()) if spread > 1e-12 else NONE


def overall(cells: pd.DataFrame, split: str) -> pd.DataFrame:
    """One row a method: its ratio over tables at each budget, best first at AT items.

    Columns: `method`, `tables` (how many at AT items), `all` (whether on every table), one column
    of Intervals for each budget, `tau_gain` and `tau_gain_se` over tables, `worst` and
    `worst_table` at AT items. Methods that ran on fewer than half of the tables come last, for
    their figures are of other tables.
    """
    of_split = cells[cells["split"] == split]
    if of_split.empty:
        return pd.DataFrame()
    budgets = sorted(of_split["budget"].unique())
    at = AT if AT in budgets else budgets[-1]
    tables = of_split["table"].nunique()
    rows = []
    for method, group in of_split.groupby("method", sort=False):
        here = group[(group["budget"] == at) & group["ratio"].notna()]
        worst = here.loc[here["ratio"].idxmax()] if len(here) else None
        rows.append(
            {"method": method, "tables": len(here), "all": len(here) == tables}
            | {b: over_tables(group.loc[group["budget"] == b, "ratio"]) for b in budgets}
            | {"tau_gain": here["tau_gain"].mean(), "tau_gain_se": error_of(here["tau_gain"])}
            | {"worst": NONE if worst is None else worst["ratio"]}
            | {"worst_table": "" if worst is None else worst["table"]}
        )
    table = pd.DataFrame(rows)
    order = table.assign(few=table["tables"] * 2 < tables, first=[row.value for row in table[at]])
    return table.loc[order.sort_values(["few", "first", "method"]).index].reset_index(drop=True)


def frame(records: Iterable[object]) -> pd.DataFrame:
    """Return what came out of cells as a table."""
    table = pd.DataFrame([asdict(record) for record in records])  # type: ignore[call-overload]
    return table[(table["failed"] == "") & table["mae"].notna()].reset_index(drop=True)
