"""Read a benchmark from a table of items: CSV, JSON lines or Parquet, without any scores."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._names import counted, some
from fewbench._warned import issue
from fewbench.errors import FewbenchError, ReaderError
from fewbench.readers.frames import TEXT, load_table
from fewbench.readers.reading import FoundFiles
from fewbench.readers.values import is_unicode
from fewbench.scores import Benchmark
from fewbench.scores.benchmark import CLUSTER, PREDICTION, PROXY, WEIGHT, retired_note
from fewbench.scores.costs import read_amounts
from fewbench.scores.table import NO_TASK

IDS = ("id", "item")
COST = "cost"
KNOWN = ("task", WEIGHT, COST, CLUSTER, "content", "text", "question", "input")
"""Columns that tables of items have, and tables of scores do not."""


def read_items(path: str | os.PathLike[str]) -> Benchmark:
    r"""Read the items of a benchmark, to evaluate models without source models.

    Parameters
    ----------
    path : path
        A .csv, .tsv, .parquet, .jsonl or .ndjson file with one row per item: a column `id` (or
        `item`), and, if there are any, `task`, `weight` (in the full score; 0 retires), `cost` (of
        running the item; 0 or more), `cluster` (items of one cluster belong together, such as
        questions on one passage), `proxy:NAME` (a number that tells of the scores, such as a
        model's confidence), `prediction:MODEL` (what a model predicts, where right answers come
        later) and others, which are kept. Lists and objects become JSON text.

    Raises
    ------
    ReaderError
        If the file cannot be read, holds scores, or a row has no id, another row's id, no task or
        a weight or cost that is not possible.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "items.csv"
    >>> _ = path.write_text("id,task,weight\n007,sums,1\n8,words,3\n")
    >>> benchmark = read_items(path)
    >>> benchmark.item_ids.tolist(), benchmark.item_weights.tolist()
    (['007', '8'], [0.25, 0.75])
    """
    benchmark, notes = items_and_notes(Path(path))
    issue(notes)
    return benchmark


def items_and_notes(source: Path) -> tuple[Benchmark, tuple[str, ...]]:
    """Return the benchmark of a file of items, and a note on those that are retired."""
    frame = load_table(source, [*TEXT, "id"])
    try:
        items = _items(frame)
        left = items[items[WEIGHT] > 0] if WEIGHT in items else items
        return Benchmark(left), retired_note(len(items), len(left))
    except FewbenchError as error:
        raise ReaderError(f"{source}: {error.message}", hint=error.hint) from error


def are_items(found: FoundFiles) -> bool:
    """Whether a file is a table of items without scores: it names items, but no model or score.

    Raises
    ------
    ReaderError
        If its columns may as well be the models of a table of scores.
    """
    path, columns = found.sources[0], found.columns
    if not set(IDS) & set(columns) or {"model", "score"} & set(columns) or found.is_logs:
        return False
    others = [name for name in columns if name not in IDS]
    known = [name for name in columns if name in KNOWN or name.startswith((PREDICTION, PROXY))]
    if others and not known:
        frame = load_table(path, [*IDS])
        ids = frame[next(name for name in IDS if name in columns)]
        is_wide = all(pd.api.types.is_numeric_dtype(frame[name]) for name in others)
        if is_wide or ids.astype(str).duplicated().any():
            raise ReaderError(
                f"{path}: the columns have two meanings: {some(others)} may be scores and models, "
                "or attributes of items",
                hint="import scores first: fewbench import, with --model, --item and --score, or "
                "with --item and --transposed; in a file of items, add a column task",
            )
    return True


def answer_columns(
    names: Sequence[str], item: str | None = None, score: str | None = None
) -> tuple[str | None, str | None]:
    """Return those of a table's columns that hold ids and scores of answers: as named, or as usual.

    Usual are `id` or `item`, and `score`. As named if the table does not have both, has `id` and
    `item`, or may have answers of several models.
    """
    ids = [item] if item else [name for name in IDS if name in names]
    if "model" in names or len(ids) != 1 or not (score or "score" in names):
        return item, score
    return ids[0], score or "score"


def _items(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return the items by id, each column checked."""
    label = _label_of([str(name) for name in frame.columns])
    if not len(frame):
        raise ReaderError("no items", hint="write one row per item")
    ids = _texts(frame[label], label, "give every item an id")
    seen: dict[str, int] = {}
    for row, item in enumerate(ids, start=1):
        if seen.setdefault(item, row) != row:
            raise ReaderError(
                f"rows {seen[item]} and {row} have the same {label} {item!r}",
                hint="give every item its own id",
            )
    columns: dict[str, Any] = {"task": [NO_TASK] * len(frame)}
    for at, name in enumerate(map(str, frame.columns)):
        column = frame.iloc[:, at]
        if name == "task":
            columns[name] = _texts(column, name, "give every item a task, or leave the column out")
        elif name in (WEIGHT, COST):
            columns[name] = _numbers(column, name)
        elif name != label:
            columns[name] = _plain(column, name)
    index = pd.Index(np.array(ids, dtype=object))
    return pd.DataFrame(
        {
            name: pd.Series(np.array(values, dtype=object), index).infer_objects()
            for name, values in columns.items()
        }
    )


def _label_of(names: list[str]) -> str:
    there = [name for name in IDS if name in names]
    if len(there) != 1:
        which = "the columns 'id' and 'item'" if there else "no column 'id'"
        raise ReaderError(
            f"the table has {which}",
            hint="rename one of them" if there else f"its columns are {some(names, most=8)}",
        )
    if scores := [name for name in ("model", "score") if name in names]:
        raise ReaderError(
            f"the table has the column {some(scores)}, so it holds results and not only items",
            hint="read it with fewbench import (in Python fewbench.import_results)",
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ReaderError(f"two columns are named {some(twice)}", hint="rename one of them")
    if bad := [name for name in names if not name.strip() or not is_unicode(name)]:
        raise ReaderError(
            f"{counted(len(bad), 'column')} without a name, or not valid Unicode",
            hint="write the table without an index",
        )
    return there[0]


def _texts(column: "pd.Series[Any]", name: str, hint: str) -> list[str]:
    texts = []
    for row, value in enumerate(column.astype(object), start=1):
        is_single = isinstance(value, str | int | np.integer) and not isinstance(value, bool)
        if isinstance(value, float | np.floating) and float(value).is_integer():
            value, is_single = int(value), True  # pandas reads numbers with gaps as fractions
        text = str(value) if is_single else ""
        if not text.strip() or not is_unicode(text):
            is_empty = is_single or _is_missing(value)
            fault = "is empty" if is_empty and is_unicode(text) else f"is {value!r}, not a text"
            raise ReaderError(f"{name} {fault} at row {row}", hint=hint)
        texts.append(text)
    return texts


def _numbers(column: "pd.Series[Any]", name: str) -> list[float]:
    numbers = []
    values = column.astype(object)
    converted = read_amounts(values) if name == COST else pd.to_numeric(values, errors="coerce")
    for row, (value, number) in enumerate(zip(values, converted, strict=True), start=1):
        if not (np.isfinite(number) and number >= 0):
            raise ReaderError(
                f"{name} is {value!r} at row {row}, not a number of 0 or more",
                hint="give every item a number, or leave the column out",
            )
        numbers.append(float(number))
    if name == WEIGHT and not any(numbers):
        raise ReaderError("no item has a weight above 0", hint="0 retires an item")
    return numbers


def _plain(column: "pd.Series[Any]", name: str) -> list[Any]:
    """Return values as a table of items can hold them: lists and objects as JSON text."""
    values = [value.tolist() if isinstance(value, np.ndarray) else value for value in column]
    kinds = {type(value) for value in values if not _is_missing(value)}
    if kinds & {list, dict} or (len(kinds) > 1 and not kinds <= {int, float}):
        values = [_json(value) for value in values]
    for row, value in enumerate(values, start=1):
        if isinstance(value, str) and not is_unicode(value):
            raise ReaderError(f"{name} is not valid Unicode at row {row}", hint="write it as UTF-8")
    return values


def _json(value: Any) -> Any:
    if isinstance(value, str) or _is_missing(value):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _is_missing(value: Any) -> bool:
    single: Any = value if pd.api.types.is_scalar(value) else ""
    return bool(pd.isna(single))
