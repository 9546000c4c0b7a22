"""Rows of tables in JSON or YAML, whatever lists and objects they stand in.

One rule holds for all shapes. A file is an object, a list of objects, or lines of objects. The
entries of an object or a list within are one level further down; they also have the plain values of
what they stand in, and its name in a column `key` (`key2`, … further down). The rows are the level
that has the named columns.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from fewbench._content import text_encoding
from fewbench._json import DECODER, loads
from fewbench._names import counted, some
from fewbench.errors import MissingExtraError
from fewbench.readers.files import state_of
from fewbench.readers.values import describe

YAML = (".yaml", ".yml")
SUFFIXES = (".jsonl", ".ndjson", ".json", *YAML)
LEAST = 512  # characters that hold the beginning of a file
FIRST = 1 << 20  # characters that hold the first object of nearly every list
DEEPEST = 4  # levels; further down stand texts, messages and the like
KEY = "key"
KEYS = re.compile(rf"{KEY}\d*")
NAMES = ("name", "metric", "scorer")
"""What names an object in a list of metrics."""
Row = dict[str, Any]
Level = list[tuple[Row, Row]]


class FoundRows:
    r"""The rows of a file with named columns; `how` says where they were found, once all are read.

    Raises
    ------
    ValueError
        If the file is not whole JSON or YAML, or a row is not an object.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.json"
    >>> for text in ('{"q": 1}\n{"q": 2}', '{"rows": [{"q": 1}]}', '{"m1": {"q": 1}}'):
    ...     _ = path.write_text(text)
    ...     print([row["q"] for row in FoundRows(path, ["q"])])
    [1, 2]
    [1]
    [1]
    >>> next(iter(FoundRows(path, ["key", "q"])))
    {'key': 'm1', 'q': 1}
    """

    def __init__(self, source: Path, names: Sequence[str] = ()) -> None:
        self.source, self.names = source, names
        self.how = ""

    def __iter__(self) -> Iterator[Row]:
        data: Any
        if self.source.suffix.lower() in YAML:
            data = _yaml(self.source)
        elif _is_in_lines(self.source):
            lines = _lines(self.source)
            first = next(lines, {})
            if all(_has(first, name) for name in self.names):
                yield first
                yield from lines
                return
            data = [first, *lines]
        else:
            data = loads(self.source.read_text(encoding=text_encoding(self.source)))
        rows, self.how = find_rows(data, self.names)
        yield from rows


def first_row(source: Path, names: Sequence[str] = ()) -> Row:
    """Return the plain values of a file's first row; ValueError if it is not JSON or YAML."""
    return dict(_first_row(source, tuple(names), state_of(source)))


@lru_cache(maxsize=256)
def _first_row(source: Path, names: tuple[str, ...], _: object) -> Row:
    if source.suffix.lower() not in YAML:
        with source.open(encoding=text_encoding(source)) as file:
            start = file.read(LEAST).lstrip()
            if start[:1] == "[":  # a list may be long
                try:
                    row, _ = DECODER.raw_decode((start[1:] + file.read(FIRST)).lstrip())
                    if isinstance(row, dict) and all(_has(row, name) for name in names):
                        return flat(row)
                except (json.JSONDecodeError, RecursionError):
                    pass
    return flat(next(iter(FoundRows(source, names)), {}))


def find_rows(data: Any, names: Sequence[str] = ()) -> tuple[list[Row], str]:
    """Return the rows among lists and objects, and where they were found ("" in a plain list).

    Without names, the rows are the first level of which several have a key in common.

    Examples
    --------
    >>> find_rows({"m1": {"q1": 1, "q2": 0}, "m2": {"q1": 1, "q2": 1}})[0][0]
    {'key': 'm1', 'q1': 1, 'q2': 0}
    >>> rows, how = find_rows({"n": 2, "data": [["q1", 1]], "columns": ["id", "ok"]}, ["id"])
    >>> rows
    [{'n': 2, 'id': 'q1', 'ok': 1}]
    """
    if isinstance(data, dict) and (table := _columns(data, names)):
        return table, "each key is a column"
    level: Level = []
    depth, best = 0, (-1, False)
    for at, deeper in enumerate(_levels(data)):
        found = sum(any(_has(outer | row, name) for outer, row in deeper) for name in names)
        rank = found, len(deeper) > 1
        if rank > best or not names:
            level, depth, best = deeper, at, rank
        if best == (len(names), True) and (names or _shared(deeper)):
            break  # without a look at all that is further down
    if not level:
        raise ValueError("no rows: neither objects nor lists of them")
    mine = [name for name in names if any(_has(row, name) for _, row in level)]
    shared = _shared(level)
    are_rows = [
        any(_has(row, name) for name in mine) if mine else bool(shared & {*row}) or not shared
        for _, row in level
    ]
    rows = [outer | row for (outer, row), is_row in zip(level, are_rows, strict=True) if is_row]
    left = [row for (_, row), is_row in zip(level, are_rows, strict=True) if row and not is_row]
    keys = [name for name in rows[0] if KEYS.fullmatch(name) and name in level[0][0]]
    several = [name for name in keys if len({str(row.get(name)) for row in rows}) > 1]
    how = []
    if several or depth > 1:
        how.append(f"{counted(len(rows), 'row')} in objects")
        how += [f"column {name!r} is their key ({some(_distinct(rows, name))})" for name in several]
    if left:
        what = counted(len(left), "other object is not a row", "other objects are not rows")
        how.append(f"{what} (with {some(dict.fromkeys(key for row in left for key in row))})")
    return rows, "; ".join(how)


def flat(row: Row) -> Row:
    """Return the plain values of a row by name, those within objects as OBJECT.NAME.

    >>> flat({"id": "q", "metrics": [{"name": "acc", "score": 1}], "tags": ["a"]})
    {'id': 'q', 'metrics.acc.score': 1, 'tags': ['a']}
    """
    values: Row = {}
    for name, value in row.items():
        value = _by_name(value)
        if isinstance(value, dict) and value:
            values |= {f"{name}.{inner}": cell for inner, cell in flat(value).items()}
        else:
            values[str(name)] = value
    return values


def value_at(row: Row, name: str) -> Any:
    """Return the value of a column, which may stand within objects: OBJECT.NAME, or None."""
    if name in row:
        return row[name]
    end = name.find(".")
    while end > 0:
        inner = _by_name(row.get(name[:end]))
        if isinstance(inner, dict) and (value := value_at(inner, name[end + 1 :])) is not None:
            return value
        end = name.find(".", end + 1)
    return None


def fitting(name: str, pattern: str) -> str | None:
    """Return what the `*` of a pattern stands for in a name, None if they do not fit.

    >>> fitting("small.is_correct", "*.is_correct"), fitting("small", "*.is_correct")
    ('small', None)
    """
    start, _, end = pattern.partition("*")
    fits = len(name) > len(start) + len(end) and name.startswith(start) and name.endswith(end)
    return name[len(start) : len(name) - len(end)] if fits else None


def _has(row: Row, name: str) -> bool:
    if "*" in name and name not in row:
        return any(fitting(column, name) for column in flat(row))
    return name in row or ("." in name and value_at(row, name) is not None)


def _by_name(value: Any) -> Any:
    """Return a list of named objects, such as metrics, as an object."""
    if not (isinstance(value, list) and value and all(isinstance(one, dict) for one in value)):
        return value
    for key in NAMES:
        names = [one.get(key) for one in value]
        if all(isinstance(name, str) for name in names) and len({*names}) == len(names):
            return {
                name: {inner: cell for inner, cell in one.items() if inner != key}
                for name, one in zip(names, value, strict=True)
            }
    return value


def _levels(data: Any) -> Iterator[Level]:
    """Yield the levels of objects, from the outermost: what each stands in, and the object."""
    level: Level = [({}, row) for row in _objects(data)]
    for depth in range(1, DEEPEST + 1):
        if not level:
            return
        yield level
        key = KEY if depth == 1 else f"{KEY}{depth}"
        level = [
            (outer | _plain(own) | {key: name}, row)
            for outer, own in level
            for name, value in own.items()
            if isinstance(value, dict | list)
            for row in _objects(value)
        ]


def _objects(value: Any) -> list[Row]:
    """Return the objects of a list, or of a table of lists; an object itself."""
    if isinstance(value, dict):
        header, cells = value.get("columns"), value.get("data")
        if isinstance(header, list) and isinstance(cells, list):
            names = [str(one.get("name", one) if isinstance(one, dict) else one) for one in header]
            rest = _plain(value)
            return [rest | row for row in _zipped(names, cells)]
        return [value]
    if not isinstance(value, list) or not value:
        return []
    if isinstance(value[0], list):
        names = value[0]
        is_table = all(isinstance(name, str) for name in names) and len({*names}) == len(names) > 1
        return _zipped(names, value[1:]) if is_table else []
    if isinstance(value[0], dict):
        for number, row in enumerate(value, start=1):
            if not isinstance(row, dict):
                raise ValueError(f"entry {number} of the list is {describe(row)}, not an object")
        return value
    return []


def _zipped(names: Sequence[str], cells: Sequence[Any]) -> list[Row]:
    for number, row in enumerate(cells, start=1):
        if not isinstance(row, list) or len(row) != len(names):
            raise ValueError(f"row {number} is {describe(row)}, for {len(names)} columns")
    return [dict(zip(names, row, strict=True)) for row in cells]


def _columns(data: Row, names: Sequence[str]) -> list[Row]:
    """Return the rows of an object of columns: lists, or objects by number as pandas writes."""
    values = list(data.values())
    if len(values) < 2 or (names and not {*names} & {*data}):
        return []
    if all(isinstance(value, dict) for value in values):
        numbers = list(values[0])
        if not all(number.isdigit() for number in numbers):
            return []
        if not numbers or any(list(value) != numbers for value in values):
            return []
        values = [list(value.values()) for value in values]
    plain = all(
        isinstance(value, list) and not any(isinstance(cell, dict | list) for cell in value)
        for value in values
    )
    if not plain or len({len(value) for value in values}) > 1 or not values[0]:
        return []
    return [dict(zip(data, cells, strict=True)) for cells in zip(*values, strict=True)]


def _plain(row: Row) -> Row:
    return {name: cell for name, cell in row.items() if not isinstance(cell, dict | list)}


def _shared(level: Level) -> set[str]:
    """Return the keys that several objects of a level have."""
    times = Counter(key for _, row in level for key in row)
    return {key for key, n in times.items() if n > 1}


def _distinct(rows: Sequence[Row], name: str) -> list[str]:
    return list(dict.fromkeys(str(row.get(name)) for row in rows))


def _yaml(source: Path) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError(
            f"{source}: reading YAML needs the package pyyaml",
            hint="pip install 'fewbench[hub]'; or save the file as JSON",
        ) from error
    try:  # all values stay text, so that 007 is not 7
        return yaml.load(source.read_text(encoding=text_encoding(source)), yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}") from error


def _is_in_lines(source: Path) -> bool:
    with source.open(encoding=text_encoding(source)) as file:
        lines = (line.lstrip() for line in file if line.strip())
        first, second = next(lines, ""), next(lines, "")
    if first.startswith("["):
        return False
    return source.suffix.lower() != ".json" or second.startswith("{")


def _lines(source: Path) -> Iterator[Row]:
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
            yield row
