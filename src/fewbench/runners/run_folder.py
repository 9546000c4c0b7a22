"""The folder of a run: one process at a time is at work there, and it keeps what the run is.

In it, `run.lock` keeps a second process out.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from pathlib import Path

from fewbench._files import only_process, written_whole
from fewbench._names import some
from fewbench.errors import FewbenchError, RunError
from fewbench.evaluation.changes import ITEMS
from fewbench.evaluation.journal import (
    ANSWERS,
    HEADER,
    Journal,
    has_evaluation,
    logs_of,
    targets_of,
)
from fewbench.evaluation.opening import BENCHMARK, SCORES
from fewbench.scores import Scores, open_saved

LOCK = "run.lock"
TOLD = b'"scores":['  # in lines with answers alone


class BusyError(RunError):
    """Another run is at work in a folder."""


def locked(folder: Path) -> AbstractContextManager[None]:
    """Keep other runs out of a folder until the block ends; BusyError if one is at work there."""
    busy = f"{folder}: another fewbench run is at work in this folder"
    hint = "wait until it ends or stop it, or use another folder"
    return only_process(folder / LOCK, busy, hint, BusyError)


def set_aside(folder: Path) -> Path | None:
    """Rename the folder of a run to the first free of FOLDER.1, FOLDER.2, …, and return that.

    None if it has no run. RunError if a run is at work there, or it is the working directory.
    """
    if not has_evaluation(folder):
        return None
    place = folder.resolve()
    if Path.cwd().is_relative_to(place):
        raise RunError(
            f"{folder}: the working directory is in this folder, which would be renamed",
            hint="change to another directory first",
        )
    kept = _free(place)
    with locked(folder):
        place.rename(kept)
    return kept


def _free(place: Path) -> Path:
    """Return the first free of FOLDER.1, FOLDER.2, …"""
    names = (f"{place.name}.{n}" for n in count(1))
    return next(place.with_name(name) for name in names if name not in os.listdir(place.parent))


def remove_target(folder: Path, target: str) -> Path:
    """Remove a target from the evaluation in a folder; return the copy of the folder as it was.

    The copy is the first free of FOLDER.1, FOLDER.2, …

    Raises
    ------
    RunError
        If the folder has no such target, or no other one, or a run is at work there.
    EvaluationError
        If there is no evaluation.
    """
    journal = Journal(folder)
    targets = targets_of(journal.header(), journal.fresh())
    if target not in targets:
        raise RunError(f"{folder}: no target {target!r}", hint=f"its targets are {some(targets)}")
    if len(targets) == 1:
        raise RunError(
            f"{folder}: {target!r} is the only target", hint="delete the folder, or use another"
        )
    kept = _free(folder.resolve())
    with locked(folder):
        shutil.copytree(folder, kept, ignore=shutil.ignore_patterns(LOCK))
        Journal(folder).forget(target)
        shutil.rmtree(logs_of(folder, target), ignore_errors=True)
    return kept


def renew(folder: Path, targets: list[str]) -> Path | None:
    """Make room for a fresh run of some targets, or of all without any; return what is kept.

    A folder with other targets stays, and a copy of it is kept.
    """
    if not targets or not has_evaluation(folder):
        return set_aside(folder)
    journal = Journal(folder)
    there = targets_of(journal.header(), journal.fresh())
    renewed = [name for name in targets if name in there]
    if len(renewed) == len(there):
        return set_aside(folder)
    copies = [remove_target(folder, name) for name in renewed]
    for lacking in copies[1:]:  # the first copy has all
        shutil.rmtree(lacking)
    return copies[0] if copies else None


@contextmanager
def renewed(folder: Path, targets: list[str]) -> Iterator[Path | None]:
    """Make room for a fresh run as `renew` does, and undo that if the run is refused.

    What is kept stays where it is if anything else is in the folder by then.
    """
    kept, place = renew(folder, targets), folder.resolve()
    before = _sizes(place)
    try:
        yield kept
    except FewbenchError:
        if kept is not None:
            with suppress(BusyError), locked(place):
                if _sizes(place) == before:
                    shutil.rmtree(place)
                    kept.rename(place)
        raise


def _sizes(folder: Path) -> dict[Path, int]:
    """Return the size of each file in a folder."""
    return {
        path: path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and path.name != LOCK
    }


@contextmanager
def undone_if_refused(folder: Path | None, has_begun: Callable[[], bool]) -> Iterator[None]:
    """Leave a folder as it was if a run in it is refused before it has begun."""
    if folder is None:
        yield
        return
    is_new = not folder.exists()
    answers, others = folder / ANSWERS, [HEADER, ITEMS, BENCHMARK, SCORES]
    size = answers.stat().st_size if answers.exists() else None
    before = {name: (folder / name).read_bytes() for name in others if (folder / name).exists()}
    try:
        yield
    except FewbenchError as error:
        # What changed in a busy folder is of the other run; answers are of those who told them.
        is_told = answers.exists() and TOLD in answers.read_bytes()[size or 0 :]
        if not (has_begun() or is_told or isinstance(error, BusyError)):
            for name in others:
                if name not in before:
                    (folder / name).unlink(missing_ok=True)
                elif (folder / name).read_bytes() != before[name]:
                    with written_whole(folder / name) as temporary:
                        temporary.write_bytes(before[name])
            if size is None:
                answers.unlink(missing_ok=True)
            else:
                os.truncate(answers, size)  # only its end has changed
            if is_new:
                shutil.rmtree(folder, ignore_errors=True)
        raise


def saved_benchmark(folder: str | Path | None) -> Scores | None:
    """Return the items of the run without source models in a folder, or None if none was started.

    RunError if the run there has source models.
    """
    if folder is None or not has_evaluation(folder):
        return None
    path = Path(folder) / BENCHMARK
    if not path.exists():
        raise RunError(
            f"{folder}: the evaluation there has scores of source models",
            hint="pass these scores to resume, or use another folder",
            kind="changed",
        )
    return open_saved(path)
