"""Scores from CSV, Parquet and JSONL tables whose columns the user names."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pandas as pd

from fewbench._content import other_separator, refuse_pointer, text_encoding, why_not_utf8
from fewbench._memory import check_table_memory
from fewbench._names import some
from fewbench.errors import FewbenchError, ReaderError, first_line
from fewbench.scores import Scale, Scores, from_long, from_wide


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a long table; without `item` and `score` the table is wide.

    A table of one model needs no column `model`: `only_model` names it. `keep_item` and
    `keep_model` are further columns to keep with the items and the models.
    """

    model: str | None = None
    item: str | None = None
    score: str | None = None
    task: str | None = None
    date: str | None = None
    family: str | None = None
    only_model: str | None = None
    keep_item: tuple[str, ...] = ()
    keep_model: tuple[str, ...] = ()


def read_table(
    path: str | os.PathLike[str],
    columns: Columns,
    *,
    transposed: bool = False,
    scale: Scale | None = None,
) -> Scores:
    """Read a long or wide table; its kind follows from the columns named, never from a guess.

    Parameters
    ----------
    path : path
        A .csv, .tsv, .parquet, .jsonl or .ndjson file.
    columns : Columns
        `model`, `item` and `score` for a long table; only `model` for a wide one (one row a
        model, all other columns are items).
    transposed : bool
        For a wide table: rows are items, and `columns.item` names their column.
    scale : Scale, optional
        The scale of the scores, [0, 1] by default.

    Raises
    ------
    ReaderError, ScoresError
        If the file cannot be read or its content does not fit.
    """
    source = Path(path)
    long = columns.item is not None and columns.score is not None
    label = columns.item if transposed else columns.model
    if not long and label is None:
        raise ReaderError(
            f"{source}: which columns hold what?",
            hint="fewbench import reads tables; long: --model M --item I --score S; wide: --model M"
            " (one row a model) or --item I --transposed (one row an item)",
        )
    _check_layout(source, columns, long, transposed)
    frame = load_table(source, text=[c for c in (columns.model, columns.item, columns.task) if c])
    try:
        if not long:
            return from_wide(frame, model=label, transposed=transposed, scale=scale)
        model = columns.model
        if model is None and columns.only_model is not None:
            # Before the column that the user does not know of is added, lest a hint names it.
            require(frame, [str(columns.item), str(columns.score)])
            model = "(model)"
            frame = frame.assign(**{model: columns.only_model})
        if model is None:
            raise ReaderError("which column holds the models?", hint="add --model COLUMN")
        return from_long(
            frame,
            model=model,
            item=str(columns.item),
            score=str(columns.score),
            task=columns.task,
            date=columns.date,
            family=columns.family,
            item_columns=columns.keep_item,
            model_columns=columns.keep_model,
            scale=scale,
        )
    except FewbenchError as error:
        raise type(error)(f"{source}: {error.message}", hint=error.hint) from error


def _check_layout(source: Path, columns: Columns, long: bool, transposed: bool) -> None:
    """Raise ReaderError for columns that the layout does not use."""
    if long:
        if transposed:
            raise ReaderError(
                f"{source}: --item and --score name the columns of a long table, which cannot be "
                "--transposed",
                hint="leave out --transposed; or --score, if rows are items and columns models",
            )
        return
    named = {
        "--model": columns.model if transposed else None,
        "--item": None if transposed else columns.item,
        "--score": columns.score,
        "--task": columns.task,
        "--date": columns.date,
        "--family": columns.family,
        "--keep-item": columns.keep_item,
        "--keep-model": columns.keep_model,
    }
    useless = [option for option, column in named.items() if column]
    if useless:
        raise ReaderError(
            f"{source}: a wide table has only a column of {'items' if transposed else 'models'}, "
            f"besides the scores; it does not use {', '.join(useless)}",
            hint="name --item and --score if the table is long; give attributes in files of their "
            "own, with fewbench import --models FILE --items FILE",
        )


def require(frame: pd.DataFrame, names: list[str]) -> None:
    """Raise ReaderError unless a table has these columns."""
    lacking = [name for name in names if name not in frame.columns]
    if lacking:
        raise ReaderError(
            f"the table has no column {some(lacking)}",
            hint=f"its columns are {some(frame.columns, most=8)}",
        )


def load_table(source: Path, text: list[str]) -> pd.DataFrame:
    """Read a file into pandas, ids as text so that '007' and '7' stay two."""
    readers = {
        ".csv": _csv,
        ".tsv": _csv,
        ".parquet": _parquet,
        ".jsonl": _jsonl,
        ".ndjson": _jsonl,
    }
    suffix = source.suffix.lower()
    if suffix not in readers:
        raise ReaderError(
            f"{source}: not a kind of table that fewbench knows",
            hint=f"one of {', '.join(readers)}",
        )
    if not source.is_file():
        raise ReaderError(f"{source}: no such file")
    refuse_pointer(source, ReaderError)
    check_table_memory(source)
    try:
        return readers[suffix](source, text)
    except (FewbenchError, MemoryError):
        raise
    except Exception as error:  # pandas and pyarrow have no common base of errors
        reason = first_line(error)
        raise ReaderError(f"{source}: cannot be read as {suffix[1:]} ({reason})") from error


def _csv(source: Path, text: list[str]) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import csv

    delimiter = "\t" if source.suffix.lower() == ".tsv" else ","
    if (other := other_separator(source, delimiter)) is not None:
        raise ReaderError(f"{source}: {other[0]}", hint=other[1])
    encoding = text_encoding(source)
    try:
        table = csv.read_csv(
            source,
            read_options=csv.ReadOptions(encoding="utf8" if encoding == "utf-8-sig" else encoding),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types={name: pa.string() for name in text}, null_values=["", "nan", "NaN"]
            ),
        )
        odd = any(pa.types.is_binary(kind) for kind in table.schema.types)  # no text in UTF-8
        if odd and (why := why_not_utf8(source)):
            raise ReaderError(f"{source}: {why[0]}", hint=why[1])
    except (pa.ArrowInvalid, UnicodeError):
        if why := why_not_utf8(source):
            raise ReaderError(f"{source}: {why[0]}", hint=why[1]) from None
        raise
    names = pd.Index(table.column_names)
    twice = names[names.duplicated()]
    if len(twice):
        raise ValueError(f"the header names {some(twice)} twice")
    return cast(pd.DataFrame, table.to_pandas())


def _parquet(source: Path, text: list[str]) -> pd.DataFrame:
    import pyarrow.parquet as pq

    return cast(pd.DataFrame, pq.read_table(source).to_pandas())


def _jsonl(source: Path, text: list[str]) -> pd.DataFrame:
    try:
        return _json_rows(source)
    except UnicodeDecodeError:
        if why := why_not_utf8(source):
            raise ReaderError(f"{source}: {why[0]}", hint=why[1]) from None
        raise


def _json_rows(source: Path) -> pd.DataFrame:
    rows = []
    with source.open(encoding=text_encoding(source)) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number} is not whole JSON: {error}") from error
            if not isinstance(row, dict):
                raise ValueError(f"line {number} is not a JSON object")
            rows.append(row)
    return pd.DataFrame(rows)
