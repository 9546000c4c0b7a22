"""Whether a file's content fits into memory, by what the file says before it is read."""

import math
import os
import re
import zipfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from fewbench._names import some
from fewbench.errors import FewbenchError

GIGA = 2**30
# Content of more than 1 GB may take so many times its file's size. Scores of 8,000 models on 5,000
# items take 73 times the size of their Parquet file; deflate packs zeros 1,030 times, Parquet and
# zstd pack repeated values 10,000 times and more.
MOST_RATIO = 500
LIMIT = "FEWBENCH_MAX_UNPACKED"
# How many times a file's own size its table takes, at least, while it is read.
GROWTH = {".csv": 1.0, ".tsv": 1.0, ".jsonl": 2.0, ".ndjson": 2.0}
# Bytes that a row of a long table takes until it is scores: with four columns, and a further one.
LONG_ROW = {".csv": (60, 16), ".tsv": (60, 16), ".parquet": (60, 8)}
JSON_ROW = (170, 20)
TEXT_ROWS = 2**20  # that are looked at, at a time
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


def most_unpacked(size: float) -> float:
    """Return how many bytes may come from a file or a reply of this many bytes.

    1 GB, or more for large ones; the user may set the number of gigabytes (`LIMIT`).
    """
    try:
        least = GIGA * float(os.environ.get(LIMIT) or 1)
    except ValueError as error:
        text = f"{LIMIT}={os.environ[LIMIT]} is not a number"
        raise FewbenchError(text, hint="set it to gigabytes, such as 8", kind="range") from error
    return max(least, MOST_RATIO * size)


def check_unpacked(n_bytes: float, what: Path | str, size: float) -> None:
    """Raise FewbenchError if a file of `size` bytes unpacks to far more than its size.

    Examples
    --------
    >>> check_unpacked(5e9, "scores.npz", 3e6)
    Traceback (most recent call last):
    fewbench.errors.FewbenchError: scores.npz: 3.00 MB that unpack to 4.7 GB ... (hint: ...)
    """
    if n_bytes > most_unpacked(size):
        raise FewbenchError(
            f"{what}: {size / 1e6:,.2f} MB that unpack to {n_bytes / GIGA:,.1f} GB or more, as "
            "files do that are made to fill the memory",
            hint=f"if you trust the file, set {LIMIT} to the number of gigabytes that it may take",
            kind="limit",
        )


def check_zip(path: Path) -> None:
    """Raise FewbenchError if the entries of a zip file unpack to too much, by its directory."""
    try:
        with zipfile.ZipFile(path) as file:
            total = sum(entry.file_size for entry in file.infolist())
    except (OSError, zipfile.BadZipFile):
        return  # the reader says what is wrong
    check_unpacked(total, path, path.stat().st_size)


def check_parquet(
    source: Path | IO[bytes],
    columns: Iterable[str] | None = None,
    *,
    rows: float = math.inf,
    by_code: bool = False,
) -> None:
    """Raise FewbenchError if columns of a Parquet file unpack to too much.

    A value takes 8 bytes at least, however well repeated ones are packed, and a text its length,
    unless the columns are read by code (`by_code`). By default all columns and rows are meant.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    what = source if isinstance(source, Path) else "a Parquet file"
    size = source.stat().st_size if isinstance(source, Path) else source.seek(0, os.SEEK_END)
    try:
        with pq.ParquetFile(source) as file:
            share = min(1.0, rows / max(file.metadata.num_rows, 1))
            found = share * sum(least for _, least, _ in _chunks(file, columns))
            check_unpacked(found, what, size)
            texts = {} if by_code else _texts(file, columns)
        if found + sum(texts.values()) <= most_unpacked(size):
            return
        # Each value may be the longest text: look.
        with pq.ParquetFile(source, read_dictionary=list(texts)) as file:
            for name in texts:
                seen = 0
                for batch in file.iter_batches(int(min(rows, TEXT_ROWS)) or 1, columns=[name]):
                    found += _text_bytes(batch.column(0))
                    check_unpacked(found, what, size)
                    seen += len(batch)
                    if seen >= rows:
                        break
    except (pa.ArrowException, OSError, ValueError):
        return  # the reader says what is wrong


def _chunks(file: Any, columns: Iterable[str] | None) -> Iterator[tuple[str, float, Any]]:
    """Yield the name, the least number of bytes and the metadata of each part of columns."""
    only = None if columns is None else {*columns}
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group)
        for at in range(rows.num_columns):
            chunk = rows.column(at)
            name = chunk.path_in_schema
            if only is None or name in only or name.partition(".")[0] in only:
                width = max(8, file.schema.column(at).length or 0)
                yield name, max(chunk.num_values * width, chunk.total_uncompressed_size), chunk


def _texts(file: Any, columns: Iterable[str] | None) -> dict[str, float]:
    """Return the columns of texts that may repeat, and the most bytes that each may take."""
    texts: dict[str, float] = {}
    for name, _, chunk in _chunks(file, columns):
        if chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page and "." not in name:
            most = float(chunk.num_values) * chunk.total_uncompressed_size
            texts[name] = texts.get(name, 0.0) + most
    return texts


def _text_bytes(column: Any) -> float:
    """Return how many bytes the texts of a column take, each at its full length."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return 0.0
    lengths = np.asarray(pc.binary_length(column.dictionary), dtype=np.float64)
    return float(lengths @ np.bincount(column.indices.drop_null(), minlength=len(lengths)))


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
        check_parquet(path)
        least = 8.0 * meta.num_rows * max(meta.num_columns, 2)
    check_fits(least, f"{path}: a table of {meta.num_rows:,} rows")


def check_long_memory(path: Path, names: list[str]) -> None:
    """Raise FewbenchError if columns of a long table do not fit into memory, by its rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    is_parquet = path.suffix.lower() == ".parquet"
    if is_parquet:
        check_parquet(path, names, by_code=True)
    try:
        rows = pq.read_metadata(path).num_rows if is_parquet else _text_rows(path)
    except (pa.ArrowException, OSError, ValueError):
        return  # the reader says what is wrong
    row, more = LONG_ROW.get(path.suffix.lower(), JSON_ROW)
    need = rows * (row + more * max(len(names) - 4, 0))
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
    """Raise FewbenchError if the arrays of an .npz file are too large, by their headers.

    ValueError if an entry is not an array: numpy would read all of it.
    """
    total = unpacked = 0.0
    foreign = []
    try:
        with zipfile.ZipFile(path) as file:
            for name in file.namelist():
                stored = file.getinfo(name).compress_type == zipfile.ZIP_STORED
                if name == "probabilities.npy" and stored:
                    continue  # stays in the file
                with file.open(name) as array:
                    header = array_header(array)
                if header is None:
                    foreign.append(name.removesuffix(".npy"))
                    continue
                size = math.prod(map(float, header[0])) * header[1].itemsize
                total += size * (2 if name == "scores.npy" else 1)  # a copy
                unpacked += size
    except (OSError, zipfile.BadZipFile):
        return  # the reader says what is wrong
    check_fits(total, f"{path}: reading its arrays")
    check_unpacked(unpacked, path, path.stat().st_size)
    if foreign:
        raise ValueError(f"{some(foreign)} is not an array")


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
