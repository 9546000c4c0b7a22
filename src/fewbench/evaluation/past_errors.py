"""A method's measured errors on the sources, and the file that keeps them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from fewbench._files import written_whole
from fewbench._types import FloatArray, IntArray
from fewbench._version import __version__

FOLDS = 5
MOST_JUDGED = 100
MOST_JUDGED_BEYOND = 40
STEPS = ((0.75, 0.75), (0.7, 0.7), (0.6, 0.7), (0.5, 0.75))
"""Frontier: weakest share of the sources to learn from, and share below the judged ones."""
ADJACENT = 2
"""Number of first steps whose judged sources directly follow those learned from."""
FILE = "calibration.json"
_WHOLE = ("models", "groups", "step")  # the last fields of PastErrors
FORMAT = 1
"""Raise it when errors are measured differently."""


@dataclass(frozen=True, eq=False)
class PastErrors:
    """Errors of a method on held-out sources, one row per judgment.

    Attributes
    ----------
    errors : ndarray, shape (judged,)
        Full score minus estimate.
    spreads : ndarray, shape (judged,)
        Units of the errors: the method's own standard error, or that of plain sampling at the
        estimate and number of items.
    random : ndarray, shape (judged,)
        Expected absolute error of plain random sampling of as many items.
    chance, distance : ndarray, shape (judged,)
        Place of the source among those learned from (see `beyond.Placement`).
    models, groups : ndarray of int, shape (judged,)
        Positions of the judged sources, and their groups.
    step : ndarray of int, shape (judged,)
        Number of the division of the sources.
    """

    errors: FloatArray
    spreads: FloatArray
    random: FloatArray
    chance: FloatArray
    distance: FloatArray
    models: IntArray
    groups: IntArray
    step: IntArray

    def __len__(self) -> int:
        return len(self.errors)

    @property
    def rows(self) -> FloatArray:
        """All fields in order, shape (8, judged)."""
        return np.array([getattr(self, one.name) for one in fields(self)], dtype=np.float64)

    @classmethod
    def of_rows(cls, rows: FloatArray) -> "PastErrors":
        """Return the errors with these `rows`."""
        whole = len(fields(cls)) - len(_WHOLE)
        return cls(*rows[:whole], *(row.astype(np.intp) for row in rows[whole:]))

    @property
    def n_groups(self) -> int:
        """Number of judged groups of sources."""
        return len(np.unique(self.groups))

    @property
    def relative(self) -> FloatArray:
        """Errors in units of their spreads; 0 where all items were run."""
        known = self.spreads > 0
        return np.divide(self.errors, self.spreads, out=np.zeros(len(self)), where=known)

    @property
    def weights(self) -> FloatArray:
        """Weights with sum 1, equal for all groups."""
        return equal_weights(self.groups)

    @property
    def mean_error(self) -> float | None:
        """The mean absolute error, all groups weighted equally; None without sources."""
        return float(self.weights @ np.abs(self.errors)) if len(self) else None

    @property
    def mean_random(self) -> float | None:
        """The mean error of random sampling on the same sources; None without sources."""
        return float(self.weights @ self.random) if len(self) else None

    def typical(self, spread: float) -> float | None:
        """Return the expected absolute error of a target of this spread."""
        if not len(self):
            return None
        return float(self.weights @ np.abs(self.relative)) * spread


def no_errors() -> PastErrors:
    """Return the errors of no judgment."""
    no, whole = np.empty(0), np.empty(0, dtype=np.intp)
    return PastErrors(no, no, no, no, no, whole, whole, whole)


def joined(parts: list[PastErrors]) -> PastErrors:
    """Join judgments."""
    if not parts:
        return no_errors()
    return PastErrors(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in no_errors().__dict__)
    )


def equal_weights(labels: IntArray) -> FloatArray:
    """Return weights of sum 1 in which every label counts the same."""
    if not len(labels):
        return np.empty(0)
    _, inverse, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / counts[inverse] / len(counts))


class _ErrorsFile(BaseModel):
    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="constants")

    key: str
    parts: dict[str, dict[str, list[float]]] = {}


class KeptErrors:
    """Past errors by name, in memory and, if there is a folder, in a file of it.

    Errors of another version, or with another `repr` of `made_of`, are not used.
    """

    def __init__(self, folder: Path | None, *made_of: object) -> None:
        self._path = None if folder is None else folder / FILE
        self._known: dict[str, PastErrors] = {}
        how = (__version__, FORMAT, FOLDS, STEPS, MOST_JUDGED, MOST_JUDGED_BEYOND)
        self._key = hashlib.sha256(repr((*how, *made_of)).encode()).hexdigest()

    def add(self, parts: Mapping[str, FloatArray]) -> None:
        """Keep errors of a pack in memory, by name: `PastErrors.rows`."""
        for name, rows in parts.items():
            self._known.setdefault(name, PastErrors.of_rows(rows))

    def rows(self) -> dict[str, FloatArray]:
        """Return the errors in memory by name, as `PastErrors.rows`."""
        return {name: past.rows for name, past in self._known.items()}

    def names(self) -> set[str]:
        """Return the names of all errors that are kept."""
        return {*self._known, *self._read().parts}

    def get(self, name: str) -> PastErrors | None:
        """Return the errors of a name, if there are any."""
        if name in self._known:
            return self._known[name]
        part = self._read().parts.get(name)
        if part is None or set(part) != {field.name for field in fields(PastErrors)}:
            return None
        if len({len(values) for values in part.values()}) != 1:
            return None
        numbers = {name: np.array(values) for name, values in part.items()}
        for whole in _WHOLE:
            numbers[whole] = numbers[whole].astype(np.intp)
        return PastErrors(**numbers)

    def put(self, name: str, past: PastErrors) -> None:
        """Keep errors under a name, if the folder can be written to."""
        self._known[name] = past
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

    def _read(self) -> _ErrorsFile:
        try:
            found = _ErrorsFile.model_validate_json(self._path.read_bytes()) if self._path else None
        except (OSError, ValidationError):
            found = None
        return found if found is not None and found.key == self._key else _ErrorsFile(key=self._key)
