"""Means of ratios over tables: geometric, with tables that share models or items as one."""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fewbench.study.inference import FEWEST_TARGETS, LEVEL

FEWEST_TABLES = 3


@dataclass(frozen=True)
class OverTables:
    """Geometric mean of ratios over tables.

    Attributes
    ----------
    value, low, high : float
        NaN if there is none; no interval with fewer than 3 groups of tables.
    n_tables, n_groups : int
        Tables that count, and groups of tables that share models or items.
    left_out : int
        Tables with too few targets to count.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n_tables: int = 0
    n_groups: int = 0
    left_out: int = 0


def over_tables(
    ratios: Sequence[float],
    n_targets: Sequence[int] | None = None,
    groups: Sequence[Hashable] | None = None,
    level: float = LEVEL,
) -> OverTables:
    """Return the geometric mean of tables' ratios and its interval.

    The interval uses Student's t on logarithms, for the mean over tables like these. Tables with
    fewer than `FEWEST_TARGETS` targets do not count; a group of tables weighs as one table.

    Parameters
    ----------
    ratios : sequence of float
        One per table (NaN and 0 do not count).
    n_targets : sequence of int, optional
        Targets per repeat of each table.
    groups : sequence, optional
        Group of each table (see `table_groups`); by default each table is its own.
    level : float

    Examples
    --------
    >>> found = over_tables([0.5, 0.8, 0.4], n_targets=[30, 40, 50])
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.543, 0.299, 0.986)
    >>> over_tables([0.5, 0.8, 0.4], n_targets=[1, 40, 50]).n_tables
    2
    """
    from scipy import stats

    count = len(ratios)
    enough = [n_targets is None or n_targets[at] >= FEWEST_TARGETS for at in range(count)]
    logs: dict[Hashable, list[float]] = {}
    for at, one in enumerate(ratios):
        if enough[at] and 0 < one < math.inf:
            logs.setdefault(("", at) if groups is None else groups[at], []).append(math.log(one))
    left_out = enough.count(False)
    if not logs:
        return OverTables(left_out=left_out)
    means = np.array([np.mean(of_group) for of_group in logs.values()])
    n_tables, n_groups = sum(map(len, logs.values())), len(means)
    value = float(np.exp(means.mean()))
    if n_groups < FEWEST_TABLES:
        return OverTables(value, math.nan, math.nan, n_tables, n_groups, left_out)
    half = stats.t.ppf((1 + level) / 2, n_groups - 1) * means.std(ddof=1) / math.sqrt(n_groups)
    low, high = value * math.exp(-half), value * math.exp(half)
    return OverTables(value, low, high, n_tables, n_groups, left_out)


def table_groups(
    models: Mapping[str, Collection[str]], items: Mapping[str, Collection[str]] | None = None
) -> dict[str, int]:
    """Return each table's group: tables that share models or items, also via others, are one.

    `models` and `items` give the names of each table's models and, if comparable, items.

    Examples
    --------
    >>> table_groups({"a": ["m1", "m2"], "b": ["m3"], "c": ["m2", "m4"]})
    {'a': 0, 'b': 1, 'c': 0}
    """
    group = {name: at for at, name in enumerate(models)}
    for names in (models, items or {}):
        first: dict[str, str] = {}
        for table, members in names.items():
            for member in members:
                one, other = group[first.setdefault(member, table)], group[table]
                if one != other:
                    group = {name: min(one, other) if of in (one, other) else of
                             for name, of in group.items()}  # fmt: skip
    order = {of: at for at, of in enumerate(dict.fromkeys(group.values()))}
    return {name: order[of] for name, of in group.items()}
