"""JSON files of all harnesses: lines, of which torn ones are named, and single objects."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from fewbench._content import text_encoding, why_not_utf8
from fewbench.errors import ReaderError
from fewbench.readers.files import state_of


class JsonLines:
    """The rows of a file of JSON lines.

    Parameters
    ----------
    path : Path
    salvage : bool
        Whether a torn last line is left out; `torn` then holds its number.

    Raises
    ------
    ReaderError
        While iterating: if a line is not whole JSON, or the file cannot be read.
    """

    def __init__(self, path: Path, salvage: bool = False) -> None:
        self.path = path
        self.salvage = salvage
        self.torn: int | None = None

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Yield line number, from 1, and row; empty lines are passed over."""
        broken: tuple[int, Exception] | None = None
        try:
            with self.path.open("rb") as lines:
                for number, line in enumerate(lines, start=1):
                    if not line.strip():
                        continue
                    if broken:
                        raise self._error(*broken)
                    try:
                        row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
                    except (ValueError, RecursionError) as error:
                        if isinstance(error, UnicodeDecodeError):
                            _refuse_encoding(self.path)
                        broken = number, error
                        continue
                    yield number, row
        except OSError as error:
            raise ReaderError(f"{self.path}: cannot be read ({error.strerror})") from error
        if broken and not self.salvage:
            raise self._error(*broken, last=True)
        self.torn = broken[0] if broken else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What to tell the user once all lines are read."""
        return ("the last line is torn and was left out",) if self.torn else ()

    def _error(self, number: int, error: Exception, last: bool = False) -> ReaderError:
        hint = "the file is torn; copy it again"
        if last:
            hint += ", or take its whole lines with --damaged rows"
        found = ReaderError(f"{self.path}, line {number}: not whole JSON ({error})", hint=hint)
        found.__cause__ = error
        return found


@dataclass(frozen=True)
class JsonObject:
    """A JSON file that holds an object, and its parts."""

    path: Path
    data: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file, once until it changes; ReaderError if it is torn or no object."""
        return cls(path, _read_object(path, state_of(path)))

    def part(self, *keys: str) -> dict[str, Any]:
        """Return a nested object, {} if it lacks; ReaderError if it is something else."""
        found: Any = self.data
        for key in keys:
            found = found.get(key)
            if found is None:
                return {}
            if not isinstance(found, dict):
                raise ReaderError(f"{self.path}: {key!r} is not an object")
        return dict(found)


@lru_cache(maxsize=256)
def _read_object(path: Path, state: tuple[int, int] | None) -> dict[str, Any]:
    data = load_json(path)
    if not isinstance(data, dict):
        raise ReaderError(f"{path}: not a JSON object, so not a file of this harness")
    return data


def _refuse_encoding(path: Path) -> None:
    """Raise ReaderError for text in UTF-16; other bytes that are no UTF-8 are damage."""
    if text_encoding(path) == "utf-16" and (why := why_not_utf8(path)):
        raise ReaderError(f"{path}: {why[0]}", hint=why[1])


def load_json(path: Path) -> Any:
    """Read a JSON file of any size; ReaderError if it is not whole."""
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise ReaderError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, UnicodeDecodeError):
            _refuse_encoding(path)
        raise ReaderError(
            f"{path}: not whole JSON ({error})", hint="copy it again, or delete it"
        ) from error
