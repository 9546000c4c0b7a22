"""Finished cells by key, in a file or in a folder that several machines share."""

import os
import socket
from collections.abc import Iterable
from pathlib import Path

from fewbench._journal import Lines, checked
from fewbench.errors import StudyError
from fewbench.study.cell import CellResult

MINE = "cells-*.jsonl"
HINT = "name another file or folder with --cache"


class Cache:
    """Finished cells by key, or None to keep nothing.

    The process that gives out the cells writes them, as they finish, so a study that was stopped
    can continue.

    Parameters
    ----------
    place : path or str, optional
        - a file, with a line per cell; it only grows (see `fewbench._journal`);
        - a folder that exists, or a name that ends in `/`: each process adds a file of its own, so
          that several machines can share the folder.

    Raises
    ------
    StudyError
        If the file or folder holds something else, or the place is a URL.
    """

    def __init__(self, place: str | os.PathLike[str] | None) -> None:
        self._mine: Lines | None = None
        self._done: dict[str, CellResult] = {}
        if place is None:
            return
        if "://" in os.fspath(place):
            raise StudyError(f"{place}: a cache cannot be at a URL", hint=HINT)
        path = Path(place)
        files = [path]
        if is_folder(place):
            files = sorted(path.glob(MINE)) if path.is_dir() else []
            if path.is_dir() and not files and any(path.iterdir()):
                raise StudyError(f"{path} is a folder of something else", hint=HINT, kind="taken")
            path = path / MINE.replace("*", f"{socket.gethostname()}-{os.getpid()}")
        self._mine = Lines(path)
        for file in files:
            self._read(file)

    def find(self, keys: Iterable[str]) -> dict[str, CellResult]:
        """Return the finished ones of these cells."""
        return {key: self._done[key] for key in keys if key in self._done}

    def put(self, result: CellResult) -> None:
        """Keep a finished cell."""
        if self._mine is not None:
            self._mine.path.parent.mkdir(parents=True, exist_ok=True)
            self._mine.append(result.model_dump_json().encode())

    def _read(self, file: Path) -> None:
        for number, line in Lines(file).read():
            if number == 1 and not line.lstrip().startswith(b"{"):
                raise StudyError(f"{file}: not a cache of finished cells", hint=HINT)
            try:
                result = CellResult.model_validate_json(checked(line))
            except ValueError:  # the cell is run again
                continue
            self._done[result.key] = result


def is_folder(place: str | os.PathLike[str]) -> bool:
    """Whether a place is a folder of cache files and not one file."""
    return os.fspath(place).endswith(("/", os.sep)) or Path(place).is_dir()
