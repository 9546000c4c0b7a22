"""Attributes of models and items from tables of their own, joined to scores."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._names import counted, did_you_mean, some
from fewbench.errors import FewbenchError, Mistakes, ReaderError
from fewbench.readers.frames import TEXT, load_table
from fewbench.readers.values import is_unicode
from fewbench.scores import Scores
from fewbench.scores.benchmark import CLUSTER, WEIGHT
from fewbench.scores.build import require_columns


def join_attributes(
    scores: Scores,
    models: str | os.PathLike[str] | None = None,
    items: str | os.PathLike[str] | None = None,
) -> Scores:
    """Add columns from a table of models and a table of items to scores.

    Parameters
    ----------
    scores : Scores
    models : path, optional
        A table (.csv, .tsv, .parquet, .jsonl, .ndjson) with one row per model: a column `model`
        with the ids, and any others. `date`, `family` and `role` have a meaning.
    items : path, optional
        The same for items, with a column `item`. A column `task` replaces the tasks, and a `weight`
        of 0 retires an item.

    Raises
    ------
    ReaderError
        If a file cannot be read, its ids differ from those of the scores, or a column other than
        `task` contradicts one of the scores.
    ScoresError
        If the result is invalid, such as an item without a task.
    """
    mistakes = Mistakes()
    for kind, path in (("model", models), ("item", items)):
        with mistakes.noted():
            scores = scores if path is None else _joined(scores, Path(path), kind)
    mistakes.refuse()
    return scores


def _joined(scores: Scores, source: Path, kind: str) -> Scores:
    metadata = read_attributes(source, kind)
    try:
        if kind == "item" and WEIGHT in metadata:
            weights = pd.to_numeric(metadata[WEIGHT], errors="coerce")
            if len(retired := metadata.index[weights == 0]):
                left = ~scores.items.index.isin(retired)
                scores = scores.take(items=np.flatnonzero(left))
                metadata = metadata[metadata.index.isin(scores.items.index)]
        table = _join(getattr(scores, f"{kind}s"), metadata, kind)
        return scores.changed(**{f"{kind}s": table})
    except FewbenchError as error:
        raise error.within(str(source)) from error


def read_attributes(source: Path, kind: str) -> "pd.DataFrame":
    """Read a table of models or items by its id, whatever scores it will be joined to."""
    frame = load_table(source, text=list(TEXT))
    try:
        return _attributes(frame, kind)
    except FewbenchError as error:
        raise error.within(str(source)) from error


def _attributes(frame: "pd.DataFrame", kind: str) -> "pd.DataFrame":
    """Return the table by id, with names as text and positions as whole numbers."""
    require_columns(frame, [kind])
    names = pd.Index([str(name) for name in frame.columns])
    if names.duplicated().any():
        raise ReaderError(f"two columns are named {some(names[names.duplicated()])}")
    if not all(is_unicode(name) for name in names):
        raise ReaderError("the name of a column is not valid Unicode")
    if not all(name.strip() for name in names):
        raise ReaderError("a column has no name", hint="write the table without an index")
    reserved = sorted(({"model", "item", "score"} - {kind}) & set(names))
    if reserved:
        raise ReaderError(f"an attribute may not be named {some(reserved)}", hint="rename it")
    plain = pd.DataFrame({name: _column(frame.iloc[:, at], name) for at, name in enumerate(names)})
    if plain[kind].duplicated().any():
        twice = plain[kind][plain[kind].duplicated()].unique()
        raise ReaderError(
            f"{counted(len(twice), f'{kind} id appears', f'{kind} ids appear')} more than once: "
            f"{some(twice)}",
            hint=f"keep one row per {kind}",
            kind="repeated",
        )
    return plain.set_index(kind)


def _join(table: "pd.DataFrame", metadata: "pd.DataFrame", kind: str) -> "pd.DataFrame":
    unknown = metadata.index.difference(table.index, sort=False)
    if len(unknown):
        raise ReaderError(
            f"{counted(len(unknown), f'{kind} is', f'{kind}s are')} not in the scores: "
            f"{some(unknown)}",
            hint=f"remove them; {kind}s there look like {some(table.index[:2])}",
        )
    lacking = table.index.difference(metadata.index, sort=False)
    if len(lacking):
        raise ReaderError(
            f"{len(lacking)} {kind}s of the scores are missing: {some(lacking)}",
            hint=f"add a row for each {kind}, with empty cells for unknown values",
        )
    metadata = metadata.loc[table.index]
    if "role" in metadata and kind == "model" and not set(metadata["role"]) <= {"source", "target"}:
        raise ReaderError("column 'role' must be source or target for every model")
    added = {}
    for name, column in metadata.items():
        if name not in table or name == "task":
            added[str(name)] = column
            continue
        for label, here, there in zip(table.index, table[name], column, strict=True):
            first, other = ("" if pd.isna(value) else value for value in (here, there))
            if first != other and str(first) != str(other):
                raise ReaderError(
                    f"column {name!r} contradicts the scores: {kind} {label!r} has {first!r} there "
                    f"and {other!r} here",
                    hint="rename the column, or correct it",
                )
    return table.assign(**added)


def _column(column: "pd.Series[Any]", name: str) -> "pd.Series[Any]":
    if name in TEXT:
        column = column.astype(object)
    if column.dtype == object:
        for row, value in enumerate(column, start=1):
            if not pd.api.types.is_scalar(value):
                raise ReaderError(f"column {name!r} has a list or an object at row {row}")
            if isinstance(value, str) and not is_unicode(value):
                raise ReaderError(f"column {name!r} is not valid Unicode at row {row}")
    if name in TEXT:
        return column.map(lambda value: "" if pd.isna(value) else str(value)).astype(object)
    if name != "doc_id":
        return column
    numbers = pd.to_numeric(column, errors="coerce").astype("Float64")
    bad = (numbers.isna() & column.notna()) | (numbers % 1 != 0).fillna(False) | (numbers < 0)
    if bad.any():
        at = int(bad.to_numpy(bool, na_value=False).argmax())
        raise ReaderError(
            f"column {name!r} has {str(column.iloc[at])!r} at row {at + 1}, not a position",
            hint="positions are 0, 1, 2, …; leave unknown ones empty",
        )
    return numbers.astype("Int64" if numbers.isna().any() else "int64")


def in_clusters(scores: Scores, by: str) -> Scores:
    """Return scores whose items belong together by a column; ReaderError if it is not such a
    column.

    Examples
    --------
    >>> from fewbench import from_arrays
    >>> table = from_arrays([[1, 0, 1]], models=["a"])
    >>> table = table.changed(items=table.items.assign(passage=["p1", "p1", "p2"]))
    >>> in_clusters(table, "passage").cluster_of.tolist()
    [0, 0, 1]
    """
    if by not in scores.items:
        raise ReaderError(
            f"the items have no column {by!r}",
            hint=did_you_mean(by, map(str, scores.items.columns), "add it with --items FILE"),
        )
    clustered = scores.changed(items=scores.items.assign(**{CLUSTER: scores.items[by]}))
    if (clusters := clustered.cluster_of) is None or len(np.unique(clusters)) < 2:
        what = "the same" if clusters is not None else "different"
        raise ReaderError(
            f"column {by!r} is {what} for all items, so it does not say which belong together",
            hint="name a column with one value for each group of items",
        )
    return clustered
