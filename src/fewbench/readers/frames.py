"""Tables as frames of pandas: from CSV, Parquet and JSON, with ids as text."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from csv import Error as CsvError
from csv import reader as rows_of
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fewbench._content import other_separator, refuse_pointer, text_encoding, why_not_utf8
from fewbench._lazy import pandas as pd
from fewbench._memory import check_long_memory, check_parquet, check_table_memory
from fewbench._names import some
from fewbench.errors import FewbenchError, MissingFileError, ReaderError, first_line
from fewbench.readers.files import table_suffix, unpacked
from fewbench.readers.json_rows import SUFFIXES, FoundRows, first_row, fitting, flat, value_at
from fewbench.scores.cell_words import EMPTY, CellWords
from fewbench.scores.files import is_saved

# Columns that are text whatever they look like: '007' is not 7.
TEXT = ("model", "item", "task", "date", "family", "role", "sample_id")
FEW, MANY = 1 << 20, 32 << 20  # bytes of a .csv file that are parsed at a time


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a long table; without `item` and `score` the table is wide.

    `model` and `item` may be several comma-separated columns, which are joined by `/`. A `*` in
    `score` stands for the names of models in columns of their own (of items if `item` is not
    named). `only_model` names the model of all rows; with `model_from`, "file" or "folder", the
    file or its folder does, whatever columns there are. With `target`, the score is whether the
    column `score` equals the column `target`; `match` says how: "exact" or "loose".
    `keep_item` and `keep_model` are further columns to keep with the items and the models. `cost`
    is what each answer cost.
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
    cost: str | None = None
    model_from: str | None = None
    target: str | None = None
    match: str = "exact"

    def __post_init__(self) -> None:
        for option, value, allowed in (
            ("model-from", self.model_from, (None, "file", "folder")),
            ("match", self.match, ("exact", "loose")),
        ):
            if value not in allowed:
                names = ", ".join(filter(None, allowed))
                raise ReaderError(f"--{option} cannot be {value!r}", hint=f"use one of {names}")

    @property
    def is_long(self) -> bool:
        """Whether the columns are those of a table with one row per answer."""
        return self.score is not None and (self.item is not None or "*" in self.score)

    @property
    def ids(self) -> list[str]:
        """Columns that are text in a long table."""
        return [name for name in (self.model, self.item, self.task) if name]

    @property
    def named(self) -> list[str]:
        """All columns of a long table that are read, each once."""
        others = (self.score, self.target, self.date, self.family, *self.keep_item)
        others = (*others, *self.keep_model, self.cost)
        return list(dict.fromkeys([*self.ids, *(name for name in others if name)]))

    def within(self, there: Iterable[str]) -> list[str]:
        """Return `named` with the columns of a table that joined names and patterns stand for."""
        there = [*there]
        columns = [part for name in self.named for part in parts_of(name, there)]
        own = {*columns}
        for name in [name for name in columns if "*" in name and name not in there]:
            at = columns.index(name)
            found = [one for one in there if one not in own and fitting(one, name)]
            columns[at : at + 1] = found or [name]
        return list(dict.fromkeys(columns))

    def scored(self, there: Iterable[str]) -> list[str]:
        """Return the columns of a table that hold scores."""
        there = [*there]
        if self.score is None or self.score in there:
            return [name for name in there if name == self.score]
        found = (name for name in self.within(there) if name not in self.named)
        return [name for name in found if fitting(name, self.score)]


def parts_of(name: str, there: Iterable[str]) -> list[str]:
    """Return the columns that a name stands for: itself, or comma-separated ones.

    >>> parts_of("model,setting", ["model", "setting"]), parts_of("a,b", ["a,b"])
    (['model', 'setting'], ['a,b'])
    """
    if name in there or "," not in name:
        return [name]
    return [part.strip() for part in name.split(",")]


def table_columns(path: Path, named: Sequence[str] = ()) -> list[str]:
    """Return the columns of a table, [] if it is none; of JSON, those of the first row.

    The rows of JSON are those with the named columns.
    """
    suffix = table_suffix(path)
    if not path.is_file():
        return []
    try:
        path = unpacked(path)
        if suffix == ".parquet":
            return [] if is_saved(path) else _parquet_columns(path)
        if suffix in SUFFIXES:
            return list(first_row(path, json_names(named)))
        if suffix not in (".csv", ".tsv"):
            return []
        with path.open(encoding=text_encoding(path), newline="") as lines:
            return next(rows_of(lines, delimiter="\t" if suffix == ".tsv" else ","), [])
    except (OSError, ValueError, CsvError, FewbenchError):  # its reader says what is wrong
        return []


def json_names(named: Sequence[str]) -> list[str]:
    """Return the names by which rows of JSON are found: all columns of joined ones."""
    return [part for name in named for part in parts_of(name, ())]


def load_table(
    source: Path,
    text: list[str],
    long: Columns | None = None,
    words: CellWords | None = None,
) -> "pd.DataFrame":
    """Read a table into pandas; columns `text` stay text, so that '007' and '7' differ.

    From a `long` table, only the named columns are read, if all are there, and texts become
    categories, which take a fifth of the memory. With `words`, cells of scores are numbers as they
    are written, or stay text: '0x1' is not a number.
    """
    read, suffix = reader_of(source), table_suffix(source)
    plain = unpacked(source)
    if long is None:
        check_table_memory(plain)
    else:
        check_long_memory(plain, long.within(table_columns(plain, long.named)))
    try:
        return read(plain, text, long, words)
    except (FewbenchError, MemoryError):
        raise
    except Exception as error:  # pandas and pyarrow have no common base of errors
        is_text = suffix != ".parquet" and isinstance(error, ValueError)  # as UnicodeError is
        if is_text and (why := why_not_utf8(plain)):
            raise ReaderError(f"{source}: {why[0]}", hint=why[1]) from None
        reason = first_line(error)
        raise ReaderError(f"{source}: cannot be read as {suffix[1:]} ({reason})") from error


Reader = Callable[[Path, list[str], Columns | None, CellWords | None], "pd.DataFrame"]


def reader_of(source: Path) -> Reader:
    """Return what reads a table; ReaderError if it has no content, or not that of a table."""
    readers = {
        ".csv": _csv,
        ".tsv": _csv,
        ".parquet": _parquet,
        **dict.fromkeys(SUFFIXES, _json),
    }
    suffix = table_suffix(source)
    if suffix not in readers:
        raise ReaderError(
            f"{source}: not a table that fewbench can read",
            hint=f"use {', '.join(readers)}",
            kind="format",
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
    scored = [*first] if long is None else long.scored(first)
    scored = [name for name in scored if name not in text]
    # Arrow guesses that '0x1' is a whole number; as a fraction it is none, and stays text.
    first |= {name: pa.float64() for name in scored if not pa.types.is_boolean(first[name])}
    types |= dict.fromkeys(scored, pa.string())  # where a cell is neither a number nor empty
    if long is None:
        reading.block_size = MANY  # each has a piece of memory for every one of many columns
        try:
            table = csv.read_csv(source, reading, parsing, kinds(first))
        except pa.ArrowInvalid:
            table = csv.read_csv(source, reading, parsing, kinds(types))
        return _converted(checked(table))
    columns = long.within(first)
    if not {*columns} <= {*first}:
        return _csv(source, text, None)  # the error names all columns
    reading.block_size = min(max(FEW, source.stat().st_size // 32), MANY)
    texts = [*text, *(name for name in first if first[name] == pa.string())]
    first |= dict.fromkeys(texts, pa.dictionary(pa.int32(), pa.string()))
    only = {"include_columns": columns}
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


def _parquet_columns(source: Path) -> list[str]:
    """Return the columns; of objects, those of the first row within them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(source)
    if any(pa.types.is_nested(field.type) for field in schema):
        with pq.ParquetFile(source) as file:
            rows = next(file.iter_batches(1)).to_pylist()
        return list(flat(rows[0])) if rows else schema.names
    return list(schema.names)


def _parquet(
    source: Path, text: list[str], long: Columns | None, words: CellWords | None = None
) -> "pd.DataFrame":
    import pyarrow.parquet as pq

    names = Counter(pq.read_schema(source).names)
    columns = [] if long is None else long.within(names)
    if long is not None and all(names[name] == 1 for name in columns):
        frame = _converted(pq.read_table(source, columns=columns, read_dictionary=columns))
        if {*columns} <= {*frame}:  # else pandas made one of them the index
            return frame
    if long is not None:
        check_parquet(source)
        every = _parquet_columns(source)
        wanted = {*long.within(every)}
        if wanted <= {*every} and not wanted <= {*names}:  # values within objects
            return pd.DataFrame(_columns_of(pq.read_table(source).to_pylist(), long)[0])
    return cast(pd.DataFrame, pq.read_table(source).to_pandas())


def _json(
    source: Path, text: list[str], long: Columns | None, words: CellWords | None = None
) -> "pd.DataFrame":
    found = FoundRows(source, json_names(text if long is None else long.named))
    if long is None:
        frame = pd.DataFrame(list(found))
        frame.attrs["found"] = found.how
        return frame
    columns, seen = _columns_of(found, long)
    if seen.issuperset(columns):
        frame = pd.DataFrame(columns)
    else:
        every = pd.DataFrame(list(FoundRows(source, found.names)))  # the error names all columns
        frame = every.assign(**{name: cells for name, cells in columns.items() if name in seen})
    frame.attrs["found"] = found.how
    return frame


def _columns_of(rows: Iterable[dict[str, Any]], long: Columns) -> tuple[dict[str, Any], set[str]]:
    """Return the named columns of rows of objects, and the names that were met."""
    names = json_names(long.named)
    is_pattern = long.score is not None and "*" in long.score
    columns: dict[str, Any] = {name: [] for name in names}
    seen, texts = set[str](), dict[str, str]()
    for count, row in enumerate(rows):
        seen.update(row)
        if is_pattern and long.score not in row:
            row = flat(row)
            for name in long.scored(row):
                columns.setdefault(name, [math.nan] * count)
        for name, cells in columns.items():
            cell = row.get(name, math.nan)
            if name not in row and "." in name:  # a value within an object
                cell = value_at(row, name)
                seen.update([name] if cell is not None else [])
            cells.append(texts.setdefault(cell, cell) if isinstance(cell, str) else cell)
    if is_pattern and len(columns) > len(names):
        del columns[str(long.score)]
        seen |= columns.keys()
    for name, cells in columns.items():
        if all(isinstance(cell, str) for cell in cells):
            columns[name] = pd.Categorical(cells)
    return columns, seen
