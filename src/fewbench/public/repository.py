"""Any dataset repository of logs at the Hub, and logs that a source publishes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from fewbench._names import counted
from fewbench._text import quoted
from fewbench.errors import PublicError, ReaderError
from fewbench.public.fetching import Fetcher
from fewbench.public.hosts import Hub
from fewbench.public.source import (
    HUB,
    Ask,
    Attributes,
    Index,
    Source,
    day_of,
    with_attributes,
)
from fewbench.readers import Reading, import_results
from fewbench.readers.gather import find_units
from fewbench.readers.harnesses import HARNESSES
from fewbench.readers.reading import RESULTS


def read_logs(
    ask: Ask,
    paths: Sequence[Path],
    form: str | None,
    metric: str | None = None,
    attributes: Attributes | None = None,
) -> Reading:
    """Read logs by the reader of their harness; the date of a model is that of its first run."""
    reading = import_results(
        list(paths),
        form=form,
        metric=ask.metric or metric,
        filter=ask.filter,
        damaged="skip",
        same_model="newest",
        accept_differences=True,  # nobody can run them again, as notes and estimates report
        workers=ask.workers,
        executor=ask.executor,
    )
    by_model = {model: dict(facts) for model, facts in (attributes or {}).items()}
    timed = reading.files[reading.files["time"] != ""] if len(reading.files) else reading.files
    for model, time in timed.groupby("model")["time"].min().items() if len(timed) else ():
        if day := day_of(str(time)):
            by_model.setdefault(str(model), {}).setdefault("date", day)
    scores = with_attributes(reading.scores, by_model)
    return replace(reading, scores=scores)


def _find_repository(repo: str) -> Any:
    def find(ask: Ask, fetcher: Fetcher) -> Index:
        hub = Hub(fetcher)
        listing = hub.files(repo, ask.revision)
        files = [
            file
            for file in listing.files
            if PurePosixPath(file.path).suffix.lower() in RESULTS
            and (ask.split is None or file.path.startswith(f"{ask.split.rstrip('/')}/"))
        ]
        if not files:
            names = [PurePosixPath(file.path).name for file in listing.files][:5]
            raise PublicError(
                f"{repo}: no result files{f' below {ask.split}' if ask.split else ''}",
                hint=f"it has {', '.join(names) or 'no files'}",
                kind="missing",
            )
        return Index(files, listing.commit)

    return find


def read_repository(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read logs of any known harness, or one table of scores."""
    paths = [folder / file.path for file in found.files]
    form = ask.form if ask.form in HARNESSES else None
    units, others = find_units(paths, form)
    if not units and len(paths) == 1:
        try:
            return import_results(paths[0], form=ask.form)
        except ReaderError as error:
            hint = (
                f"name its columns: fewbench import {quoted(paths[0])} --model … --item … --score …"
            )
            raise PublicError(error.message, hint=hint) from error
    if not units:
        raise PublicError(
            f"{folder}: no logs of {ask.form or 'a known harness'} in the repository",
            hint="name its columns if it has a table: fewbench import FILE --model …",
        )
    named = dict.fromkeys(path for _, unit in units for path in (unit.path, *unit.beside))
    reading = read_logs(ask, list(named), form)
    if others:
        what = f"{counted(len(others), 'file')} left out that {form or 'no harness'} "
        what += "did not write" if form else "is known to have written"
        reading = replace(reading, notes=(*reading.notes, what))
    return reading


def repository(name: str) -> Source:
    """Return the source of any dataset repository at the Hub, named hub:ORG/DATASET."""
    repo = name.removeprefix(HUB)
    return Source(
        name,
        "a dataset repository",
        f"https://huggingface.co/datasets/{repo}",
        *("varies", "varies", "varies"),
        *("see its page", "see its page"),
        *(_find_repository(repo), read_repository),
        splits=("*",),
    )
