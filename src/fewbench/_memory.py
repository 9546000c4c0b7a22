"""Whether a table fits into memory, by what its file says before it is read."""

import math
import re
import zipfile
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from fewbench.errors import FewbenchError

GIGA = 2**30
# How many times a file's own size its table takes, at least, while it is read.
GROWTH = {".csv": 1.0, ".tsv": 1.0, ".jsonl": 2.0, ".ndjson": 2.0}
# Bytes that a row of a long table takes until it is scores: with four columns, and a further one.
LONG_ROW = {".csv": (60, 16), ".tsv": (60, 16), ".parquet": (60, 8)}
JSON_ROW = (170, 20)
LONG_BLOCKS = 96 * 2**20  # bytes that are read and encoded at a time


def available_memory() -> int | None:
    """Return how many bytes may still be used, or None where the system does not say.

    The least of what the machine has and what a container's limit leaves.
    """
    sizes = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                sizes.append(1024 * int(line.split()[1]))
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text().strip()
        if limit.isdecimal():
            sizes.append(max(0, int(limit) - int(used)))
    except (OSError, ValueError):
        pass
    return min(sizes, default=None)


def check_fits(n_bytes: float, what: str) -> None:
    """Raise FewbenchError if the bytes exceed the free memory.

    Examples
    --------
    >>> check_fits(1e21, "scores of 1,000,000,000 models")
    Traceback (most recent call last):
    fewbench.errors.FewbenchError: scores of 1,000,000,000 models ... (hint: ...)
    """
    there = available_memory()
    if there is not None and n_bytes > there:
        raise FewbenchError(
            f"{what} needs about {n_bytes / GIGA:,.1f} GB of memory, and {there / GIGA:,.1f} GB "
            "are free",
            hint="use a machine with more memory, or keep fewer models or items",
        )


def check_table_memory(path: Path) -> None:
    """Raise FewbenchError if a table's file is too large, by its size or Parquet's metadata."""
    suffix = path.suffix.lower()
    if suffix in GROWTH:
        check_fits(GROWTH[suffix] * path.stat().st_size, f"{path}: the table")
    if suffix != ".parquet":
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        meta = pq.read_metadata(path)
    except (pa.ArrowException, OSError, ValueError):
        return  # the reader says what is wrong
    if b"fewbench" in (meta.metadata or {}):
        least = 16.0 * meta.num_rows  # a table in the layout of one row per item is checked later
    else:
        least = 8.0 * meta.num_rows * max(meta.num_columns, 2)
    # A value is a number at least, however well Parquet packs repeated ones.
    check_fits(least, f"{path}: a table of {meta.num_rows:,} rows")


def check_long_memory(path: Path, columns: int) -> None:
    """Raise FewbenchError if the columns of a long table do not fit into memory, by its rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    is_parquet = path.suffix.lower() == ".parquet"
    try:
        rows = pq.read_metadata(path).num_rows if is_parquet else _text_rows(path)
    except (pa.ArrowException, OSError, ValueError):
        return  # the reader says what is wrong
    row, more = LONG_ROW.get(path.suffix.lower(), JSON_ROW)
    need = rows * (row + more * max(columns - 4, 0))
    check_fits(need + min(3 * need, LONG_BLOCKS), f"{path}: a table of {rows:,} rows")


def _text_rows(path: Path) -> int:
    """Return about how many rows a file has: its lines, less those in quotes as in its start."""
    with path.open("rb") as file:
        start = file.read(2**20)
        rest = sum(part.count(b"\n") for part in iter(partial(file.read, 2**24), b""))
    here = start.count(b"\n")
    rows = (
        re.sub(rb'"[^"]*"?', b"", start).count(b"\n") if path.suffix.lower() in LONG_ROW else here
    )
    return (here + rest) * rows // max(here, 1)


def check_arrays_memory(path: Path) -> None:
    """Raise FewbenchError if the arrays of an .npz file are too large, by their headers."""
    total = 0.0
    try:
        with zipfile.ZipFile(path) as file:
            for name in file.namelist():
                stored = file.getinfo(name).compress_type == zipfile.ZIP_STORED
                if name == "probabilities.npy" and stored:
                    continue  # stays in the file
                with file.open(name) as array:
                    total += _array_size(array) * (2 if name == "scores.npy" else 1)  # a copy
    except (OSError, zipfile.BadZipFile):
        return  # the reader says what is wrong
    check_fits(total, f"{path}: reading its arrays")


def _array_size(file: IO[bytes]) -> float:
    """Return how many bytes an array of an .npz file takes, by its header; 0 if it has none."""
    header = array_header(file)
    return 0.0 if header is None else math.prod(map(float, header[0])) * header[1].itemsize


def array_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], bool] | None:
    """Return shape, type and whether columns come first of an open .npy file, or None."""
    try:
        first = np.lib.format.read_magic(file) == (1, 0)
        formats = np.lib.format
        read_header = formats.read_array_header_1_0 if first else formats.read_array_header_2_0
        shape, by_columns, kind = read_header(file)
        return shape, kind, by_columns
    except Exception:  # numpy's header parser lets through all kinds; the reader says what is wrong
        return None
