"""Rows of tables in JSON: one object per line, or one list of objects."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fewbench._content import text_encoding
from fewbench._json import DECODER, loads
from fewbench.readers.values import describe

SUFFIXES = (".jsonl", ".ndjson", ".json")
LEAST = 512  # characters that hold the beginning of a file
FIRST = 1 << 20  # characters that hold the first object of nearly every list


def json_rows(source: Path) -> Iterator[dict[str, Any]]:
    r"""Yield the rows of a file; its content says whether they stand in lines or in a list.

    The list may be the only one of an object, as in {"model": "a", "results": [...]}.

    Raises
    ------
    ValueError
        If the file is not whole JSON, or a row is not an object.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.json"
    >>> for text in ('{"q": 1}\n{"q": 2}', '[{"q": 1}, {"q": 2}]', '{"rows": [{"q": 1}]}'):
    ...     _ = path.write_text(text)
    ...     print([row["q"] for row in json_rows(path)])
    [1, 2]
    [1, 2]
    [1]
    """
    if _is_in_lines(source):
        yield from _lines(source)
        return
    data = loads(source.read_text(encoding=text_encoding(source)))
    if isinstance(data, dict):
        lists = [value for value in data.values() if isinstance(value, list) and value]
        if len(lists) != 1 or not isinstance(lists[0][0], dict):
            raise ValueError(
                f"an object with the keys {', '.join(map(repr, list(data)[:8]))}, not a list of "
                "rows"
            )
        (data,) = lists
    for number, row in enumerate(data if isinstance(data, list) else [data], start=1):
        if not isinstance(row, dict):
            raise ValueError(f"entry {number} of the list is {describe(row)}, not an object")
        yield row


def first_row(source: Path) -> dict[str, Any]:
    """Return the first row of a file, {} if it has none; ValueError if it is not JSON."""
    with source.open(encoding=text_encoding(source)) as file:
        start = file.read(LEAST).lstrip()
        if start[:1] == "[":  # a list may be long
            try:
                row, _ = DECODER.raw_decode((start[1:] + file.read(FIRST)).lstrip())
                return row if isinstance(row, dict) else {}
            except (json.JSONDecodeError, RecursionError):
                pass
    return next(json_rows(source), {})


def _is_in_lines(source: Path) -> bool:
    with source.open(encoding=text_encoding(source)) as file:
        lines = (line.lstrip() for line in file if line.strip())
        first, second = next(lines, ""), next(lines, "")
    if first.startswith("["):
        return False
    return source.suffix.lower() != ".json" or second.startswith("{")


def _lines(source: Path) -> Iterator[dict[str, Any]]:
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
