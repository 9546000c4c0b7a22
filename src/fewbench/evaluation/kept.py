"""Past errors kept in an evaluation's folder, so that they are measured once.

`calibration.json` can be deleted at any time; it is then made again.
"""

import hashlib
from dataclasses import fields
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from fewbench._files import written_whole
from fewbench._version import __version__
from fewbench.evaluation.calibration import (
    FOLDS,
    MOST_JUDGED,
    MOST_JUDGED_BEYOND,
    STEPS,
    PastErrors,
)

NAME = "calibration.json"
FORMAT = 1
"""To be raised when errors are measured otherwise."""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="constants")

    key: str
    parts: dict[str, dict[str, list[float]]] = {}


class KeptErrors:
    """Past errors by name, in a file.

    Parameters
    ----------
    folder : Path or None
        Where the file lies; None keeps nothing.
    made_of : object
        All that the errors depend on, as its `repr`: what was kept of something else, or by
        another version of fewbench, is not used.
    """

    def __init__(self, folder: Path | None, *made_of: object) -> None:
        self._path = None if folder is None else folder / NAME
        how = (__version__, FORMAT, FOLDS, STEPS, MOST_JUDGED, MOST_JUDGED_BEYOND)
        self._key = hashlib.sha256(repr((*how, *made_of)).encode()).hexdigest()

    def get(self, name: str) -> PastErrors | None:
        """Return what was kept under a name, if anything fits."""
        part = self._read().parts.get(name)
        if part is None or set(part) != {field.name for field in fields(PastErrors)}:
            return None
        if len({len(values) for values in part.values()}) != 1:
            return None
        numbers = {name: np.array(values) for name, values in part.items()}
        for whole in ("models", "groups", "step"):
            numbers[whole] = numbers[whole].astype(np.intp)
        return PastErrors(**numbers)

    def put(self, name: str, past: PastErrors) -> None:
        """Keep errors under a name; a folder that cannot be written to keeps nothing."""
        if self._path is None:
            return
        file = self._read()
        file.parts[name] = {
            field.name: getattr(past, field.name).tolist() for field in fields(PastErrors)
        }
        try:
            with written_whole(self._path) as temporary:
                temporary.write_text(file.model_dump_json(), encoding="utf-8")
        except OSError:
            return

    def _read(self) -> _File:
        try:
            found = _File.model_validate_json(self._path.read_bytes()) if self._path else None
        except (OSError, ValidationError):
            found = None
        return found if found is not None and found.key == self._key else _File(key=self._key)
