"""Sheets as VLMEvalKit writes them: .xlsx, .tsv and .json, read into rows of plain values."""

import csv
import importlib
import io
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewbench.errors import MissingExtraError, ReaderError, first_line
from fewbench.readers.json_files import load_json

WHOLE = re.compile(r"(-?\d{1,15})\.0+")
LONGEST = 2**30  # characters of an answer, which csv would bound by 131072
Row = dict[str, Any]


def read_sheet(path: Path) -> list[Row]:
    """Return the rows of a sheet by the names of its columns; empty cells are None.

    Raises
    ------
    ReaderError
        If the file is torn, or is no table.
    MissingExtraError
        If it is an .xlsx file and openpyxl is not installed.
    """
    suffix = path.suffix.lower()
    rows = {".xlsx": _read_xlsx, ".tsv": _read_tsv, ".json": _read_json}[suffix](path)
    if not rows:
        raise ReaderError(f"{path}: empty, no answer was logged", hint="delete it")
    return rows


def text(value: Any) -> str:
    """Return a cell as text: whole numbers without ".0", as sheets turn 3 into 3.0.

    Examples
    --------
    >>> text(3.0), text(" 3.0"), text("Oslo "), text(None), text(0.5)
    ('3', '3', 'Oslo', '', '0.5')
    """
    said = "" if value is None else str(value).strip()
    whole = WHOLE.fullmatch(said)
    return whole[1] if whole else said


def _read_xlsx(path: Path) -> list[Row]:
    try:
        openpyxl: Any = importlib.import_module("openpyxl")
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: reading .xlsx files needs openpyxl",
            hint="pip install 'fewbench[vlmevalkit]'; or run VLMEvalKit with PRED_FORMAT=tsv",
        ) from error
    try:
        content = io.BytesIO(path.read_bytes())  # openpyxl leaves a torn file open
    except OSError as error:
        raise ReaderError(f"{path}: cannot be read ({error.strerror})") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and dates that do not matter here
            book = openpyxl.load_workbook(content, read_only=True, data_only=True)
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # a wrong stated size would cut rows off
            lines = [list(line) for line in sheet.iter_rows(values_only=True)]
    except Exception as error:  # zip, XML and openpyxl's own, by what is broken
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise ReaderError(
            f"{path}: not a whole .xlsx file ({reason})", hint="copy it again, or delete it"
        ) from error
    return _with_header(path, lines)


def _read_tsv(path: Path) -> list[Row]:
    usual = csv.field_size_limit(LONGEST)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file, delimiter="\t", strict=True) if line]
    except OSError as error:
        raise ReaderError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, csv.Error) as error:  # the decoder's and the parser's
        raise ReaderError(
            f"{path}: not a whole table with tabs ({first_line(error)})",
            hint="copy it again, or delete it",
        ) from error
    finally:
        csv.field_size_limit(usual)
    for number, line in enumerate(lines[1:], start=1):
        if len(line) < len(lines[0]):
            raise ReaderError(
                f"{path}, row {number}: fewer cells than the table has columns",
                hint="the file is torn; copy it again",
            )
    return _with_header(path, lines)


def _read_json(path: Path) -> list[Row]:
    rows = load_json(path)
    if not isinstance(rows, list):
        raise ReaderError(f"{path}: not a list of rows, as VLMEvalKit writes .json")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise ReaderError(f"{path}, row {number}: not an object")
    return rows


def _with_header(path: Path, lines: Sequence[list[Any]]) -> list[Row]:
    if not lines:
        return []
    names = [text(name) for name in lines[0]]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise ReaderError(f"{path}: two columns are named {twice[0]!r}")
    rows = []
    for number, line in enumerate(lines[1:], start=1):
        if len(line) > len(names) and any(cell not in (None, "") for cell in line[len(names) :]):
            raise ReaderError(f"{path}, row {number}: more cells than the table has columns")
        cells = zip(names, line, strict=False)
        row = {name: None if cell == "" else cell for name, cell in cells if name}
        if any(cell is not None for cell in row.values()):
            rows.append(row)
    return rows
