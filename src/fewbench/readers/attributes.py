"""What is known of models and items, from tables of their own, joined onto Scores of any form."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from fewbench._names import some
from fewbench.errors import FewbenchError, ReaderError
from fewbench.readers.tables import load_table, require
from fewbench.scores import Scores

# Columns that are names, whatever they look like: '007' is not 7, and a date is ISO text.
TEXT = ("model", "item", "task", "date", "family", "role", "sample_id")


def join_attributes(
    scores: Scores,
    models: str | os.PathLike[str] | None = None,
    items: str | os.PathLike[str] | None = None,
) -> Scores:
    """Add the columns of a table of models, and of a table of items, to scores.

    Parameters
    ----------
    scores : Scores
        Scores, however they were read.
    models : path, optional
        A table (.csv, .tsv, .parquet, .jsonl, .ndjson) with one row a model: a column `model`
        with the ids, and any others. `date`, `family` and `role` have their meaning.
    items : path, optional
        The same for the items, the ids in a column `item`. A column `task` replaces the tasks.

    Raises
    ------
    ReaderError
        If a file cannot be read, its ids are not exactly those of the scores, or a column other
        than `task` contradicts one that the scores have.
    ScoresError
        If the scores with these columns are not sound, such as an item without a task.
    """
    for kind, path in (("model", models), ("item", items)):
        if path is None:
            continue
        source = Path(path)
        frame = load_table(source, text=list(TEXT))
        try:
            table = scores.models if kind == "model" else scores.items
            joined = _join(table, _by_id(_plain(frame, kind), kind), kind)
            scores = (
                replace(scores, models=joined) if kind == "model" else replace(scores, items=joined)
            )
        except FewbenchError as error:
            raise type(error)(f"{source}: {error.message}", hint=error.hint) from error
    return scores


def _plain(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    require(frame, [kind])
    names = pd.Index([str(name) for name in frame.columns])
    if names.duplicated().any():
        raise ReaderError(f"two columns are named {some(names[names.duplicated()])}")
    if not all(_is_unicode(name) for name in names):
        raise ReaderError("the name of a column is no valid Unicode")
    if not all(name.strip() for name in names):
        raise ReaderError("a column has no name", hint="write the table without an index")
    reserved = sorted(({"model", "item", "score"} - {kind}) & set(names))
    if reserved:
        raise ReaderError(f"an attribute may not be named {some(reserved)}", hint="rename it")
    return pd.DataFrame({name: _column(frame.iloc[:, at], name) for at, name in enumerate(names)})


def _column(column: "pd.Series[Any]", name: str) -> "pd.Series[Any]":
    if name in TEXT:
        column = column.astype(object)
    if column.dtype == object:
        for row, value in enumerate(column, start=1):
            if not pd.api.types.is_scalar(value):
                raise ReaderError(f"column {name!r} holds a list or an object at row {row}")
            if isinstance(value, str) and not _is_unicode(value):
                raise ReaderError(f"column {name!r} holds no valid Unicode at row {row}")
    if name in TEXT:
        return column.map(lambda value: "" if pd.isna(value) else str(value)).astype(object)
    if name == "doc_id":
        return _whole(column)
    return column


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can write
        return False
    return True


def _whole(column: "pd.Series[Any]") -> "pd.Series[Any]":
    numbers = pd.to_numeric(column, errors="coerce").astype("Float64")
    bad = (numbers.isna() & column.notna()) | (numbers % 1 != 0).fillna(False) | (numbers < 0)
    if bad.any():
        row = int(bad.to_numpy(bool, na_value=False).argmax())
        raise ReaderError(
            f"column {column.name!r} holds {str(column.iloc[row])!r} at row {row + 1}, not a "
            "position",
            hint="positions are 0, 1, 2, …; leave it empty where it is not known",
        )
    return numbers.astype("Int64" if numbers.isna().any() else "int64")


def _by_id(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    if frame[kind].duplicated().any():
        twice = frame[kind][frame[kind].duplicated()].unique()
        raise ReaderError(
            f"{len(twice)} {kind} ids appear more than once: {some(twice)}",
            hint=f"keep one row for each {kind}",
        )
    return frame.set_index(kind)


def _join(table: pd.DataFrame, given: pd.DataFrame, kind: str) -> pd.DataFrame:
    unknown = given.index.difference(table.index, sort=False)
    if len(unknown):
        raise ReaderError(
            f"{len(unknown)} {kind}s are not in the scores: {some(unknown)}",
            hint=f"remove them; {kind}s there look like {some(table.index[:2])}",
        )
    lacking = table.index.difference(given.index, sort=False)
    if len(lacking):
        raise ReaderError(
            f"{len(lacking)} {kind}s of the scores lack: {some(lacking)}",
            hint=f"add a row for each {kind}, with empty cells for what is not known",
        )
    given = given.loc[table.index]
    if "role" in given and kind == "model" and not set(given["role"]) <= {"source", "target"}:
        raise ReaderError("column 'role' must say source or target for every model")
    added = {}
    for name, column in given.items():
        if name in table and name != "task":
            _agree(table[name], column, kind)
        else:
            added[str(name)] = column
    return table.assign(**added)


def _agree(old: "pd.Series[Any]", new: "pd.Series[Any]", kind: str) -> None:
    """Raise ReaderError unless a column equals that of the scores; 1 equals "1"."""
    for label, here, there in zip(old.index, old, new, strict=True):
        one, other = ("" if pd.isna(value) else value for value in (here, there))
        if one != other and str(one) != str(other):
            raise ReaderError(
                f"column {new.name!r} is already in the scores, with other values: {kind} "
                f"{label!r} has {one!r} there and {other!r} here",
                hint="rename the column, or correct it",
            )
