"""A method's measured errors on the sources, and the file that keeps them."""

import hashlib
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
"""Frontier: the weakest share of the sources that is learned from, the share below those judged."""
ADJACENT = 2
"""So many first steps are of judged sources that follow those learned from."""
FILE = "calibration.json"
FORMAT = 1
"""To be raised when errors are measured otherwise."""


@dataclass(frozen=True, eq=False)
class PastErrors:
    """Errors of a method on sources that it was not fitted on, one row a judgment.

    Attributes
    ----------
    errors : ndarray, shape (judged,)
        True full score less the estimate.
    spreads : ndarray, shape (judged,)
        The unit in which errors of different targets compare: the method's own standard error,
        or that of plain sampling at the estimate and the number of items run.
    random : ndarray, shape (judged,)
        Expected absolute error of plain random sampling of as many items.
    chance, distance : ndarray, shape (judged,)
        Where the answers place the source among those learned from (see `beyond.Placement`).
    models, groups : ndarray of int, shape (judged,)
        Positions of the judged sources, and the numbers of their groups.
    step : ndarray of int, shape (judged,)
        The division of the sources that the judgment is of.
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
    def n_groups(self) -> int:
        """How many independent groups of sources were judged."""
        return len(np.unique(self.groups))

    @property
    def relative(self) -> FloatArray:
        """Errors in units of their spreads, shape (judged,); 0 where all items were run."""
        known = self.spreads > 0
        return np.divide(self.errors, self.spreads, out=np.zeros(len(self)), where=known)

    @property
    def weights(self) -> FloatArray:
        """Weights of sum 1 in which every group counts the same, shape (judged,)."""
        return equal_weights(self.groups)

    @property
    def mean_error(self) -> float | None:
        """The mean absolute error, groups counting the same; None without any source."""
        return float(self.weights @ np.abs(self.errors)) if len(self) else None

    @property
    def mean_random(self) -> float | None:
        """What plain random sampling would err by on the same sources; None without any."""
        return float(self.weights @ self.random) if len(self) else None

    def typical(self, spread: float) -> float | None:
        """Return the mean absolute error expected of a target of this spread."""
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
        self._path = None if folder is None else folder / FILE
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

    def _read(self) -> _ErrorsFile:
        try:
            found = _ErrorsFile.model_validate_json(self._path.read_bytes()) if self._path else None
        except (OSError, ValidationError):
            found = None
        return found if found is not None and found.key == self._key else _ErrorsFile(key=self._key)
