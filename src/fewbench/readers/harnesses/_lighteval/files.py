"""Where lighteval puts its files, and what their names say."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# The leaderboard's first files have colons in the time, later ones hyphens.
NAME = re.compile(r"details_(.+)_(\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(?:\.\d+)?)\.parquet")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(?:\.\d+)?")


class Named(NamedTuple):
    """What the name of a file of details says; `stamp` with hyphens only."""

    task: str
    stamp: str


def named(path: Path) -> Named | None:
    """Return task and time of details_TASK_TIME.parquet, None for other names.

    Examples
    --------
    >>> named(Path("details_harness|arc:challenge|25_2023-07-19T16:22:31.218.parquet"))
    Named(task='harness|arc:challenge|25', stamp='2023-07-19T16-22-31.218')
    >>> named(Path("results_2023-07-19T16:22:31.218.parquet"))
    """
    found = NAME.fullmatch(path.name)
    return Named(found[1], found[2].replace(":", "-")) if found else None


def home_of(path: Path) -> Path:
    """Return the folder of all runs of a model: the one above that of the run's time."""
    folder = path.absolute().parent
    return folder.parent if TIME.fullmatch(folder.name) else folder


def model_of(path: Path) -> str:
    """Return the model by the folders: details/ORG/MODEL/TIME, or details_ORG__MODEL/TIME.

    Examples
    --------
    >>> model_of(Path("out/details/org/a/2026-01-01T10-00-00.0/details_x|0_T.parquet"))
    'org/a'
    >>> model_of(Path("details_org__a/2026-01-01T10-00-00.0/details_x|0_T.parquet"))
    'org/a'
    """
    home = home_of(path)
    if home.name.startswith("details_"):
        return home.name.removeprefix("details_").removesuffix("_private").replace("__", "/", 1)
    parts = home.parts
    if "details" in parts[:-1]:
        last = len(parts) - 1 - parts[::-1].index("details")
        if last < len(parts) - 1:
            return "/".join(parts[last + 1 :])
    return home.name


def results_of(path: Path) -> Path | None:
    """Return the results_TIME.json of the same run, None if there is none where it belongs."""
    found = named(path)
    if found is None:
        return None
    for folder in _folders(path.absolute()):
        for time in (found.stamp, _with_colons(found.stamp)):
            results = folder / f"results_{time}.json"
            if results.is_file():
                return results
    return None


def _folders(path: Path) -> Iterator[Path]:
    above = path.parent.parent
    yield from (path.parent, above)
    for folder in list(above.parents)[:4]:
        if folder.name == "details":
            yield folder.parent / "results" / above.relative_to(folder)
            break


def _with_colons(stamp: str) -> str:
    day, _, time = stamp.partition("T")
    return f"{day}T{time.replace('-', ':')}"
