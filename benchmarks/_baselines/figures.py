"""What is made of the cells: errors, ratios to random sampling, and how sure they are.

As `fewbench compare` infers (fewbench.study.inference): errors against the exact expected error of
plain random sampling, intervals within a table by resampling repeats and models, over tables by
Student's t on logarithms, and one rule for what is level with the best.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from _baselines.cells import Record
from _baselines.over_tables import OverTables, over_tables
from fewbench.decide.multiple import adjusted_p_values
from fewbench.scores import Scores
from fewbench.study import Split
from fewbench.study.inference import (
    FEWEST_TARGETS,
    LEVEL,
    Figure,
    TwoWay,
    expected_random_mae,
    model_groups,
    tied_with_best,
    two_way,
)
from fewbench.study.metrics import kendall_tau
from fewbench.uncertainty.bounds import EXACT

FloatArray = NDArray[np.float64]
NONE = float("nan")
AT = 50
"""Budget by which methods are put in order."""


@dataclass(frozen=True)
class Cells:
    """One row a table, split, method and budget, and how the tables belong together.

    Attributes
    ----------
    rows : DataFrame
        Columns table, split, method, budget, repeats; `mae` and `ratio` (Figures), `random` (the
        exact expected error of random sampling), `tau`, `tau_gain` (over `random`'s), `level`
        (whether level with the table's best at this budget) and `logs` (the ratio's logarithm and
        its resamples).
    resampled : mapping
        Table and split to what was drawn of it.
    targets : mapping
        Table and split to the mean number of targets.
    groups : mapping of str to int
        Table to the group of tables that share models.
    """

    rows: pd.DataFrame
    resampled: Mapping[tuple[str, str], TwoWay]
    targets: Mapping[tuple[str, str], float]
    groups: Mapping[str, int]

    def of(self, **where: object) -> pd.DataFrame:
        """Return the rows of a table, split, method or budget."""
        rows = self.rows
        for name, value in where.items():
            rows = rows[rows[name] == value]
        return rows

    def counts(self, table: str, split: str) -> bool:
        """Whether a table has targets enough to count in a mean over tables."""
        return self.targets[table, split] >= FEWEST_TARGETS

    def over(self, ratios: Mapping[str, float], split: str) -> OverTables:
        """Return the geometric mean over tables of a ratio for each table."""
        return over_tables(
            list(ratios.values()),
            [int(self.targets[table, split]) for table in ratios],
            [self.groups[table] for table in ratios],
        )


def cells_of(
    records: Sequence[Record], scores: Scores, splits: Sequence[Split], seed: int = 0
) -> tuple[list[dict[str, object]], TwoWay | None]:
    """Return the rows of one table and split, and what was drawn for their intervals.

    Parameters
    ----------
    records : sequence of Record
        Records of this table and split; those that failed are left out.
    splits : sequence of Split
        The division of every repeat.
    seed : int
        Seed of the resampling; tables with one seed would vary together.
    """
    found: dict[tuple[str, int], dict[int, FloatArray]] = {}
    for record in records:
        if not record.failed:
            estimates = np.array(record.estimates)
            found.setdefault((record.method, record.budget), {})[record.repeat] = estimates
    if not found:
        return [], None
    table, split = next((r.table, r.split) for r in records)
    ran = sorted({repeat for of_cell in found.values() for repeat in of_cell})
    targets = [splits[repeat].targets for repeat in ran]
    names = np.array(scores.model_ids)
    resampled = two_way([names[at].tolist() for at in targets], model_groups(scores), seed)
    truth = np.round(scores.full_scores(), EXACT)
    budgets = sorted({budget for _, budget in found})
    expected = {budget: expected_random_mae(scores, budget) for budget in budgets}
    errors = {
        cell: resampled.parts(
            [
                np.abs(np.round(known[repeat], EXACT) - truth[at]) if repeat in known else None
                for repeat, at in zip(ran, targets, strict=True)
            ]
        )
        for cell, known in found.items()
    }
    plain = {
        budget: resampled.parts([expected[budget][at] for at in targets]) for budget in budgets
    }
    taus = {
        cell: {
            repeat: kendall_tau(truth[splits[repeat].targets], np.round(one, EXACT))
            for repeat, one in known.items()
        }
        for cell, known in found.items()
    }
    level = {budget: _level(resampled, errors, budget) for budget in budgets}
    rows: list[dict[str, object]] = []
    for (method, budget), own in errors.items():
        tau, plain_tau = taus[method, budget], taus.get(("random", budget), {})
        against = resampled.ratio(own, plain[budget])
        both = np.where(np.isfinite(own), plain[budget], np.nan)
        rows.append(
            {"table": table, "split": split, "method": method, "budget": budget}
            | {"repeats": len(tau), "mae": resampled.figure(resampled.mean(own), least=0.0)}
            | {"random": float(resampled.mean(both)[0])}
            | {"ratio": resampled.figure(against, ratio=True, least=0.0)}
            | {"tau": _mean(tau.values())}
            | {"tau_gain": _mean(tau[at] - plain_tau[at] for at in tau if at in plain_tau)}
            | {"level": method in level[budget], "logs": _logs(against)}
        )
    return rows, resampled


def _logs(ratios: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(ratios > 0, np.log(ratios), np.nan)


def _level(
    resampled: TwoWay, errors: Mapping[tuple[str, int], FloatArray], budget: int
) -> frozenset[str]:
    """Return the methods that are level with the best, of those that ran every repeat."""
    here = {method: parts for (method, at), parts in errors.items() if at == budget}
    whole = {name: parts for name, parts in here.items() if np.isfinite(parts[:, 0]).all()}
    return tied_with_best(resampled, whole).level


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else NONE


def overall(cells: Cells, split: str) -> pd.DataFrame:
    """One row a method: its ratio over tables at each budget, best first at AT items.

    Columns: `method`, `tables` (how many count at AT items), one column of OverTables for each
    budget, `level` (the budgets at which it is level with the best), `tau_gain` (its mean over
    groups of tables), `worst` (a Figure) and `worst_table` at AT items, of the tables that count.
    Methods that ran on fewer than half of the tables come last, for their figures are of other
    tables.
    """
    of_split = cells.of(split=split)
    counted = [t for t in of_split["table"].unique() if cells.counts(t, split)]
    of_split = of_split[of_split["table"].isin(counted)]
    if of_split.empty:
        return pd.DataFrame()
    budgets = sorted(of_split["budget"].unique())
    at = AT if AT in budgets else budgets[-1]
    ratios: dict[int, dict[str, dict[str, float]]] = {budget: {} for budget in budgets}
    rows = []
    for method, group in of_split.groupby("method", sort=False):
        for budget, own in group.groupby("budget"):
            known = zip(own["table"], own["ratio"], strict=True)
            ratios[budget][method] = {table: one.value for table, one in known if one.value > 0}
        here = group[group["budget"] == at]
        here = here[[one.value == one.value for one in here["ratio"]]]
        worst = max(
            zip(here["ratio"], here["table"], strict=True),
            key=lambda one: one[0].value,
            default=(Figure(NONE), ""),
        )
        gains = here.groupby(here["table"].map(cells.groups))["tau_gain"].mean()
        rows.append(
            {"method": method, "tables": len(here), "tau_gain": gains.mean()}
            | {"worst": worst[0], "worst_table": worst[1]}
            | {b: cells.over(ratios[b].get(method, {}), split) for b in budgets}
        )
    few = {row["method"] for row in rows if 2 * row["tables"] < len(counted)}
    table = pd.DataFrame(rows)
    level = {b: _level_over(cells, of_split[of_split["budget"] == b], few, split) for b in budgets}
    table["level"] = [frozenset(b for b in budgets if m in level[b]) for m in table["method"]]
    order = table.assign(few=table["method"].isin(few), first=[one.value for one in table[at]])
    return table.loc[order.sort_values(["few", "first", "method"]).index].reset_index(drop=True)


def _level_over(cells: Cells, rows: pd.DataFrame, few: set[str], split: str) -> frozenset[str]:
    """Return the methods that are level with the best over these very tables.

    As within a table (`fewbench.study.inference.tied_with_best`): a method's paired difference to
    the best, here of the logarithms of their ratios, resampled in every table. Methods that lack a
    table of the best are judged on the others.
    """
    logs: dict[str, dict[str, FloatArray]] = {}
    for row in rows[~rows["method"].isin(few)].itertuples():
        if np.isfinite(row.logs[0]):
            logs.setdefault(row.method, {})[row.table] = row.logs
    means = {method: float(_over_groups(cells, own)[0]) for method, own in logs.items()}
    if not means:
        return frozenset()
    best = min(means, key=lambda method: means[method])
    p_values = {
        method: _p_value(cells, split, {t: own[t] - logs[best][t] for t in own if t in logs[best]})
        for method, own in logs.items()
        if method != best
    }
    judged = {method: p for method, p in p_values.items() if not np.isnan(p)}
    if not judged:
        return frozenset()
    adjusted = adjusted_p_values(np.array(list(judged.values())))
    worse = {method for method, p in zip(judged, adjusted, strict=True) if p <= 1 - LEVEL + 1e-12}
    return frozenset(means) - worse


def _p_value(cells: Cells, split: str, differences: Mapping[str, FloatArray]) -> float:
    """Return the p-value of no difference, the mean over groups of tables.

    The variances of the tables add up, and their degrees of freedom by Satterthwaite's rule: one
    table with few repeats must not decide how sure all together are. Tables without enough repeats
    for a variance are left out.
    """
    from scipy import stats

    judged = {
        table: found
        for table, one in differences.items()
        if np.isfinite((found := cells.resampled[table, split].variance(one))[0])
    }
    if not judged:
        return NONE
    groups = [cells.groups[table] for table in judged]
    n_groups = len(set(groups))
    weights = np.array([1 / (n_groups * groups.count(group)) for group in groups])
    variances, freedoms = np.array(list(judged.values())).T
    parts = weights**2 * variances
    if not parts.any():
        return NONE
    freedom = parts.sum() ** 2 / (parts**2 / freedoms).sum()
    mean = weights @ [differences[table][0] for table in judged]
    return float(2 * stats.t.sf(abs(mean) / np.sqrt(parts.sum()), freedom))


def _over_groups(cells: Cells, logs: Mapping[str, FloatArray]) -> FloatArray:
    """Return the mean over groups of tables, in which each table weighs the same."""
    by_group: dict[int, list[FloatArray]] = {}
    for table, own in logs.items():
        by_group.setdefault(cells.groups[table], []).append(own)
    if not by_group:
        return np.array([np.nan])
    return np.asarray(np.mean([np.mean(own, axis=0) for own in by_group.values()], axis=0))
