"""Read files into runs, on several processors, and report the errors of each.

With a folder, the runs of each unit are kept there as a part, so that a stopped import continues:
an Arrow file of one row, a list per column of a run, and the rest of the runs as metadata.
"""

import gc
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fewbench._files import written_whole
from fewbench._progress import OnStep
from fewbench._version import __version__
from fewbench.errors import FewbenchError, MissingExtraError, ReaderError, first_line
from fewbench.executors import Executor, InProcess, Lost, Pool, open_pool
from fewbench.readers.files import state_of
from fewbench.readers.harness import Harness, LogRun, LogUnit, Wants
from fewbench.readers.harnesses import HARNESSES

FORMAT = 5
SUFFIX = ".part"
Pairs = tuple[tuple[str, Any], ...]
Damaged = Literal["stop", "skip", "rows"]
Answer = list[LogRun] | Path | FewbenchError  # runs, or the part that holds them
PARALLEL_FROM = 256 * 2**20  # bytes; for fewer, processes take longer to start than they save
SHOWN = 3


@dataclass(frozen=True, slots=True)
class StoredColumns(Mapping[str, NDArray[Any]]):
    """Columns of run number `run` in a part, loaded on access; `shapes` by name."""

    path: Path
    run: int
    shapes: Mapping[str, Sequence[int]]

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Read a column."""
        column = _open_arrow(self.path).get_batch(0).column(f"{self.run}/{name}").values
        values = column.to_numpy(zero_copy_only=False)
        kind = str if values.dtype == object else values.dtype
        return np.asarray(values.astype(kind)).reshape(self.shapes[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)


def _open_arrow(path: Path) -> Any:
    from pyarrow import ipc, memory_map

    return ipc.open_file(memory_map(str(path)))


def part_of(unit: LogUnit, harness: str, wants: Wants, folder: Path) -> Path:
    """Return the path of a unit's part; it changes with the files and settings."""
    states = [[str(path.absolute()), state_of(path)] for path in (unit.path, *unit.beside)]
    names = [field.name for field in fields(LogRun)]
    inputs = [FORMAT, __version__, names, harness, wants.key, wants.salvage, wants.trials]
    inputs += [wants.errors, states]
    return folder / f"{hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:32]}{SUFFIX}"


def save_part(runs: list[LogRun], path: Path) -> None:
    """Write the runs of a unit, whole or not at all."""
    import pyarrow as pa

    headers, arrays = [], {}
    for at, run in enumerate(runs):
        for name, column in run.columns.items():
            flat = pa.array(column.ravel(), pa.large_string() if column.dtype.kind == "U" else None)
            arrays[f"{at}/{name}"] = pa.LargeListArray.from_arrays([0, len(flat)], flat)
        header = {field.name: getattr(run, field.name) for field in fields(run)}
        header["columns"] = {name: column.shape for name, column in run.columns.items()}
        headers.append(header | {"path": str(run.path), "numeric": sorted(run.numeric)})
    batch = pa.record_batch(arrays, metadata={"runs": json.dumps(headers)})
    with written_whole(path) as temporary, pa.ipc.new_file(temporary, batch.schema) as file:
        file.write(batch)


def load_part(path: Path) -> list[LogRun]:
    """Read the runs of a part; columns stay on disk until used."""
    headers = json.loads(_open_arrow(path).schema.metadata[b"runs"])
    return [_run(header, path, at) for at, header in enumerate(headers)]


def _run(header: dict[str, Any], path: Path, at: int) -> LogRun:
    header |= {
        "path": Path(header["path"]),
        "columns": StoredColumns(path, at, header["columns"]),
        "numeric": frozenset(header["numeric"]),
        "metrics": _shared(tuple(header["metrics"])),
        "notes": _shared(tuple(header["notes"])),
        "settings": _shared(tuple((key, value) for key, value in header["settings"])),
        "task_settings": _shared(tuple((key, value) for key, value in header["task_settings"])),
        "scorers": _mapping(tuple(header["scorers"].items())),
        "unfit": {name: (place, what) for name, (place, what) in header["unfit"].items()},
        "higher_is_better": _mapping(tuple(header["higher_is_better"].items())),
        "aggregated": _mapping(tuple(header["aggregated"].items())),
    }
    return LogRun(**header)


@lru_cache(maxsize=4096)
def _shared(value: Pairs) -> Pairs:
    """Return one object for equal values, to save memory."""
    return value


@lru_cache(maxsize=4096)
def _mapping(pairs: Pairs) -> dict[str, Any]:
    return dict(pairs)


def find_units(
    files: Sequence[Path], form: str | None = None
) -> tuple[list[tuple[Harness, LogUnit]], list[Path]]:
    """Return the units of all harnesses, or of one, and the files that are of none."""
    left = list(files)
    units: list[tuple[Harness, LogUnit]] = []
    for harness in [HARNESSES[form]] if form else HARNESSES.values():
        mine = harness.find(left)
        units += [(harness, unit) for unit in mine]
        taken = {path for unit in mine for path in (unit.path, *unit.beside)}
        left = [path for path in left if path not in taken]
    place = {path: at for at, path in enumerate(files)}
    units.sort(key=lambda pair: place.get(pair[1].path, len(place)))
    return units, left


def gather(
    units: Sequence[tuple[Harness, LogUnit]],
    wants: Wants,
    *,
    work: Path | None = None,
    workers: int = 1,
    executor: Executor = None,
    damaged: Damaged = "stop",
    progress: OnStep | None = None,
) -> tuple[list[LogRun], list[tuple[Path, str]]]:
    """Read all units.

    Parameters
    ----------
    work : Path, optional
        Folder for what is read, so that a stopped import continues; in memory by default.
    workers : int
        Number of processes, used if `work` is given and the files are large.
    executor : Executor, optional
        Where to read in place of processes of this machine if `work` is given; see
        `fewbench.executors`. Its workers need the files and the folder.
    damaged : {"stop", "skip", "rows"}
        For files that cannot be read: stop, skip them, or also use whole rows of truncated files.
    progress : callable, optional
        Called with (files done, all files).

    Returns
    -------
    (list of Run, list of (Path, str))
        Runs in the order of the units; skipped files, each with the reason.

    Raises
    ------
    ReaderError
        If files cannot be read and `damaged` is "stop". Names the first few and their number.
    """
    answers: list[list[LogRun] | FewbenchError] = []
    with open_pool(executor, workers) if work else open_pool() as pool:
        for answer in _each(units, (wants, work), pool):
            if isinstance(answer, MissingExtraError):
                raise answer  # it is not the file that is damaged
            answers.append(_part(answer) if isinstance(answer, Path) else answer)
            if progress is not None:
                progress(len(answers), len(units))
    troubles = [
        (unit.path, answer)
        for (_, unit), answer in zip(units, answers, strict=True)
        if isinstance(answer, FewbenchError)
    ]
    if troubles and (damaged == "stop" or len(troubles) == len(units)):
        raise _joined([error for _, error in troubles], len(units), damaged)
    runs = [run for answer in answers if isinstance(answer, list) for run in answer]
    return runs, [(path, error.message) for path, error in troubles]


def _each(
    units: Sequence[tuple[Harness, LogUnit]], how: tuple[Wants, Path | None], pool: Pool
) -> Iterator[Answer]:
    size = sum(unit.path.stat().st_size for _, unit in units if unit.path.is_file())
    if not pool.is_remote and size < PARALLEL_FROM:
        pool = InProcess()
    for (_, unit), answer in zip(units, pool.in_order(_read_one, how, units), strict=True):
        if isinstance(answer, Lost):
            raise ReaderError(
                f"{unit.path}: the process that read it was killed ({answer.reason})",
                hint="if memory is short, use --workers 1; files that were read are kept",
            )
        yield answer


def _part(path: Path) -> list[LogRun]:
    """Load what a worker read."""
    try:
        return load_part(path)
    except FileNotFoundError as error:
        raise ReaderError(
            f"{path}: a worker wrote it, but it is not here",
            hint="write to a folder that this machine and all workers share",
        ) from error


def _read_one(how: tuple[Wants, Path | None], pair: tuple[Harness, LogUnit]) -> Answer:
    wants, work = how
    harness, unit = pair
    part = None if work is None else part_of(unit, harness.name, wants, work)
    if part is not None and _is_whole(part):
        return part
    try:
        with _uncollected():
            runs = [replace(run, harness=harness.name) for run in harness.read(unit, wants)]
    except FewbenchError as error:
        return error
    except Exception as error:  # a malformed file can raise anything
        reason = f"{type(error).__name__}: {first_line(error)}"
        return ReaderError(
            f"{unit.path}: cannot be read as a result file of {harness.name} ({reason})",
            hint="copy the file again; if the harness wrote it like this, report a bug in fewbench",
        )
    if part is None:
        return runs
    save_part(runs, part)
    return part


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pause the search for objects that refer to each other: rows do not, and are very many."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _is_whole(part: Path) -> bool:
    if not part.is_file():
        return False
    try:
        load_part(part)
    except (OSError, ValueError, TypeError, KeyError):
        return False
    return True


def _joined(errors: list[FewbenchError], n_units: int, damaged: Damaged) -> FewbenchError:
    if len(errors) == 1:
        return errors[0]
    messages = list(dict.fromkeys(error.message for error in errors))
    hints = {error.hint for error in errors}
    return ReaderError(
        f"{len(errors)} of {n_units} files cannot be read: {'; '.join(messages[:SHOWN])}"
        + ("; …" if len(messages) > SHOWN else ""),
        hint=hints.pop()
        if len(hints) == 1 and len(errors) == n_units  # what helps one helps all
        else "skip them with --damaged skip, or use whole rows of truncated files with --damaged "
        "rows"
        if damaged == "stop"
        else "no file is left to read",
    )
