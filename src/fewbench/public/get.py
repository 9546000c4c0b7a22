"""Fetch public per-item results of a source and read them into scores."""

import html
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from fewbench._files import cache_folder, written_whole
from fewbench._lazy import pandas as pd
from fewbench._names import counted, sized, some
from fewbench._progress import OnStep
from fewbench._text import as_note
from fewbench.errors import PublicError
from fewbench.executors import Executor
from fewbench.public.catalogue import find_source
from fewbench.public.fetching import (
    MOVED,
    Fetcher,
    Misread,
    is_there,
    laid_out,
    named_among,
    sampled,
)
from fewbench.public.hosts import COMMIT
from fewbench.public.routes import routed
from fewbench.public.source import Ask, Index, Source, left_out
from fewbench.scores import Scores, save_scores
from fewbench.scores.table import CREDIT

if TYPE_CHECKING:  # imported where used: reading scores does not wait for all checks
    from fewbench.checks import Audit


def default_cache() -> Path:
    """Return the folder of fetched files: fewbench/get in your cache directory."""
    return cache_folder() / "get"


@dataclass(frozen=True)
class PublicFiles:
    """Files that a source publishes and `get` would fetch; see `find_public_files`.

    Attributes
    ----------
    source : Source
        Name, license, how to cite.
    folder : Path
        Where the files are, or will be.
    """

    source: Source
    ask: Ask = field(repr=False)
    found: Index = field(repr=False)
    folder: Path

    @property
    def commit(self) -> str:
        """Commit, version or day of the files."""
        return self.found.commit

    @property
    def version(self) -> str:
        """The commit, shortened and named so, or the version or day as the source states it."""
        return f"commit {self.commit[:12]}" if COMMIT.fullmatch(self.commit) else self.commit

    @property
    def origin(self) -> str:
        """The repository that the files are fetched from, or their host."""
        url = self.found.files[0].url
        host = urlsplit(url)
        before, is_commit, _ = url.partition(f"/{self.commit}/")
        return before if is_commit else f"{host.scheme}://{host.netloc}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the listing leaves out."""
        return self.found.notes

    @property
    def n_bytes(self) -> int | None:
        """Bytes of all files, or None if the source does not state the size of each."""
        sizes = [file.size for file in self.found.files if file.size is not None]
        return sum(sizes) if len(sizes) == len(self.found.files) else None

    @property
    def n_missing_bytes(self) -> int:
        """Bytes of known size that are not in the cache yet."""
        return sum(file.size or 0 for file in self.found.files if not is_there(file, self.folder))

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per file: path, bytes (NaN if unknown), digest, url, cached."""
        rows = [
            {**row, "cached": is_there(file, self.folder)}
            for row, file in zip(self._rows(), self.found.files, strict=True)
        ]
        return pd.DataFrame(rows)

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {"path": file.path, "bytes": file.size, "digest": file.digest, "url": file.url}
            for file in self.found.files
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: what the files are, and where they come from."""
        return {
            "source": self.source.name,
            "title": self.source.title,
            "page": self.source.url,
            "benchmark": self.ask.benchmark,
            "split": self.ask.split,
            "models": list(self.ask.models)
            if isinstance(self.ask.models, tuple)
            else self.ask.models,
            "commit": self.commit,
            "license": self.source.license,
            "cite": self.source.cite,
            "run_with": self.source.run_with,
            "bytes": self.n_bytes,
            "notes": list(self.notes),
            "files": self._rows(),
        }

    def __repr__(self) -> str:
        n_bytes = self.n_bytes
        size = "unknown size" if n_bytes is None else sized(n_bytes)
        return (
            f"{self.source.name}: {counted(len(self.found.files), 'file')}, {size}, "
            f"{self.version}, license: {self.source.license}"
        )

    def fetch(self, progress: OnStep | None = None) -> "PublicFiles":
        """Download the files that are not in the cache; an interrupted download continues.

        Returns the files that are there now, with a note on those that cannot be had.

        Raises
        ------
        PublicError
            If a host does not answer, or the files that are there mean nothing without others.
        """
        files = self.found.files
        with Fetcher(progress) as fetcher:
            missing = fetcher.fetch(files, self.folder)
        notes = left_out(list(missing.values()), len(files), "file")
        there = [file for file in files if file.path not in missing]
        listing = replace(self.found, files=there, notes=(*self.found.notes, *notes))
        return replace(self, found=listing)

    def read(self, workers: int = 1, executor: Executor = None) -> "PublicResults":
        """Read the files, which must be there, as `fewbench.import_results` does.

        Raises
        ------
        PublicError, ReaderError, ScoresError
            If a file is not laid out as the source promises, or its scores are invalid.
        """
        try:
            with laid_out(self.folder):
                ask = replace(self.ask, workers=workers, executor=executor)
                reading = self.source.read(ask, self.found, self.folder)
        except Misread as error:
            raise Misread(error.message, hint=self.source.advice(self.commit)) from error
        scores, wanted = reading.scores, self.ask.models
        names = sampled(scores.model_ids, wanted)
        if len(names) < scores.n_models:
            kept = scores.model_positions(names)
            answered = scores.is_run[kept].any(axis=0)
            scores = scores.take(kept, np.flatnonzero(answered))
        scores, notes = routed(scores, self.source.route(self.ask.benchmark))
        credit = (
            f"{self.source.name}, {self.version}; license: {self.source.license}; cite: "
            f"{self.source.cite}"
        )
        scores = scores.changed(models=scores.models.assign(**{CREDIT: credit}))
        notes = (*self.notes, *reading.notes, *notes)
        if isinstance(wanted, tuple):
            notes = (*notes, *_notes_on(wanted, reading.scores.model_ids))
        return PublicResults(scores, self, notes)


def _notes_on(wanted: Sequence[str], there: Sequence[str]) -> list[str]:
    """Return notes on names of models that are not there, or are those of several."""
    matches = named_among(there, wanted)
    missing = [name for name in matches if not matches[name]]
    several = [name for name in matches if len(matches[name]) > 1]
    notes = []
    if missing:
        notes.append(f"{len(missing)} of {len(wanted)} models named are not there: {some(missing)}")
    if several:
        notes.append(
            f"{len(several)} names are of several models, and all are kept: {some(several)}; "
            "write ORG/MODEL for one"
        )
    return notes


@dataclass(frozen=True)
class PublicResults:
    """Public per-item results of a source.

    Attributes
    ----------
    scores : Scores
        With the models' attributes that the source states: date, family, size, agent and others.
    files : PublicFiles
        Where they come from.
    notes : tuple of str
        Facts that change what the scores mean.
    path : Path or None
        The file that they are saved in.
    """

    scores: Scores
    files: PublicFiles
    notes: tuple[str, ...] = ()
    path: Path | None = None

    @cached_property
    def audit(self) -> "Audit":
        """The audit of the scores; see `fewbench.audit`."""
        from fewbench.checks import audit

        return audit(self.scores)

    def to_frame(self) -> "pd.DataFrame":
        """Return the scores, models × items, on the source's scale."""
        return self.scores.to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Return where the results come from, their size and notes, as plain values for JSON."""
        return {
            **self.files.to_dict(),
            "n_models": self.scores.n_models,
            "n_items": self.scores.n_items,
            "fingerprint": self.scores.fingerprint,
            "fetched": datetime.now(UTC).strftime("%Y-%m-%d"),
            "notes": list(self.notes),
        }

    def save(self, output: str | os.PathLike[str], *, force: bool = False) -> "PublicResults":
        """Save the scores (.parquet) and beside them NAME.source.json; return them with the path.

        Raises PublicError if a file exists and `force` is not set.
        """
        path = _free(output, force)
        written = save_scores(self.scores, path)
        with written_whole(source_file(path)) as temporary:
            temporary.write_text(json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n")
        return replace(self, path=written)

    def __repr__(self) -> str:
        size = f"{self.scores.n_models:,} models × {self.scores.n_items:,} items"
        lines = [f"{size} of {self.files!r}", *map(as_note, self.notes)]
        return "\n".join([*lines, f"cite: {self.files.source.cite}"])

    def _repr_html_(self) -> str:
        shown = html.escape(repr(self)).replace("\n", "<br>")
        return f"<p>{shown}</p>{self.scores._repr_html_()}"


def source_file(output: Path) -> Path:
    """Return the file beside saved scores that says where they come from."""
    return output.with_suffix(".source.json")


def _free(output: str | os.PathLike[str], force: bool) -> Path:
    """Return the path of a scores file that may be written."""
    path = Path(output)
    if path.suffix != ".parquet":
        hint = f"use {path.with_suffix('.parquet')}"
        raise PublicError(f"{path}: scores are saved as Parquet", hint=hint)
    for target in (path, source_file(path)):
        if target.exists() and not force:
            raise PublicError(f"{target} already exists", hint="pass force=True to replace it")
    return path


def find_public_files(
    name: str,
    *,
    benchmark: str | None = None,
    models: int | Sequence[str] | None = None,
    split: str | None = None,
    revision: str | None = None,
    form: str | None = None,
    metric: str | None = None,
    filter: str | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> PublicFiles:
    """List the files that `get` would fetch, with their sizes; nothing but listings is fetched.

    Parameters and errors are those of `get`.
    """
    source = find_source(name)
    wanted = models if isinstance(models, int | None) else tuple(models)
    ask = source.check(Ask(benchmark, wanted, split, revision, form, metric, filter))
    with Fetcher() as fetcher:
        listing = source.find(ask, fetcher)
    if not listing.files:
        raise PublicError(f"{name}: there are no files to fetch", hint=MOVED)
    listing = replace(listing, files=list({file.path: file for file in listing.files}.values()))
    base = default_cache() if cache is None else Path(cache)
    folder = base.joinpath(*name.replace(":", "/").split("/"), listing.commit.replace(" ", "-"))
    return PublicFiles(source, ask, listing, folder)


def get(
    name: str,
    output: str | os.PathLike[str] | None = None,
    *,
    benchmark: str | None = None,
    models: int | Sequence[str] | None = None,
    split: str | None = None,
    revision: str | None = None,
    form: str | None = None,
    metric: str | None = None,
    filter: str | None = None,
    cache: str | os.PathLike[str] | None = None,
    force: bool = False,
    workers: int = 1,
    executor: Executor = None,
    progress: OnStep | None = None,
) -> PublicResults:
    """Fetch other models' public per-item results of a benchmark.

    Files are kept in your cache directory. An interrupted download continues when you run it
    again. Respect the license of the source.

    Parameters
    ----------
    name : str
        Name of a source (see fewbench get list), or hub:ORG/DATASET, a dataset repository with
        logs.
    output : path, optional
        Scores file to write (.parquet). NAME.source.json records the source.
    benchmark : str, optional
        Benchmark if the source has several.
    models : int or sequence of str, optional
        Models to fetch (default: all). A number fetches a random sample, the same every time. A
        name is MODEL or ORG/MODEL.
    split : str, optional
        Part of the benchmark. For hub:ORG/DATASET, a folder.
    revision : str, optional
        Commit, tag or release (default: the newest).
    form : str, optional
        For hub:ORG/DATASET: format if it is not recognized (such as lm-eval), or pack.
    metric : str, optional
        Logs: metric to read if there are several.
    filter : str, optional
        Logs: filter to read if there are several.
    cache : path, optional
        Folder for fetched files (default: fewbench/get in your cache directory).
    force : bool
        Replace output files that exist.
    workers : int
        Number of processes that read logs.
    executor : Executor, optional
        Where to read logs; see `fewbench.import_results`.
    progress : callable, optional
        Called with (done, all) megabytes.

    Raises
    ------
    PublicError
        If the source, benchmark or split is unknown, or files cannot be fetched or read.
    MissingExtraError
        If huggingface_hub is not installed.
    ReaderError, ScoresError
        If the results are invalid.

    Examples
    --------
    >>> import fewbench
    >>> results = fewbench.get("livebench", "livebench.parquet")  # doctest: +SKIP
    >>> results.scores.n_models  # doctest: +SKIP
    195
    """
    path = None if output is None else _free(output, force)  # before the work
    files = find_public_files(
        name,
        benchmark=benchmark,
        models=models,
        split=split,
        revision=revision,
        form=form,
        metric=metric,
        filter=filter,
        cache=cache,
    )
    results = files.fetch(progress).read(workers, executor)
    return results if path is None else results.save(path, force=force)
