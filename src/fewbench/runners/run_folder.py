"""The folder of a run: one process at a time is at work there, and it keeps what the run is.

In it, `run.lock` keeps a second process out.
"""

import os
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path

from fewbench._files import only_process
from fewbench.errors import RunError
from fewbench.evaluation import Stop
from fewbench.evaluation.journal import HEADER, Journal
from fewbench.evaluation.opening import BENCHMARK
from fewbench.runners.joining import LeadingRun
from fewbench.scores import Benchmark, Scores, open_sources

LOCK = "run.lock"


def locked(folder: Path) -> AbstractContextManager[None]:
    """Keep other runs out of a folder until the block ends; RunError if one is at work there."""
    busy = f"{folder}: another fewbench run is at work in this folder"
    hint = "wait until it ends or stop it, or use another folder"
    return only_process(folder / LOCK, busy, hint, RunError)


def set_aside(folder: Path) -> Path | None:
    """Rename the folder of a run to the first free of FOLDER.1, FOLDER.2, …, and return that.

    None if it has no run. RunError if a run is at work there, or it is the working directory.
    """
    if not (folder / HEADER).exists():
        return None
    place = folder.resolve()
    if Path.cwd().is_relative_to(place):
        raise RunError(
            f"{folder}: the working directory is in this folder, which would be renamed",
            hint="change to another directory first",
        )
    names = (f"{place.name}.{n}" for n in count(1))
    kept = next(place.with_name(name) for name in names if name not in os.listdir(place.parent))
    with locked(folder):
        place.rename(kept)
    return kept


def saved_benchmark(folder: str | Path | None) -> Scores | None:
    """Return the items of the run without source models in a folder; None if none was started.

    RunError if the run there has source models.
    """
    if folder is None or not (Path(folder) / HEADER).exists():
        return None
    path = Path(folder) / BENCHMARK
    if not path.exists():
        raise RunError(
            f"{folder}: the evaluation there has scores of source models",
            hint="pass these scores to resume, or use another folder",
        )
    return open_sources(path)


def limits_of(
    stop: Stop | int | None,
    scores: Scores | Benchmark | None,
    folder: str | Path | None,
    items_of: str | Path | None = None,
) -> Stop | None:
    """Return when a run stops: as given, or as in its folder or in the run whose items it is asked.

    None for the limit of a pack.

    Raises RunError without any.
    """
    if stop is not None:
        return Stop(items=stop) if isinstance(stop, int) else stop
    if folder is not None and (Path(folder) / HEADER).exists():
        return Journal(Path(folder)).header().stop
    if getattr(scores, "origin", None) is not None:
        return None
    if items_of is None:
        raise RunError(
            "no limit for the run",
            hint="pass a number of items, as in budget=100 (stop=100 of Run.open), or the half "
            "width of the interval, as in stop=Stop(half_width=0.03)",
        )
    return LeadingRun.read(items_of).header.stop
