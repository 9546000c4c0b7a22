"""What a source of public results is, and what all sources share."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._names import counted, did_you_mean, some
from fewbench.errors import PublicError, ReaderError
from fewbench.executors import Executor
from fewbench.public.fetching import (
    MOVED,
    Fetcher,
    Misread,
    Remote,
    Unreachable,
    laid_out,
    sampled,
)
from fewbench.public.hosts import list_files
from fewbench.public.routes import Route
from fewbench.readers import Reading, check_form
from fewbench.readers.files import load_json
from fewbench.scores import Scores, from_long
from fewbench.scores.families import FAMILY, families
from fewbench.scores.repeats import MEAN, repeats_notes

T = TypeVar("T")
Attributes = Mapping[str, Mapping[str, Any]]  # model → attribute → value
SIZE = re.compile(r"(?<![\d.])(?:(\d+)x)?(\d+(?:\.\d+)?)[bB](?![a-zA-Z0-9])")
FOLDER = re.compile(r"\w[\w .+-]*")  # a commit, version or day as the name of one folder

SHOWN = 5  # reasons in a note
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
    """Files to fetch, with their listing.

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
        Globs of paths, of which each has a file; `{benchmark}` is the one that is asked for, and
        `*` is a part of one name.
    under : str
        Folder to list (default: all), which may contain `{benchmark}`.
    optional : tuple of str
        Globs of paths that need not be there.
    model : callable, optional
        Returns the model that a file is of, None if it is of none. `--models` then chooses files.
    is_one : bool
        Whether only the file with the shortest path is meant.
    """

    place: str
    patterns: tuple[str, ...]
    under: str = ""
    optional: tuple[str, ...] = ()
    model: Callable[[PurePosixPath], str | None] | None = None
    is_one: bool = False

    def __call__(self, ask: Ask, fetcher: Fetcher) -> Index:
        """List the files of an ask; PublicError if there are none."""
        placed = {"benchmark": ask.benchmark}
        listing = list_files(fetcher, self.place, ask.revision, self.under.format(**placed))
        files: list[Remote] = []
        for pattern in (*self.patterns, *self.optional):
            glob = pattern.format(**placed).lower()
            matching = [file for file in listing.files if matches(file.path.lower(), glob)]
            if not matching and pattern in self.patterns:
                what = f"{self.place}: no file {pattern.format(**placed)}"
                raise PublicError(what, hint=f"pass another --benchmark, or {MOVED}")
            files += matching
        if self.model is not None:
            models = {file: self.model(PurePosixPath(file.path)) for file in files}
            kept = sampled(filter(None, models.values()), ask.models)
            files = [file for file in files if models[file] in kept]
        if self.is_one:
            files = [min(files, key=lambda file: len(file.path))]
        return Index(files, listing.commit)


def matches(path: str, pattern: str) -> bool:
    """Whether a path has the names of a pattern, folder by folder; `*` is a part of one name.

    Examples
    --------
    >>> matches("runs/a/log.json", "runs/*/*.json"), matches("runs/a/b/log.json", "runs/*/*.json")
    (True, False)
    """
    names, globs = path.split("/"), pattern.split("/")
    return len(names) == len(globs) and all(map(fnmatchcase, names, globs))


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
    run_with : str
        How the items are run.
    tried, tried_at : str
        Real files that were read by this version, "" if none were, and their commit.
    routes : tuple of Route
        How a table is run, by benchmark.
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
    run_with: str = ""
    tried: str = ""
    tried_at: str = ""
    routes: tuple[Route, ...] = ()

    def route(self, benchmark: str | None) -> Route | None:
        """Return how a table of a benchmark is run, or None if no harness is known to run it."""
        return next((one for one in self.routes if one.benchmark in ("", benchmark)), None)

    def advice(self, commit: str) -> str:
        """Return what to do if files of a commit are misread: report it, or take another."""
        report = "report this line as a bug in fewbench"
        if not self.tried:
            return f"fewbench never read a real file of {self.name}: {report}"
        if not self.tried_at:
            return f"the source may have changed; {report}"
        if commit == self.tried_at:
            return f"fewbench read other files of this commit: {report}"
        older = f"pass --revision {self.tried_at}, which fewbench reads; or "
        return f"the source may have changed: {older if self.has_revisions else ''}{report}"

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
        check_form(ask.form, PublicError)
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
            if name == FAMILY:  # a model of unknown family is one of its own, for group splits
                pairs = zip(families(scores.model_ids, texts), scores.model_ids, strict=True)
                texts = [family or model for family, model in pairs]
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
        If there are no rows, or too many of them cannot be used.
    """
    if not len(rows):
        raise PublicError(f"{what}: no results", hint="pass another --benchmark or --split")
    lines, rows = list(notes), rows.reset_index(drop=True)
    numbers = pd.to_numeric(rows["score"], errors="coerce").astype(float)
    for name, is_bad in (
        ("without a model", rows["model"].isna()),
        ("without an item", rows["item"].isna()),
        ("with a score that is not a number", numbers.isna() & rows["score"].notna()),
        ("with a score outside the range 0 to 1", (numbers < 0) | (numbers > 1)),
    ):
        is_bad = is_bad[rows.index]
        if not (count := int(is_bad.sum())):
            continue
        row = rows[is_bad].iloc[0]
        shown = f"model {row['model']!r}, item {row['item']!r}, score {row['score']!r}"
        problem = f"{count:,} of {counted(len(rows), 'row')} {name}, first {shown}"
        if count > few(len(rows)):
            raise Misread(f"{what}: {problem}", hint=MOVED)
        lines.append(f"{problem}: left out")
        rows = rows[~is_bad]
    rows = rows.assign(score=numbers[rows.index])
    if models is not None:
        rows = rows[rows["model"].astype(str).isin(sampled(rows["model"].astype(str), models))]
    columns = ["task", *item_columns]
    for name in columns:  # sources repeat an item's data with every answer
        first = rows.groupby("item", sort=False)[name].transform("first")
        differs = (first != rows[name]) & rows[name].notna()
        if names := sorted({str(item) for item in rows["item"][differs]}):
            several = f"{counted(len(names), 'item')} with several values in {name}"
            lines.append(f"{several}, of which the first is kept: {some(names)}")
        rows = rows.assign(**{name: first})
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


ROW_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors from reading a malformed row."""


def few(count: int) -> int:
    """Return how many of `count` rows may be left out: a hundredth, but always one.

    More of them would be a part of the results, such as all failures, and not single mistakes.
    """
    return max(1, count // 100)


def parsed(
    entries: Iterable[Any], parse: Callable[[Any], T], what: str
) -> tuple[list[T], tuple[str, ...]]:
    """Return what `parse` returns of each entry, and a note on entries that cannot be read.

    Texts and numbers among objects are not results and are left out; objects only if they are few.

    Raises Misread if they are more, or nothing is left.
    """
    listed = list(entries)
    rows: list[T] = []
    stray: list[str] = []
    wrong: list[str] = []
    for place, entry in enumerate(listed, start=1):
        try:
            rows.append(parse(entry))
        except ROW_ERRORS as error:
            reason = f"entry {place}: {type(error).__name__}: {error}"
            (wrong if isinstance(entry, dict | list | tuple) else stray).append(reason)
    if not wrong and not stray:
        return rows, ()
    first = (wrong or stray)[0]
    problem = f"{len(wrong) + len(stray):,} of {len(listed):,} entries hold no result ({first})"
    if not rows or len(wrong) > few(len(listed)) or len(stray) > len(rows):
        raise Misread(f"{what}: not laid out as this source does: {problem}", hint=MOVED)
    return rows, (f"{what}: {problem}: left out",)


def rows_of(
    found: Index,
    folder: Path,
    listed: Callable[[PurePosixPath, Any], Iterable[Any]],
    parse: Callable[[PurePosixPath, Any], tuple[Any, ...]],
    load: Callable[[Path], Any] = load_json,
) -> tuple["pd.DataFrame", tuple[str, ...]]:
    """Return rows of model, item, score and task, and notes on what was left out.

    A file that cannot be read, or is not laid out as `listed` and `parse` expect, is left out.

    Parameters
    ----------
    found : Index
    folder : Path
    listed : callable
        Returns the entries of a file of this path and content.
    parse : callable
        Returns the row of an entry.
    load : callable
        Reads a file.

    Raises
    ------
    PublicError
        If no file is left.
    """
    rows: list[tuple[Any, ...]] = []
    notes: list[str] = []
    damaged: list[PublicError | ReaderError] = []
    for file in found.files:
        path, place = folder / file.path, PurePosixPath(file.path)
        try:
            content = load(path)
            with laid_out(path):
                entries = listed(place, content)
            of_file, lines = parsed(entries, partial(parse, place), place.name)
        except (PublicError, ReaderError) as error:
            damaged.append(error)
            continue
        rows += of_file
        notes += lines
    notes += left_out(damaged, len(found.files), "file")
    return pd.DataFrame(rows, columns=["model", "item", "score", "task"]), tuple(notes)


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


def left_out(missing: Sequence[PublicError | ReaderError], n: int, what: str) -> tuple[str, ...]:
    """Return a note on what is left out; an error of the kind of the first if nothing is left."""
    if not missing:
        return ()
    first = missing[0]
    if len(missing) == n:
        message = f"no {what} can be used; first: {first.message}" if n > 1 else first.message
        raise type(first)(message, hint=first.hint or MOVED)
    reasons = [error.message for error in missing[:SHOWN]]
    if len(missing) > SHOWN:
        reasons.append(f"and {len(missing) - SHOWN:,} more")
    return (f"{len(missing)} of {counted(n, what)} left out: {'; '.join(reasons)}",)
