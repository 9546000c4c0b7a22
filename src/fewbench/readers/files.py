"""Find files of harnesses, peek at them, and read JSON and Parquet."""

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from fewbench._content import text_encoding, why_not_utf8
from fewbench._json import RepeatedKeyError, loads
from fewbench._memory import check_parquet, check_unpacked
from fewbench.errors import ReaderError, first_line
from fewbench.readers.values import describe

HEAD = 4096
GZIP = ".gz"


def list_files(sources: Iterable[Path]) -> list[Path]:
    """Return files, and files below folders, sorted within each; links are followed.

    A file with several names is listed once: by its real name, unless only a link has a suffix, as
    in a cache that names files by their hash.
    """
    files: dict[Path, Path] = {}
    entered: set[Path] = set()
    for source in sources:
        for file in sorted(_below(source, entered)) if source.is_dir() else [source]:
            if not file.is_file():
                continue
            real = file.resolve()
            earlier = files.setdefault(real, file)
            is_real, was_real = file.absolute() == real, earlier.absolute() == real
            if is_real != was_real and is_real == (file.suffix == earlier.suffix):
                files[real] = file
    return list(files.values())


def _below(folder: Path, entered: set[Path]) -> Iterator[Path]:
    for name, folders, files in os.walk(folder, onerror=_refuse, followlinks=True):
        real = Path(name).resolve()
        if real in entered:  # a link to where we were already
            folders.clear()
            continue
        entered.add(real)
        yield from (Path(name) / file for file in files)


def _refuse(error: OSError) -> None:
    raise ReaderError(
        f"{error.filename}: cannot be opened ({error.strerror})",
        hint="make the folder readable, or pass the other folders",
        kind="damaged",
    )


def head(path: Path) -> bytes:
    """Return a file's first 4 KB; b"" if it cannot be read."""
    return _head(path, state_of(path))


def starts_as_results(path: Path, key: bytes) -> bool:
    """Whether a file of JSON is named as results, and its first key has an object."""
    is_named = path.suffix == ".json" and "results" in path.name
    return is_named and re.match(rb'\s*\{\s*"%s":\s*\{' % key, head(path)) is not None


def state_of(path: Path) -> tuple[int, int] | None:
    """Return size and time of a file, None if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


@lru_cache(maxsize=4096)
def _head(path: Path, state: tuple[int, int] | None) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD)
    except OSError:
        return b""


def parquet_rows(
    path: Path, columns: Callable[[Any], list[str] | None] = lambda schema: None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield row number, from 1, and row; `columns` chooses columns by the file's schema."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_parquet(path)
    try:
        with pq.ParquetFile(path) as file:
            batches = file.iter_batches(1024, columns=columns(file.schema_arrow))
            yield from enumerate((row for batch in batches for row in batch.to_pylist()), start=1)
    except (pa.ArrowException, OSError) as error:
        raise ReaderError(
            f"{path}: not a whole Parquet file ({first_line(error)})",
            hint="copy it again",
            kind="damaged",
        ) from error


def table_suffix(path: Path) -> str:
    """Return the suffix that says what a table is: that before .gz, if it is packed.

    >>> table_suffix(Path("a.CSV")), table_suffix(Path("b.jsonl.gz")), table_suffix(Path("c.gz"))
    ('.csv', '.jsonl', '')
    """
    return (Path(path.stem) if path.suffix.lower() == GZIP else path).suffix.lower()


def unpacked(path: Path) -> Path:
    """Return a file, or an unpacked copy of one packed by gzip, which is kept until the end.

    ReaderError if it is not whole, FewbenchError if it unpacks to too much.
    """
    return path if path.suffix.lower() != GZIP else _unpacked(path, state_of(path))


@lru_cache(maxsize=64)
def _unpacked(path: Path, state: tuple[int, int] | None) -> Path:
    copy = Path(_copies().name) / f"{len(list(Path(_copies().name).iterdir()))}-{path.stem}"
    size = path.stat().st_size
    try:
        with gzip.open(path) as file, copy.open("wb") as plain:
            for block in iter(partial(file.read, 1 << 20), b""):
                check_unpacked(plain.tell() + len(block), path, size)
                plain.write(block)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        copy.unlink()
        raise ReaderError(
            f"{path}: not a whole gzip file ({first_line(error)})", hint="copy it again"
        ) from error
    return copy


@cache
def _copies() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="fewbench-")


class JsonLines:
    """The rows of a file of JSON lines.

    With `salvage`, a truncated last line is skipped, and `torn` holds its number. Iterating raises
    ReaderError if a line is not whole JSON: if `parse` raises ValueError.
    """

    def __init__(
        self, path: Path, salvage: bool = False, parse: Callable[[str], Any] = loads
    ) -> None:
        self.path = path
        self.salvage = salvage
        self._parse = parse
        self.torn: int | None = None

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Yield line number, from 1, and row; skip empty lines."""
        broken: tuple[int, Exception] | None = None
        try:
            with self.path.open("rb") as lines:
                for number, line in enumerate(lines, start=1):
                    if line.isspace():
                        continue
                    if broken:
                        raise self._error(*broken)
                    try:
                        row = self._parse(line.decode("utf-8-sig" if number == 1 else "utf-8"))
                    except RepeatedKeyError as error:
                        raise _repeated(f"{self.path}, line {number}", error) from error
                    except ValueError as error:
                        if isinstance(error, UnicodeDecodeError):
                            _refuse_encoding(self.path)
                        broken = number, error
                        continue
                    yield number, row
        except OSError as error:
            raise ReaderError(
                f"{self.path}: cannot be read ({error.strerror})", kind="damaged"
            ) from error
        if broken and not self.salvage:
            raise self._error(*broken, last=True)
        self.torn = broken[0] if broken else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes, once all lines are read."""
        return ("the last line is truncated and was skipped",) if self.torn else ()

    def _error(self, number: int, error: Exception, last: bool = False) -> ReaderError:
        hint = "the file is damaged; copy it again"
        if last:
            hint += ", or use its whole lines with --damaged rows"
        wrapped = ReaderError(f"{self.path}, line {number}: not whole JSON ({error})", hint=hint)
        wrapped.__cause__ = error
        return wrapped


@dataclass(frozen=True)
class JsonObject:
    """A JSON file that holds an object, and its parts."""

    path: Path
    data: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file, cached until it changes; ReaderError if it is not a JSON object."""
        return cls(path, _read_object(path, state_of(path)))

    def part(self, *keys: str) -> dict[str, Any]:
        """Return a nested object, {} if absent; ReaderError if it is something else."""
        value: Any = self.data
        for key in keys:
            value = value.get(key)
            if value is None:
                return {}
            if not isinstance(value, dict):
                raise ReaderError(f"{self.path}: {key!r} is not an object")
        return dict(value)


@lru_cache(maxsize=256)
def _read_object(path: Path, state: tuple[int, int] | None) -> dict[str, Any]:
    data = load_json(path)
    if not isinstance(data, dict):
        raise ReaderError(f"{path}: not a JSON object, so not a file of this harness")
    return data


def _refuse_encoding(path: Path) -> None:
    if text_encoding(path) == "utf-16" and (why := why_not_utf8(path)):
        raise ReaderError(f"{path}: {why[0]}", hint=why[1])


def load_json(path: Path) -> Any:
    """Read a JSON file of any size; ReaderError if it is not whole."""
    try:
        return loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise ReaderError(f"{path}: cannot be read ({error.strerror})", kind="damaged") from error
    except RepeatedKeyError as error:
        raise _repeated(str(path), error) from error
    except ValueError as error:
        if isinstance(error, UnicodeDecodeError):
            _refuse_encoding(path)
        raise ReaderError(
            f"{path}: not whole JSON ({error})", hint="copy it again, or delete it"
        ) from error


def _repeated(where: str, error: RepeatedKeyError) -> ReaderError:
    return ReaderError(
        f"{where}: {error}, so the value is not clear", hint="keep the right one of the two"
    )


def load_object(path: Path, what: str) -> dict[str, Any]:
    """Read a JSON file that holds an object; ReaderError if it does not."""
    data = load_json(path)
    if not isinstance(data, dict):
        raise ReaderError(f"{path}: {describe(data)}, not {what}")
    return data


def at(data: Any, *path: str | int) -> Any:
    """Return the value at a path of keys and indices in JSON, None if there is none.

    Examples
    --------
    >>> at({"result": {"completions": [{"text": "B"}]}}, "result", "completions", 0, "text")
    'B'
    >>> at({"result": None}, "result", "completions") is None
    True
    """
    for key in path:
        if isinstance(data, dict) and isinstance(key, str):
            data = data.get(key)
        elif isinstance(data, list) and isinstance(key, int) and key < len(data):
            data = data[key]
        else:
            return None
    return data


def object_at(data: Any, *path: str | int) -> dict[str, Any]:
    """Return the object at a path in JSON, {} if there is none."""
    value = at(data, *path)
    return value if isinstance(value, dict) else {}
