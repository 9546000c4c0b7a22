"""Lines of JSON, whatever their harness: torn lines are named, and left out only if asked."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fewbench.errors import ReaderError


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
                        row = json.loads(line.decode("utf-8"))
                    except (ValueError, RecursionError) as error:
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


def load_json(path: Path) -> Any:
    """Read a JSON file of any size; ReaderError if it is not whole."""
    try:
        return json.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise ReaderError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise ReaderError(
            f"{path}: not whole JSON ({error})", hint="copy it again, or delete it"
        ) from error
