"""Finished cells on disk, so that a study that was stopped goes on where it was.

One line a cell in a file that only grows; a line torn by a crash is skipped, for its cell is
simply run again.
"""

import os
from pathlib import Path

from pydantic import ValidationError

from fewbench._files import naming
from fewbench.errors import StudyError
from fewbench.study.cell import CellResult


class Cache:
    """Finished cells by key.

    Parameters
    ----------
    path : path or None
        The file; None keeps nothing.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._path = None if path is None else Path(path)
        self._done: dict[str, CellResult] = {}
        if self._path is not None and self._path.exists():
            content = self._path.read_bytes()
            if content.strip() and not content.lstrip().startswith(b"{"):
                raise StudyError(
                    f"{self._path}: not a file of finished cells", hint="name another with --cache"
                )
            for line in content.splitlines():
                try:
                    result = CellResult.model_validate_json(line)
                except ValidationError:
                    continue
                self._done[result.key] = result
            if content and not content.endswith(b"\n"):
                self._append(b"\n")  # whatever is torn stays on its own line

    def get(self, key: str) -> CellResult | None:
        """Return a finished cell, if there is one."""
        return self._done.get(key)

    def put(self, result: CellResult) -> None:
        """Keep a finished cell."""
        self._append(result.model_dump_json().encode() + b"\n")

    def _append(self, line: bytes) -> None:
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with naming(self._path), self._path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
