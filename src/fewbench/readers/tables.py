"""Tables named by the user: scores, attributes of models and items, and scores by task."""

import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from csv import Error as CsvError
from csv import reader as rows_of
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any, cast

from fewbench._content import other_separator, refuse_pointer, text_encoding, why_not_utf8
from fewbench._json import loads
from fewbench._lazy import pandas as pd
from fewbench._memory import check_long_memory, check_table_memory
from fewbench._names import counted, some
from fewbench.errors import ColumnError, FewbenchError, MissingFileError, ReaderError, first_line
from fewbench.scores import Scale, Scores, from_long, from_wide
from fewbench.scores.cell_words import EMPTY, CellWords
from fewbench.scores.files import is_saved

# Columns that are text whatever they look like: '007' is not 7.
TEXT = ("model", "item", "task", "date", "family", "role", "sample_id")
KEPT = {
    "task": "--task",
    "date": "--date",
    "family": "--family",
    "role": "--keep-model",
    "cost": "--keep-item",
}
"""Options that keep columns of usual names in a long table."""
FEW, MANY = 1 << 20, 32 << 20  # bytes of a long .csv file that are parsed at a time


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a long table; without `item` and `score` the table is wide.

    `only_model` names the model of a table without a model column. `keep_item` and `keep_model`
    are further columns to keep with the items and the models.
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

    @property
    def ids(self) -> list[str]:
        """Columns that are text in a long table."""
        return [name for name in (self.model, self.item, self.task) if name]

    @property
    def named(self) -> list[str]:
        """All columns of a long table that are read, each once."""
        others = (self.score, self.date, self.family, *self.keep_item, *self.keep_model)
        return list(dict.fromkeys([*self.ids, *(name for name in others if name)]))


def read_table(
    path: str | os.PathLike[str],
    columns: Columns,
    *,
    transposed: bool = False,
    scale: Scale | None = None,
    has_tasks: bool = False,
    words: CellWords | None = None,
    trials: str | None = None,
    notes: list[str] | None = None,
) -> Scores:
    """Read a long or wide table of scores; the columns named say which it is.

    Parameters
    ----------
    path : path
        A .csv, .tsv, .parquet, .jsonl or .ndjson file.
    columns : Columns
        `model`, `item` and `score` for a long table; only `model` for a wide table (one row per
        model, all other columns are items).
    transposed : bool
        For a wide table: rows are items, and `columns.item` names their column.
    scale : Scale, optional
        The scale of the scores, [0, 1] by default.
    has_tasks : bool
        Whether a column `task` of a long table contains the tasks if `columns` names none.
    words : CellWords, optional
        Texts for missing, right and wrong scores.
    trials : str, optional
        For a long table: what several rows of a model and item become; see `from_long`.
    notes : list of str, optional
        Receives a note on rows without a score.

    Raises
    ------
    ReaderError, ScoresError
        If the file cannot be read or its content is invalid.
    """
    source = Path(path)
    _reader_of(source)
    long = columns.item is not None and columns.score is not None
    label = columns.item if transposed else columns.model
    if not long and label is None:
        raise _no_columns_named(source)
    _check_layout(source, columns, long, transposed, trials)
    own_task = (
        has_tasks
        and columns.task is None
        and "task" not in (columns.model, columns.item, columns.score)
    )
    if own_task:
        columns = replace(columns, task="task")
    words = words or CellWords()
    frame = load_table(source, columns.ids, columns if long else None, words)
    if own_task and "task" not in frame.columns:
        columns = replace(columns, task=None)
    is_asked = notes is not None and long and not words.missing
    n_empty = int(frame[columns.score].isna().sum()) if is_asked and columns.score in frame else 0
    if notes is not None and n_empty:
        notes.append(
            f"{source}: {counted(n_empty, 'row')} of {len(frame):,} without a score "
            f"{'counts' if n_empty == 1 else 'count'} as not run; if the benchmark counts "
            "them as wrong, pass --missing wrong (in Python missing=['wrong'])"
        )
    try:
        if not long:
            return from_wide(
                frame, model=label, transposed=transposed, scale=scale, **asdict(words)
            )
        model = columns.model
        if model is None and columns.only_model is not None:
            # Checked before a column is added that the user does not know.
            require_columns(frame, [str(columns.item), str(columns.score)])
            model = "(model)"
            frame[model] = pd.Categorical([columns.only_model]).repeat(len(frame))
        if model is None:
            raise ReaderError("no column of models named", hint="add --model COLUMN")
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
            trials=trials,
            **asdict(words),
        )
    except FewbenchError as error:
        hint = error.hint
        if long and isinstance(error, ColumnError):  # only the named columns were read
            with suppress(FewbenchError):  # too large to read whole
                names = some(load_table(source, []).columns, most=8)
                hint = f"the table's columns are {names}; {hint}"
        raise type(error)(f"{source}: {error.message}", hint=hint) from error


def table_columns(path: Path) -> list[str]:
    """Return the columns of a table, [] if it is none; of JSON lines, those of the first."""
    suffix = path.suffix.lower()
    if not path.is_file():
        return []
    try:
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            return [] if is_saved(path) else list(pq.read_schema(path).names)
        if suffix not in (".csv", ".tsv", ".jsonl", ".ndjson"):
            return []
        with path.open(encoding=text_encoding(path), newline="") as lines:
            if suffix in (".csv", ".tsv"):
                return next(rows_of(lines, delimiter="\t" if suffix == ".tsv" else ","), [])
            first: Any = loads(next((line for line in lines if line.strip()), "{}"))
            return list(first) if isinstance(first, dict) else []
    except (OSError, ValueError, CsvError, FewbenchError):  # its reader says what is wrong
        return []


def options_that_keep(columns: Sequence[str]) -> str:
    """Return the options that keep the columns of usual names among these.

    >>> options_that_keep(["cost", "reply", "Task"])
    '--keep-item cost --task Task'
    """
    options = ((name, KEPT.get(name.lower())) for name in columns)
    return " ".join(f"{option} {quote(name)}" for name, option in options if option)


def _no_columns_named(source: Path) -> ReaderError:
    """Return the error for a table whose columns are not named, with the columns it has."""
    columns = [str(name) for name in load_table(source, []).columns]
    by_name = {name.lower(): quote(name) for name in columns}
    by_name = {"item": by_name["id"], **by_name} if "id" in by_name else by_name
    model, item, score = (
        f"--{name} {by_name.get(name, 'COLUMN')}" for name in ("model", "item", "score")
    )
    if {"item", "score"} <= {*by_name}:
        options = [item, score, *([model] if "model" in by_name else [])]
        hint = " ".join([*options, options_that_keep(columns)]).strip()
        hint += "" if "model" in by_name else ", and --model COLUMN if it names models"
    else:
        hint = (
            f"long table: {item} {score}, and {model} if it names models; wide table: {model} (one "
            f"row per model) or {item} --transposed"
        )
        if "item" not in by_name:
            hint += "; a file of items, which has no scores, needs a column id"
    return ReaderError(
        f"{source}: no columns named; its columns are {some(columns, most=8)}",
        hint=f"{hint}; in Python, the same as arguments of import_results",
    )


def _check_layout(
    source: Path, columns: Columns, long: bool, transposed: bool, trials: str | None
) -> None:
    """Raise ReaderError for columns that the layout does not use."""
    if long:
        if transposed:
            raise ReaderError(
                f"{source}: --item and --score name columns of a long table, which cannot be "
                "--transposed",
                hint="omit --transposed; or --score, if rows are items and columns models",
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
        "--trials": trials,
    }
    useless = [option for option, column in named.items() if column]
    if not transposed and useless and (columns.item is None) != (columns.score is None):
        lacking = "--score" if columns.score is None else "--item"
        raise ReaderError(
            f"{source}: {lacking} is missing", hint=f"a long table needs {lacking} COLUMN"
        )
    if useless:
        raise ReaderError(
            f"{source}: a wide table has one column of {'items' if transposed else 'models'} and "
            f"columns of scores; it does not use {', '.join(useless)}",
            hint="for a long table, pass --item and --score; pass attributes in separate files: "
            "fewbench import --models FILE --items FILE",
        )


def require_columns(frame: "pd.DataFrame", names: list[str]) -> None:
    """Raise ReaderError if a column is missing."""
    lacking = [name for name in names if name not in frame.columns]
    if lacking:
        raise ReaderError(
            f"the table has no column {some(lacking)}",
            hint=f"its columns are {some(frame.columns, most=8)}",
        )


def load_table(
    source: Path,
    text: list[str],
    long: Columns | None = None,
    words: CellWords | None = None,
) -> "pd.DataFrame":
    """Read a table into pandas; columns `text` stay text, so that '007' and '7' differ.

    Of a `long` table only the named columns are read, if all are there, and texts become
    categories, which take a fifth of the memory. With `words`, cells of scores are numbers as they
    are written, or stay text: '0x1' is no number.
    """
    read, suffix = _reader_of(source), source.suffix.lower()
    if long is None:
        check_table_memory(source)
    else:
        check_long_memory(source, len(long.named))
    try:
        return read(source, text, long, words)
    except (FewbenchError, MemoryError):
        raise
    except Exception as error:  # pandas and pyarrow have no common base of errors
        is_text = suffix != ".parquet" and isinstance(error, ValueError)  # as UnicodeError is
        if is_text and (why := why_not_utf8(source)):
            raise ReaderError(f"{source}: {why[0]}", hint=why[1]) from None
        reason = first_line(error)
        raise ReaderError(f"{source}: cannot be read as {suffix[1:]} ({reason})") from error


Reader = Callable[[Path, list[str], Columns | None, CellWords | None], "pd.DataFrame"]


def _reader_of(source: Path) -> Reader:
    """Return what reads a table; ReaderError if it has no content, or not that of a table."""
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
            f"{source}: not a table that fewbench can read", hint=f"use {', '.join(readers)}"
        )
    if not source.is_file():
        raise MissingFileError(f"{source}: no such file")
    refuse_pointer(source, ReaderError)
    if not source.stat().st_size:
        raise ReaderError(f"{source}: the file is empty", hint="write one row per line")
    return readers[suffix]


def _csv(
    source: Path, text: list[str], long: Columns | None, words: CellWords | None = None
) -> "pd.DataFrame":
    """Read strictly: rows of unequal length and repeated columns are errors."""
    import pyarrow as pa
    from pyarrow import csv

    delimiter = "\t" if source.suffix.lower() == ".tsv" else ","
    if (other := other_separator(source, delimiter)) is not None:
        raise ReaderError(f"{source}: {other[0]}", hint=other[1])
    encoding = text_encoding(source)
    parsing = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    reading = csv.ReadOptions(encoding="utf8" if encoding == "utf-8-sig" else encoding)

    empty = [*EMPTY, *(words.missing if words else ())]

    def kinds(types: dict[str, Any], **more: Any) -> Any:
        return csv.ConvertOptions(column_types=types, null_values=empty, **more)

    def checked(table: Any) -> Any:
        if any(pa.types.is_binary(kind) for kind in table.schema.types):  # not UTF-8
            raise ValueError("not text")
        names = pd.Index(table.schema.names)
        twice = names[names.duplicated()]
        if len(twice):
            raise ValueError(f"the header names {some(twice)} twice")
        return table

    types = dict.fromkeys(text, pa.string())
    if long is None and words is None:
        table = checked(csv.read_csv(source, reading, parsing, kinds(types)))
        return cast(pd.DataFrame, table.to_pandas())
    if long is not None:
        reading.use_threads = False  # each of them would hold blocks of its own
    with csv.open_csv(source, reading, parsing, kinds(types)) as head:
        first = {column.name: column.type for column in checked(head).schema}
    pa.default_memory_pool().release_unused()
    scored = [name for name in first if name not in text and long is None]
    scored += [long.score] if long is not None and long.score in first else []
    # Arrow guesses that '0x1' is a whole number; as a fraction it is none, and stays text.
    first |= {name: pa.float64() for name in scored if not pa.types.is_boolean(first[name])}
    types |= dict.fromkeys(scored, pa.string())  # where a cell is neither a number nor empty
    if long is None:
        try:
            table = csv.read_csv(source, reading, parsing, kinds(first))
        except pa.ArrowInvalid:
            table = csv.read_csv(source, reading, parsing, kinds(types))
        return cast(pd.DataFrame, checked(table).to_pandas())
    if not {*long.named} <= {*first}:
        return _csv(source, text, None)  # the error names all columns
    reading.block_size = min(max(FEW, source.stat().st_size // 32), MANY)
    texts = [*text, *(name for name in first if first[name] == pa.string())]
    first |= dict.fromkeys(texts, pa.dictionary(pa.int32(), pa.string()))
    only = {"include_columns": long.named}
    try:
        # Arrow keeps the whole file while it may have to change a type that it guessed.
        table = csv.read_csv(source, reading, parsing, kinds(first, **only))
    except pa.ArrowInvalid:
        table = csv.read_csv(source, reading, parsing, kinds(types, **only))
    return _converted(checked(table))


def _converted(table: Any) -> "pd.DataFrame":
    """Return an Arrow table in pandas; the table is empty then, and Arrow keeps no memory."""
    import pyarrow as pa

    pool = pa.default_memory_pool()
    pool.release_unused()
    frame = table.to_pandas(split_blocks=True, self_destruct=True)
    pool.release_unused()
    return cast(pd.DataFrame, frame)


def _parquet(
    source: Path, text: list[str], long: Columns | None, words: CellWords | None = None
) -> "pd.DataFrame":
    import pyarrow.parquet as pq

    names = Counter(pq.read_schema(source).names)
    if long is not None and all(names[name] == 1 for name in long.named):
        frame = _converted(pq.read_table(source, columns=long.named, read_dictionary=long.named))
        if {*long.named} <= {*frame}:  # else pandas made one of them the index
            return frame
    return cast(pd.DataFrame, pq.read_table(source).to_pandas())


def _jsonl(
    source: Path, text: list[str], long: Columns | None, words: CellWords | None = None
) -> "pd.DataFrame":
    rows, seen, texts = [], set[str](), dict[str, str]()
    columns: dict[str, Any] = {name: [] for name in long.named} if long else {}
    with source.open(encoding=text_encoding(source)) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = loads(line)
            except ValueError as error:
                raise ValueError(f"line {number} is not whole JSON: {error}") from error
            if not isinstance(row, dict):
                raise ValueError(f"line {number} is not a JSON object")
            if long is None:
                rows.append(row)
                continue
            seen.update(row)
            for name, cells in columns.items():
                cell = row.get(name, math.nan)
                cells.append(texts.setdefault(cell, cell) if isinstance(cell, str) else cell)
    if long is None:
        return pd.DataFrame(rows)
    if not seen.issuperset(columns):
        return _jsonl(source, text, None)  # the error names all columns
    for name, cells in columns.items():
        if all(isinstance(cell, str) for cell in cells):
            columns[name] = pd.Categorical(cells)
    return pd.DataFrame(columns)
