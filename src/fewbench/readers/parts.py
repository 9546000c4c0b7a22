"""Runs on disk while many files are read: what a stopped import need not read again."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._files import written_whole
from fewbench._version import __version__
from fewbench.readers.files import state_of
from fewbench.readers.harness import Unit, Wants
from fewbench.readers.run import Run

FORMAT = 1


@dataclass(frozen=True)
class StoredColumns(Mapping[str, NDArray[Any]]):
    """Columns of one run in a file of several, each read when it is asked for."""

    path: Path
    at: int
    names: tuple[str, ...]

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Read a column."""
        if name not in self.names:
            raise KeyError(name)
        with np.load(self.path, allow_pickle=False) as arrays:
            return np.asarray(arrays[f"{self.at}/{self.names.index(name)}"])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def part_of(unit: Unit, harness: str, wants: Wants, folder: Path) -> Path:
    """Return where a unit's runs lie: another place when a file or what is wanted changes."""
    stamps = [[str(path.resolve()), state_of(path)] for path in (unit.path, *unit.beside)]
    said = [FORMAT, __version__, harness, wants.key, wants.salvage, stamps]
    return folder / f"{hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32]}.npz"


def save_part(runs: list[Run], path: Path) -> None:
    """Write the runs of a unit, whole or not at all."""
    arrays: dict[str, NDArray[Any]] = {}
    headers = []
    for at, run in enumerate(runs):
        names = list(run.columns)
        arrays |= {f"{at}/{i}": run.columns[name] for i, name in enumerate(names)}
        header = {field.name: getattr(run, field.name) for field in fields(run)}
        header |= {"path": str(run.path), "columns": names, "numeric": sorted(run.numeric)}
        headers.append(header)
    arrays["runs"] = np.frombuffer(json.dumps(headers).encode(), np.uint8)
    with written_whole(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def load_part(path: Path) -> list[Run]:
    """Read the runs of a unit; their columns stay on disk until they are asked for."""
    with np.load(path, allow_pickle=False) as arrays:
        headers = json.loads(arrays["runs"].tobytes())
    runs = []
    for at, header in enumerate(headers):
        columns = StoredColumns(path, at, tuple(header["columns"]))
        header |= {
            "path": Path(header["path"]),
            "columns": columns,
            "numeric": frozenset(header["numeric"]),
            "metrics": tuple(header["metrics"]),
            "notes": tuple(header["notes"]),
            "settings": tuple((key, value) for key, value in header["settings"]),
            "unfit": {name: (place, what) for name, (place, what) in header["unfit"].items()},
        }
        runs.append(Run(**header))
    return runs
