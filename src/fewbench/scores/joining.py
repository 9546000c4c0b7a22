"""Tables of scores joined into one: other models, other items, or both."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._memory import check_fits
from fewbench._names import counted
from fewbench._types import FloatArray
from fewbench.errors import ScoresError
from fewbench.scores.benchmark import CLUSTER, WEIGHT, Benchmark
from fewbench.scores.conditions import COLUMNS, compare_conditions, with_conditions
from fewbench.scores.repeats import Repeats
from fewbench.scores.table import NO_TASK, Scores

FIXED = ("task", WEIGHT, CLUSTER)
"""Columns of the items that must be the same in all tables."""


def join_scores(
    tables: Sequence[Scores], names: Sequence[str], *, accept_differences: bool = False
) -> tuple[Scores, tuple[str, ...]]:
    """Return the models and items of all tables, and notes; cells that no table has are empty.

    Parameters
    ----------
    tables : sequence of Scores
    names : sequence of str
        What the tables are called in messages, such as their files.
    accept_differences : bool
        Join items whose prompts, scoring or attributes differ. Those of the first table count, and
        estimates carry a warning.

    Raises
    ------
    ScoresError
        If tables are on different scales, a model has two scores on an item, or items differ.

    Examples
    --------
    >>> from fewbench import from_arrays
    >>> first = from_arrays([[1, 0]], models=["a"], items=["q", "r"])
    >>> second = from_arrays([[0, 1]], models=["b"], items=["r", "s"])
    >>> join_scores([first, second], ["a.parquet", "b.parquet"])[0].values.tolist()
    [[1.0, 0.0, nan], [nan, 0.0, 1.0]]
    """
    joined, notes = tables[0], []
    for at, (table, name) in enumerate(zip(tables[1:], names[1:], strict=True), start=1):
        before = names[0] if at == 1 else f"the {at} tables before"
        both = (before, name)
        _check_alike(joined, table, both)
        differences = _differences(joined, table, both)
        if differences and not accept_differences:
            raise ScoresError(
                f"{name}: not the items of {before}: {'; '.join(differences)}",
                hint="join tables of one benchmark, asked and scored alike; or pass "
                "--accept-differences (in Python accept_differences=True)",
            )
        notes += [f"{name}: accepted as the items of {before}: {one}" for one in differences]
        for earlier, its_name in zip(tables[:at], names, strict=False):
            _refuse_conflict(earlier, table, (its_name, name))
        joined = _joined(joined, table)
    if len(tables) > 1 and any(table.probabilities is not None for table in tables):
        notes.append("option probabilities of joined tables are not kept")
    return joined, tuple(notes)


def _check_alike(first: Scores, other: Scores, names: tuple[str, str]) -> None:
    for what in ("scale", "average"):
        mine, own = getattr(first, what), getattr(other, what)
        if mine != own:
            raise ScoresError(
                f"{names[1]}: the {what} is {own}, that of {names[0]} is {mine}",
                hint="import both tables with the same options",
            )
    if first.origin is not None or other.origin is not None:
        raise ScoresError(
            f"{names[0 if first.origin is not None else 1]}: a pack, which cannot be joined",
            hint="join the scores that it was made from",
        )


def _differences(first: Scores, other: Scores, names: tuple[str, str]) -> list[str]:
    """Return how items that both tables have differ, in words; ScoresError for their tasks."""
    shared = first.items.index.intersection(other.items.index, sort=False)
    if not len(shared):
        return []
    lines = list(compare_conditions(first, other, shared, names).differences)
    for name in first.items.columns.intersection(other.items.columns, sort=False):
        if name in (*COLUMNS, *_costs(first, other)):
            continue
        was, has = (table.items[name].loc[shared].astype(object) for table in (first, other))
        unknown = (was.isna() & has.isna()) | (was == NO_TASK) | (has == NO_TASK)
        differ = shared[((was != has) & ~unknown).to_numpy(bool)]
        if not len(differ):
            continue
        item = differ[0]
        line = (
            f"a different {name} of {counted(len(differ), 'item')}, first {item!r}: "
            f"{was[item]!r} and {has[item]!r}"
        )
        if name in FIXED:
            raise ScoresError(
                f"{names[1]}: {line}",
                hint="give items the same in both tables, as with import --items FILE",
            )
        lines.append(line)
    return lines


def _costs(first: Scores, other: Scores) -> list[str]:
    """Return what logs say that answers cost: in both tables, means over the table's models."""
    shared = first.items.columns.intersection(other.items.columns)
    if "harness" not in shared:  # a column of the user's own, as any other
        return []
    return [name for name in ("cost", "tokens", "api_calls") if name in shared]


def _refuse_conflict(first: Scores, other: Scores, names: tuple[str, str]) -> None:
    """Raise ScoresError if a model's scores on an item differ between the tables."""
    models = first.models.index.intersection(other.models.index, sort=False)
    items = first.items.index.intersection(other.items.index, sort=False)
    if not len(models):
        return
    values, more = (
        table.columns(table.positions(items))[table.model_positions(models)]
        for table in (first, other)
    )
    twice = ~np.isnan(values) & ~np.isnan(more) & (values != more)
    if twice.any():
        row, column = np.argwhere(twice)[0]
        raise ScoresError(
            f"{counted(int(twice.sum()), 'cell has', 'cells have')} one score in {names[0]} and "
            f"a different one in {names[1]}, first: model {models[row]!r}, item {items[column]!r}",
            hint="leave one of the files out; for several answers to an item, import the tables "
            "that they were made from together, with --trials mean",
        )


def _joined(first: Scores, other: Scores) -> Scores:
    models = _united(first.models, other.models, "role", "source")
    items = _united(first.items, other.items.drop(columns="n_options", errors="ignore"))
    tasks = other.items["task"].reindex(items.index).fillna(items["task"])
    items["task"] = items["task"].where(items["task"] != NO_TASK, tasks)
    check_fits(
        32.0 * len(models) * len(items),
        f"a table of {counted(len(models), 'model')} × {counted(len(items), 'item')}",
    )
    values = _placed(first, models, items, first.values)
    more = _placed(other, models, items, other.values)
    counts, variances = (
        np.fmax(*(_placed(table, models, items, _spread(table)[at]) for table in (first, other)))
        for at in (0, 1)
    )
    for name in _costs(first, other):
        # A mean over the models of each table becomes one over those of both.
        own = other.items[name].reindex(items.index)
        total = items[name] * first.n_models + own * other.n_models
        mean = total / (first.n_models + other.n_models)
        items[name] = mean.fillna(items[name]).fillna(own)
    joined = Scores(
        np.where(np.isnan(values), more, values),
        models,
        items.drop(columns="n_options", errors="ignore"),
        scale=first.scale,
        average=first.average,
        repeats=Repeats.from_counts(np.nan_to_num(counts).astype(np.uint32), variances),
    )
    shared = first.items.index.intersection(other.items.index, sort=False)
    return with_conditions(joined, Benchmark(other.items.loc[shared])) if len(shared) else joined


def _united(
    first: "pd.DataFrame", other: "pd.DataFrame", column: str = "", unknown: str = ""
) -> "pd.DataFrame":
    """Return the rows of both, by id; the first frame's values count, where it has them."""
    whole = first.combine_first(other).loc[first.index.union(other.index, sort=False)]
    whole = whole[[*dict.fromkeys([*first.columns, *other.columns])]]
    if column in whole:
        whole[column] = whole[column].fillna(unknown)
    is_text = pd.api.types.is_string_dtype  # and objects
    texts = [name for name, kind in whole.dtypes.items() if is_text(kind)]
    return whole.assign(**{str(name): whole[name].fillna("") for name in texts})


def _spread(table: Scores) -> tuple[Any, FloatArray]:
    if table.repeats is not None:
        return table.repeats.counts, table.repeats.variances
    return table.is_run, np.full((table.n_models, table.n_items), np.nan)


def _placed(table: Scores, models: "pd.DataFrame", items: "pd.DataFrame", cells: Any) -> FloatArray:
    """Return a table's cells at the places of its models and items in a larger table."""
    whole = np.full((len(models), len(items)), np.nan)
    rows = models.index.get_indexer(table.models.index)
    whole[np.ix_(rows, items.index.get_indexer(table.items.index))] = cells
    return whole
