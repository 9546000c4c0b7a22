"""What a source of public results is, and what all sources share."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._names import counted, did_you_mean, some
from fewbench.errors import PublicError
from fewbench.executors import Executor
from fewbench.public.fetching import MOVED, Fetcher, Remote, Unreachable, laid_out, sampled
from fewbench.public.hosts import list_files
from fewbench.readers import FORMS, Reading
from fewbench.readers.files import load_json
from fewbench.scores import Scores, from_long
from fewbench.scores.repeats import MEAN, repeats_notes

T = TypeVar("T")
Attributes = Mapping[str, Mapping[str, Any]]  # model → attribute → value
SIZE = re.compile(r"(?<![\d.])(?:(\d+)x)?(\d+(?:\.\d+)?)[bB](?![a-zA-Z0-9])")
FOLDER = re.compile(r"\w[\w .+-]*")  # a commit, version or day as the name of one folder

HUB = "hub:"
"""Begins the name of a dataset repository."""


@dataclass(frozen=True)
class Ask:
    """What a user asks of a source; see `fewbench.get`."""

    benchmark: str | None = None
    models: int | tuple[str, ...] | None = None
    split: str | None = None
    revision: str | None = None
    form: str | None = None
    metric: str | None = None
    filter: str | None = None
    workers: int = 1
    executor: Executor = None

    @property
    def sample(self) -> int | None:
        """The number of models to draw where the listing does not name them."""
        return self.models if isinstance(self.models, int) else None


@dataclass(frozen=True)
class Index:
    """Files to fetch, and what the listing says of them.

    Parameters
    ----------
    files : list of Remote
    commit : str
        Commit, version or day that the files are of; also their folder in the cache.
    attributes : mapping
        Model → attribute → value.
    notes : tuple of str
    known : anything
        What this source's `read` needs besides the files.
    """

    files: list[Remote]
    commit: str
    attributes: Attributes = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    known: Any = None

    def __post_init__(self) -> None:
        if not FOLDER.fullmatch(self.commit):
            raise PublicError(f"the listing names the version {self.commit!r}", hint=MOVED)


# Lists the files that answer an ask; reads them below a folder.
Find = Callable[[Ask, Fetcher], Index]
Read = Callable[[Ask, Index, Path], Reading]


@dataclass(frozen=True)
class Files:
    """Finds files by their paths, for sources that need no more.

    Parameters
    ----------
    place : str
        `hub:ORG/NAME`, `github:OWNER/NAME` or `zenodo:RECORD`.
    patterns : tuple of str
        Globs of paths, of which each has a file; `{benchmark}` is the one that is asked for.
    under : str
        Folder to list (default: all), which may contain `{benchmark}`.
    optional : tuple of str
        Globs of paths that need not be there.
    sample : slice, optional
        Parts of a path that say which model a file is of if `--models` chooses files.
    is_one : bool
        Whether only the file with the shortest path is meant.
    """

    place: str
    patterns: tuple[str, ...]
    under: str = ""
    optional: tuple[str, ...] = ()
    sample: slice | None = None
    is_one: bool = False

    def __call__(self, ask: Ask, fetcher: Fetcher) -> Index:
        """List the files of an ask; PublicError if there are none."""
        placed = {"benchmark": ask.benchmark}
        listing = list_files(fetcher, self.place, ask.revision, self.under.format(**placed))
        files: list[Remote] = []
        for pattern in (*self.patterns, *self.optional):
            glob = pattern.format(**placed).lower()
            matching = [file for file in listing.files if fnmatchcase(file.path.lower(), glob)]
            if not matching and pattern in self.patterns:
                what = f"{self.place}: no file {pattern.format(**placed)}"
                raise PublicError(what, hint=f"pass another --benchmark, or {MOVED}")
            files += matching
        if self.sample is not None:
            kept = set(sampled(map(self._model_of, files), ask.sample))
            files = [file for file in files if self._model_of(file) in kept]
        if self.is_one:
            files = [min(files, key=lambda file: len(file.path))]
        return Index(files, listing.commit)

    def _model_of(self, file: Remote) -> str:
        return "/".join(PurePosixPath(file.path).parts[self.sample or slice(None)])


@dataclass(frozen=True)
class Source:
    """A source of public per-item results.

    Parameters
    ----------
    name, title, url : str
    models, items, size : str
        Approximate numbers, as last seen by others; sizes of one benchmark.
    license, cite : str
    find : callable
        Lists the files that answer an `Ask`.
    read : callable
        Reads the files below a folder.
    benchmarks, splits : tuple of str
        Values of `--benchmark` and `--split`; () if the source has none, ("*",) if any name may do.
    default : str, optional
        Benchmark that is fetched if none is named; without it one must be named.
    has_revisions : bool
        Whether older commits or releases can be asked for.
    """

    name: str
    title: str
    url: str
    models: str
    items: str
    size: str
    license: str
    cite: str
    find: Find
    read: Read
    benchmarks: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    default: str | None = None
    has_revisions: bool = True

    def check(self, ask: Ask) -> Ask:
        """Return an ask with the default benchmark; PublicError if the source cannot answer it."""
        for option, value, allowed in (
            ("benchmark", ask.benchmark, self.benchmarks),
            ("split", ask.split, self.splits),
        ):
            if value is not None and not allowed:
                raise PublicError(f"{self.name} has no {option}s", hint=f"omit --{option}")
            if value is not None and value not in allowed and allowed != ("*",):
                hint = did_you_mean(value, allowed)
                raise PublicError(f"{self.name} has no {option} {value!r}", hint=hint)
        if ask.form is not None and not self.name.startswith(HUB):
            hint = "omit --from, which is for hub:ORG/DATASET"
            raise PublicError(f"{self.name} has a fixed format", hint=hint)
        if ask.form is not None and ask.form not in FORMS:
            raise PublicError(f"unknown form {ask.form!r}", hint=did_you_mean(ask.form, FORMS))
        if ask.revision is not None and not self.has_revisions:
            raise PublicError(f"{self.name} has no revisions", hint="omit --revision")
        wanted = ask.models
        count = wanted if wanted is None or isinstance(wanted, int) else len(wanted)
        if count is not None and count < 2:
            raise PublicError(f"{count} models are too few", hint="pass --models 2 or more")
        if ask.benchmark is None and self.benchmarks and self.default is None:
            names = ", ".join(self.benchmarks)
            hint = "its page lists them" if names == "*" else f"one of {names}"
            raise PublicError(f"{self.name}: no --benchmark named", hint=f"{hint} ({self.url})")
        return replace(ask, benchmark=ask.benchmark or self.default)


def size_of(model: str) -> float:
    """Return the billions of parameters that a model's name states, NaN if it states none.

    Examples
    --------
    >>> size_of("meta-llama/Llama-3.1-8B-Instruct"), size_of("Mixtral-8x7B"), size_of("gpt-4o")
    (8.0, 56.0, nan)
    """
    match = SIZE.search(model)
    return float(match[1] or 1) * float(match[2]) if match else float("nan")


def with_attributes(scores: Scores, attributes: Attributes) -> Scores:
    """Add attributes to the models of scores, without those that no model has.

    `size` (billions of parameters) is read from names where the source does not state it.
    """
    models = scores.models.copy()
    names = dict.fromkeys(name for facts in attributes.values() for name in facts)
    for name in names:
        values = [attributes.get(model, {}).get(name) for model in scores.model_ids]
        texts = ["" if value is None or value != value else str(value) for value in values]
        if name == "size":
            models[name] = pd.to_numeric(pd.Series(texts, index=models.index), errors="coerce")
        elif any(texts):
            if name == "family":  # a model of unknown family is one of its own, for group splits
                texts = [text or model for text, model in zip(texts, scores.model_ids, strict=True)]
            models[name] = texts
    if "size" not in models:
        sizes = np.array([size_of(model) for model in scores.model_ids])
        if np.isfinite(sizes).any():
            models["size"] = sizes
    return scores.changed(models=models)


def from_rows(
    rows: "pd.DataFrame",
    *,
    models: int | Sequence[str] | None = None,
    item_columns: Iterable[str] = (),
    what: str,
    attributes: Attributes | None = None,
    notes: Iterable[str] = (),
) -> Reading:
    """Return scores from rows of model, item, score and task; trials of a cell are averaged.

    Parameters
    ----------
    rows : DataFrame
        Columns `model`, `item`, `score` (numbers in [0, 1]; empty if not run) and `task`.
    models : int or sequence of str, optional
        Keep a fixed random sample of this many models, or the named ones.
    item_columns : iterable of str
        Columns to keep with the items.
    what : str
        The file, for messages.
    attributes : mapping, optional
        Model → attribute → value.
    notes : iterable of str
        To add to the notes.

    Raises
    ------
    PublicError
        If there are no rows, or a score is not a number.
    """
    if not len(rows):
        raise PublicError(f"{what}: no results", hint="pass another --benchmark or --split")
    for name in ("model", "item"):
        if rows[name].isna().any():
            raise PublicError(f"{what}: {int(rows[name].isna().sum())} rows without a {name}")
    numbers = pd.to_numeric(rows["score"], errors="coerce")
    bad = numbers.isna() & rows["score"].notna()
    if bad.any():
        at = int(bad.to_numpy().argmax())
        raise PublicError(
            f"{what}: {int(bad.sum())} scores are not numbers, first {rows['score'].iloc[at]!r} of "
            f"model {rows['model'].iloc[at]!r}"
        )
    rows = rows.assign(score=numbers.astype(float))
    if models is not None:
        rows = rows[rows["model"].astype(str).isin(sampled(rows["model"].astype(str), models))]
    columns = ["task", *item_columns]
    lines = list(notes)
    empty = rows.groupby("model")["score"].count()
    if (without := empty.index[empty == 0]).size:
        lines.append(f"{counted(len(without), 'model')} without a score left out: {some(without)}")
        rows = rows[~rows["model"].isin(without)]
    unrun = rows.groupby("item")["score"].count()
    if (nobody := unrun.index[unrun == 0]).size:
        lines.append(f"{counted(len(nobody), 'item')} without a score left out: {some(nobody)}")
        rows = rows[~rows["item"].isin(nobody)]
    scores = from_long(
        rows, model="model", item="item", score="score", task="task", item_columns=columns[1:],
        trials=MEAN,
    )  # fmt: skip
    lines += repeats_notes(scores.repeats, MEAN)
    return Reading(with_attributes(scores, attributes or {}), tuple(lines))


def rows_of(
    found: Index,
    folder: Path,
    parse: Callable[[PurePosixPath, Any], Iterable[tuple[Any, ...]]],
    load: Callable[[Path], Any] = load_json,
) -> "pd.DataFrame":
    """Return the rows of model, item, score and task that `parse` makes of each file."""
    rows: list[tuple[Any, ...]] = []
    for file in found.files:
        path = folder / file.path
        data = load(path)
        with laid_out(path):
            rows += parse(PurePosixPath(file.path), data)
    return pd.DataFrame(rows, columns=["model", "item", "score", "task"])


def day_of(value: Any) -> str:
    """Return a time as an ISO date; "" if it is none.

    Times are ISO texts, or seconds or milliseconds since 1970.

    Examples
    --------
    >>> day_of("2024-08-01T10-00-00.1"), day_of(1.7e9), day_of(1.7e12), day_of("soon")
    ('2024-08-01', '2023-11-14', '2023-11-14', '')
    """
    if isinstance(value, str):
        return value[:10] if re.match(r"\d{4}-\d\d-\d\d", value) else ""
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        return ""
    seconds = value / 1000 if value > 1e11 else value
    return pd.Timestamp(seconds, unit="s").strftime("%Y-%m-%d") if seconds < 4e9 else ""


def each_model(
    fetcher: Fetcher, find: Callable[[str], T], names: Sequence[str], what: str
) -> tuple[dict[str, T], tuple[str, ...]]:
    """Return what `find` returns of each name, and a note on the names that are not there.

    PublicError if none is there, or a host does not answer.
    """
    missing: list[PublicError] = []

    def find_one(name: str) -> list[T]:
        try:
            return [find(name)]
        except Unreachable:
            raise
        except PublicError as error:
            missing.append(error)
            return []

    listed = dict(zip(names, fetcher.each(find_one, names), strict=True))
    by_name = {name: part for name, some in listed.items() for part in some}
    return by_name, left_out(missing, len(names), what)


def left_out(missing: Sequence[PublicError], of: int, what: str) -> tuple[str, ...]:
    """Return a note on what is left out; PublicError if nothing is left."""
    if not missing:
        return ()
    first = missing[0]
    if len(missing) == of:
        message = f"no {what} can be fetched; first: {first.message}"
        raise PublicError(message, hint=first.hint or MOVED)
    return (f"{len(missing)} of {counted(of, what)} left out: {first.message}",)
