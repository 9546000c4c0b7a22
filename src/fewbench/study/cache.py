"""Finished cells on disk, so that a study that was stopped goes on where it was.

One line per cell in a file that only grows (see `fewbench._journal`).
"""

import os
from pathlib import Path

from pydantic import ValidationError

from fewbench._journal import Lines
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
        self._lines = None if path is None else Lines(Path(path))
        self._done: dict[str, CellResult] = {}
        for number, line in self._lines.read() if self._lines is not None else ():
            if number == 1 and not line.lstrip().startswith(b"{"):
                raise StudyError(
                    f"{path}: not a file of finished cells", hint="name another with --cache"
                )
            try:
                result = CellResult.model_validate_json(line)
            except ValidationError:  # the cell is run again
                continue
            self._done[result.key] = result

    def get(self, key: str) -> CellResult | None:
        """Return a finished cell, if there is one."""
        return self._done.get(key)

    def put(self, result: CellResult) -> None:
        """Keep a finished cell."""
        if self._lines is not None:
            self._lines.path.parent.mkdir(parents=True, exist_ok=True)
            self._lines.append(result.model_dump_json().encode())
