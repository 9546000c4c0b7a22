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
from fewbench._lazy import pandas as pd
from fewbench._memory import check_long_memory, check_table_memory
from fewbench._names import counted, some
from fewbench.errors import (
    ColumnError,
    FewbenchError,
    MissingFileError,
    Mistakes,
    ReaderError,
    first_line,
)
from fewbench.readers.json_rows import SUFFIXES, first_row, json_rows
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
NAMED_BY_FILE = "(model)"
"""Column of models that are called as their files."""
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
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
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
    path : path or sequence of paths
        A .csv, .tsv, .parquet, .jsonl, .ndjson or .json file. Several files of a long table are
        read as one.
    columns : Columns
        `model`, `item` and `score` for a long table; only `model` for a wide table (one row per
        model, all other columns are items). A long table without a column of models is of one
        model, which is called as the file is.
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
        Receives notes on rows without a score, and on models that are called as their files.

    Raises
    ------
    ReaderError, ScoresError
        If a file cannot be read or its content is invalid.
    """
    sources = [Path(path)] if isinstance(path, str | os.PathLike) else [Path(name) for name in path]
    for source in sources:
        _reader_of(source)
    long = columns.item is not None and columns.score is not None
    label = columns.item if transposed else columns.model
    if not long and label is None:
        raise _no_columns_named(sources[0])
    _check_layout(sources[0], columns, long, transposed, trials)
    words = words or CellWords()
    what = str(sources[0]) if len(sources) == 1 else f"{len(sources)} files ({some(sources)})"
    if long:
        columns = _with_own_task(sources, columns) if has_tasks else columns
        frame, columns = _long_rows(sources, columns, words, notes)
    else:
        frame = load_table(sources[0], columns.ids, None, words)
    try:
        if not long:
            return from_wide(
                frame, model=label, transposed=transposed, scale=scale, **asdict(words)
            )
        if notes is not None and not words.missing:
            notes += _empty_cells(what, frame, columns.score)
        return from_long(
            frame,
            model=str(columns.model),
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
        raise _explained(error, sources, columns).within(what) from error


def _explained(error: FewbenchError, sources: Sequence[Path], columns: Columns) -> FewbenchError:
    """Return an error about the rows of a table with what its columns suggest."""
    if error.parts:
        return Mistakes([_explained(part, sources, columns) for part in error.parts]).as_one()
    hint = error.hint
    if columns.model == NAMED_BY_FILE and columns.only_model is None:
        hint = "; ".join(filter(None, [hint, "if a column names models, add --model COLUMN"]))
    if columns.score and isinstance(error, ColumnError):  # only the named columns were read
        with suppress(FewbenchError):  # too large to read whole
            names = some(load_table(sources[0], []).columns, most=8)
            hint = f"the table's columns are {names}; {hint}"
    return type(error)(error.message, hint=hint)


def _with_own_task(sources: Sequence[Path], columns: Columns) -> Columns:
    """Return the columns, with that of tasks if all files have one of this name."""
    is_free = columns.task is None and "task" not in (columns.model, columns.item, columns.score)
    if is_free and all("task" in table_columns(source) for source in sources):
        return replace(columns, task="task")
    return columns


def _long_rows(
    sources: Sequence[Path], columns: Columns, words: CellWords, notes: list[str] | None
) -> "tuple[pd.DataFrame, Columns]":
    """Return the rows of all files, and their columns with one of models."""
    frames, mistakes = [], Mistakes()
    is_named = columns.model is not None
    models = [columns.only_model] if columns.only_model else names_of_files(sources)
    for source, model in zip(sources, models, strict=True):
        with mistakes.noted():
            frame = load_table(source, columns.ids, columns, words)
            if not is_named:
                _require_in(source, frame, [str(columns.item), str(columns.score)])
                _refuse_own_models(source, columns)
                frame[NAMED_BY_FILE] = pd.Categorical([model]).repeat(len(frame))
            frames.append(frame)
    mistakes.refuse()
    if not is_named:
        columns = replace(columns, model=NAMED_BY_FILE)
        if notes is not None and columns.only_model is None:
            named = "the model is" if len(models) == 1 else "the models are"
            notes.append(
                f"{named} called as the file{'s are' if len(models) > 1 else ' is'}, {some(models)}"
                " (--model COLUMN names a column of models)"
            )
    frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    return frame, columns


def _require_in(source: Path, frame: "pd.DataFrame", names: list[str]) -> None:
    try:
        require_columns(frame, names)
    except ReaderError as error:
        raise error.within(str(source)) from error


def _refuse_own_models(source: Path, columns: Columns) -> None:
    """Raise ReaderError if a table has a column of models that is not named."""
    own = [name for name in table_columns(source) if name.lower() == "model"]
    if own and columns.only_model is None:
        raise ReaderError(
            f"{source}: the column {own[0]!r} is not named", hint=f"add --model {quote(own[0])}"
        )


def names_of_files(paths: Sequence[Path]) -> list[str]:
    """Return names of models, one for each file: the parts of paths that differ.

    Examples
    --------
    >>> names_of_files([Path("out/gpt-x.jsonl")])
    ['gpt-x']
    >>> names_of_files([Path("out/gpt-x/answers.jsonl"), Path("out/claude-y/answers.jsonl")])
    ['gpt-x', 'claude-y']
    """
    parts = [[*path.absolute().parent.parts, path.stem] for path in paths]
    if len(parts) == 1:
        return [parts[0][-1]]
    while len({own[0] for own in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [own[1:] for own in parts]
    while len({own[-1] for own in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [own[:-1] for own in parts]
    return ["/".join(own) for own in parts]


def _empty_cells(what: str, frame: "pd.DataFrame", score: str | None) -> list[str]:
    """Return a note on rows without a score, if there are any."""
    n_empty = int(frame[score].isna().sum()) if score in frame else 0
    if not n_empty:
        return []
    return [
        f"{what}: {counted(n_empty, 'row')} of {len(frame):,} without a score "
        f"{'counts' if n_empty == 1 else 'count'} as not run; if the benchmark counts "
        "them as wrong, pass --missing wrong (in Python missing=['wrong'])"
    ]


def table_columns(path: Path) -> list[str]:
    """Return the columns of a table, [] if it is none; of JSON, those of the first row."""
    suffix = path.suffix.lower()
    if not path.is_file():
        return []
    try:
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            return [] if is_saved(path) else list(pq.read_schema(path).names)
        if suffix in SUFFIXES:
            return list(first_row(path))
        if suffix not in (".csv", ".tsv"):
            return []
        with path.open(encoding=text_encoding(path), newline="") as lines:
            return next(rows_of(lines, delimiter="\t" if suffix == ".tsv" else ","), [])
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
    by_file = "; without --model, the model is called as the file is"
    if {"item", "score"} <= {*by_name}:
        options = [item, score, *([model] if "model" in by_name else [])]
        hint = " ".join([*options, options_that_keep(columns)]).strip()
        hint += "" if "model" in by_name else by_file
    else:
        hint = (
            f"long table: {item} {score} {model}{by_file}; wide table: {model} (one row per model) "
            f"or {item} --transposed (one row per item)"
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
        **dict.fromkeys(SUFFIXES, _json),
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


def _json(
    source: Path, text: list[str], long: Columns | None, words: CellWords | None = None
) -> "pd.DataFrame":
    if long is None:
        return pd.DataFrame(list(json_rows(source)))
    seen, texts = set[str](), dict[str, str]()
    columns: dict[str, Any] = {name: [] for name in long.named}
    for row in json_rows(source):
        seen.update(row)
        for name, cells in columns.items():
            cell = row.get(name, math.nan)
            cells.append(texts.setdefault(cell, cell) if isinstance(cell, str) else cell)
    if not seen.issuperset(columns):
        return _json(source, text, None)  # the error names all columns
    for name, cells in columns.items():
        if all(isinstance(cell, str) for cell in cells):
            columns[name] = pd.Categorical(cells)
    return pd.DataFrame(columns)
