"""Finished cells by key: in a file, in a folder, or at a URL that all drivers reach."""

import os
import socket
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fewbench._journal import Lines
from fewbench.errors import MissingExtraError, StudyError, first_line
from fewbench.study.cell import CellResult

MINE = "cells-*.jsonl"
HINT = "name another file or folder with --cache"


class Cache:
    """Finished cells by key; None keeps nothing.

    The process that gives out the cells writes them, as they finish, so a study that was stopped
    can continue.

    Parameters
    ----------
    place : path or str, optional
        - a file, with a line per cell; it only grows (see `fewbench._journal`);
        - a folder that exists, or a name that ends in `/`: each process adds a file of its own, so
          that several machines can share the folder;
        - a URL of fsspec such as `s3://bucket/cells`: an object per cell.

    Raises
    ------
    StudyError
        If the file or folder holds something else, or the URL cannot be used.
    MissingExtraError
        If fsspec or the package for the URL's protocol is not installed.
    """

    def __init__(self, place: str | os.PathLike[str] | None) -> None:
        self._store: _Files | _Objects | None = None
        self._done: dict[str, CellResult] = {}
        if isinstance(place, str) and "://" in place:
            self._store = _Objects(place)
        elif place is not None:
            self._store = _Files(place)
            self._take(self._store.lines())

    def find(self, keys: Iterable[str]) -> dict[str, CellResult]:
        """Return the finished ones of these cells."""
        wanted = list(dict.fromkeys(keys))
        if isinstance(self._store, _Objects):
            self._take(self._store.lines([key for key in wanted if key not in self._done]))
        return {key: self._done[key] for key in wanted if key in self._done}

    def put(self, result: CellResult) -> None:
        """Keep a finished cell."""
        if self._store is not None:
            self._store.add(result.key, result.model_dump_json().encode())

    def _take(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            try:
                result = CellResult.model_validate_json(line)
            except ValidationError:  # the cell is run again
                continue
            self._done[result.key] = result


def is_folder(place: str | os.PathLike[str]) -> bool:
    """Whether a place, which is no URL, is a folder of cache files and not one file."""
    return os.fspath(place).endswith(("/", os.sep)) or Path(place).is_dir()


class _Files:
    """One file, or a folder of files of which this process writes its own."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        path = Path(place)
        self._all = [path]
        if is_folder(place):
            self._all = sorted(path.glob(MINE)) if path.is_dir() else []
            if path.is_dir() and not self._all and any(path.iterdir()):
                raise StudyError(f"{path} is a folder of something else", hint=HINT)
            path = path / MINE.replace("*", f"{socket.gethostname()}-{os.getpid()}")
        self._mine = Lines(path)

    def lines(self) -> Iterator[bytes]:
        for path in self._all:
            for number, line in Lines(path).read():
                if number == 1 and not line.lstrip().startswith(b"{"):
                    raise StudyError(f"{path}: not a cache of finished cells", hint=HINT)
                yield line

    def add(self, key: str, line: bytes) -> None:
        self._mine.path.parent.mkdir(parents=True, exist_ok=True)
        self._mine.append(line)


class _Objects:
    """An object per cell, for stores that cannot add to what they hold."""

    def __init__(self, url: str) -> None:
        try:
            fsspec = import_module("fsspec.core")
        except ImportError as error:
            raise MissingExtraError(
                "a cache at a URL needs fsspec", hint="pip install 'fewbench[dask]', or use a file"
            ) from error
        try:
            self._system, self._root = fsspec.url_to_fs(url)
        except ImportError as error:
            raise MissingExtraError(
                f"{url}: {first_line(error)}", hint="install the package that fsspec needs for it"
            ) from error
        except ValueError as error:
            raise StudyError(f"{url}: {first_line(error)}", hint=HINT) from error
        self._url = url

    def _place(self, key: str) -> str:
        return f"{self._root.rstrip('/')}/{key}.json"

    def lines(self, keys: list[str]) -> list[bytes]:
        if not keys:
            return []
        places = [self._place(key) for key in keys]
        found: Any = self._reach(self._system.cat, places, on_error="return")
        wrong = [e for e in found.values() if isinstance(e, Exception)]
        other = [e for e in wrong if not isinstance(e, FileNotFoundError | KeyError)]
        if other:
            raise self._unreached(other[0])
        return [one for one in found.values() if isinstance(one, bytes)]

    def add(self, key: str, line: bytes) -> None:
        if "/" in self._root:
            self._reach(self._system.makedirs, self._root, exist_ok=True)
        self._reach(self._system.pipe_file, self._place(key), line)

    def _reach(self, what: Any, *args: Any, **how: Any) -> Any:
        try:
            return what(*args, **how)
        except (OSError, ValueError) as error:
            raise self._unreached(error) from error

    def _unreached(self, error: Exception) -> StudyError:
        return StudyError(
            f"{self._url}: the cache cannot be used ({type(error).__name__}: {first_line(error)})",
            hint="check the address and your credentials, or use --no-cache",
        )
