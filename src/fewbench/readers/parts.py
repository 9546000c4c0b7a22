"""Runs on disk while many files are read: what a stopped import need not read again.

A part holds the runs of one unit: eight bytes with the length of a JSON header, the header, then
the columns one after another.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._files import written_whole
from fewbench._version import __version__
from fewbench.readers.files import state_of
from fewbench.readers.harness import Unit, Wants
from fewbench.readers.run import Run

FORMAT = 3
SUFFIX = ".part"
Pairs = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class StoredColumns(Mapping[str, NDArray[Any]]):
    """Columns of one run in a part, each read when it is asked for.

    `places` has each column's name, type, shape and first byte.
    """

    path: Path
    places: tuple[tuple[str, str, tuple[int, ...], int], ...]

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Read a column."""
        for known, kind, shape, start in self.places:
            if known == name:
                count = int(np.prod(shape))
                return np.fromfile(self.path, kind, count, offset=start).reshape(shape)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (place[0] for place in self.places)

    def __len__(self) -> int:
        return len(self.places)


def part_of(unit: Unit, harness: str, wants: Wants, folder: Path) -> Path:
    """Return where a unit's runs lie: another place when a file or what is wanted changes."""
    states = [[str(path.absolute()), state_of(path)] for path in (unit.path, *unit.beside)]
    known = [field.name for field in fields(Run)]
    said = [FORMAT, __version__, known, harness, wants.key, wants.salvage, states]
    return folder / f"{hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32]}{SUFFIX}"


def save_part(runs: list[Run], path: Path) -> None:
    """Write the runs of a unit, whole or not at all."""
    headers, blocks, start = [], [], 0
    for run in runs:
        places = []
        for name, column in run.columns.items():
            block = np.ascontiguousarray(column)
            places.append([name, block.dtype.str, block.shape, start])
            blocks.append(block)
            start += block.nbytes
        header = {field.name: getattr(run, field.name) for field in fields(run)}
        header |= {"path": str(run.path), "columns": places, "numeric": sorted(run.numeric)}
        headers.append(header)
    said = json.dumps(headers).encode()
    with written_whole(path) as temporary, temporary.open("wb") as file:
        file.write(len(said).to_bytes(8, "big") + said)
        for block in blocks:
            file.write(block.tobytes())


def load_part(path: Path) -> list[Run]:
    """Read the runs of a unit; their columns stay on disk until they are asked for."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "big")
        headers = json.loads(file.read(size))
    return [_run(header, path, 8 + size) for header in headers]


def _run(header: dict[str, Any], path: Path, first: int) -> Run:
    places = tuple(
        (name, kind, tuple(shape), first + start) for name, kind, shape, start in header["columns"]
    )
    header |= {
        "path": Path(header["path"]),
        "columns": StoredColumns(path, places),
        "numeric": frozenset(header["numeric"]),
        "metrics": _shared(tuple(header["metrics"])),
        "notes": _shared(tuple(header["notes"])),
        "settings": _shared(tuple((key, value) for key, value in header["settings"])),
        "task_settings": _shared(tuple((key, value) for key, value in header["task_settings"])),
        "unfit": {name: (place, what) for name, (place, what) in header["unfit"].items()},
        "higher_is_better": _mapping(tuple(header["higher_is_better"].items())),
    }
    return Run(**header)


@lru_cache(maxsize=4096)
def _shared(value: Pairs) -> Pairs:
    """Return the same object for equal values: runs of a leaderboard have much in common."""
    return value


@lru_cache(maxsize=4096)
def _mapping(pairs: Pairs) -> dict[str, Any]:
    return dict(pairs)
