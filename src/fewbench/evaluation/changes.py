"""Changes in the scores of an evaluation: new, removed and corrected items and source models.

An evaluation needs the items it has answers to, with unchanged questions, and their scale. The rest
may change: an estimate uses the current source models, and leaves out answers to items that were
removed or corrected. Notes list all changes.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fewbench._blocks import is_large
from fewbench._lazy import pandas as pd
from fewbench._names import counted, some
from fewbench._text import quoted
from fewbench._types import BoolArray
from fewbench.errors import EvaluationError, MissingFileError
from fewbench.evaluation.entries import AnswerSet, JournalEntry
from fewbench.evaluation.journal import Header, Journal
from fewbench.evaluation.opening import BENCHMARK, COST, SCORES, count_items
from fewbench.methods import Record
from fewbench.scores import Scores, open_saved, save_scores
from fewbench.scores.benchmark import CLUSTER, COHORT, WEIGHT, changed_items
from fewbench.scores.files import is_saved
from fewbench.scores.groups import EQUAL, GROUP
from fewbench.scores.pack_files import pack_file
from fewbench.scores.roles import as_sources, is_added, source_models
from fewbench.scores.table import (
    HARNESS_VERSION,
    KEY_FIELD,
    KEYS,
    POSITION,
    PROMPTS,
    SETTINGS,
)

ITEMS = "items.parquet"
"""File in the folder of an evaluation with the items that it is about."""
NEUTRAL = {
    *("task", GROUP, EQUAL, "harness", "metric", "filter", "sample_id", "unrun"),
    *(WEIGHT, CLUSTER, COST, COHORT, PROMPTS, SETTINGS, HARNESS_VERSION, KEY_FIELD, POSITION),
}
"""Columns of the items that do not say what an item asks and what is right; texts in others do."""


@dataclass(frozen=True, eq=False)
class FoundScores:
    """The scores that an evaluation goes on with.

    Attributes
    ----------
    scores : Scores
    notes : tuple of str
        What has changed since it was started, which matters to estimates.
    beyond : tuple of str
        What the table has beyond the evaluation, in a note.
    removed : tuple of str
        Items whose earlier answers do not count: gone or corrected.
    is_changed : bool
        Whether these are not the scores that it was started with.
    is_reweighed : bool
        Whether the items that are left count otherwise beside each other.
    """

    scores: Scores
    notes: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    is_changed: bool = False
    is_reweighed: bool = False


def keep_scores(scores: Scores, folder: Path) -> str | None:
    """Save scores that change or have no file into an evaluation's folder; return the file's name.

    These are a benchmark alone, and a table that runs were added to, as their rows may change.
    """
    grows = is_added(scores).any() and not is_large(scores.n_models * scores.n_items)
    folder.mkdir(parents=True, exist_ok=True)
    keep_items(scores, folder)
    if scores.n_models and not grows:
        return None
    name = SCORES if grows else BENCHMARK
    save_scores(scores, folder / name)
    return name


def _open(place: str | os.PathLike[str]) -> tuple[Scores, tuple[str, ...]]:
    """Return the scores of a file or public source, and notes on how they were read."""
    if pack_file(place)[0].exists() and is_saved(Path(place)):
        return open_saved(place), ()  # the readers of all other kinds take a fifth of a second
    from fewbench.public import open_scores

    reading = open_scores(place)
    return reading.scores, tuple(reading.notes)


def started_scores(
    journal: Journal, header: Header, scores: Scores | str | os.PathLike[str] | None = None
) -> tuple[FoundScores, tuple[str, ...]]:
    """Return the scores that an evaluation continues with, and notes on how they were read.

    Parameters
    ----------
    journal, header
        Folder of the evaluation, and what it was started with.
    scores : Scores, path or str, optional
        Scores given in place of those of the start, or where these are now.

    Raises
    ------
    EvaluationError
        If the scores are not known, or do not fit (`found_scores`).
    """
    folder, path = journal.folder, journal.scores_path(header)
    notes: tuple[str, ...] = ()
    average = header.provenance.average
    if not isinstance(scores, Scores):
        place = path if scores is None else scores
        if place is None:
            raise EvaluationError(
                f"{folder}: the evaluation does not record where its scores are",
                hint="name them: --scores FILE, in Python Evaluation.open(folder, scores)",
            )
        try:
            saved, notes = _open(place)
        except MissingFileError as error:
            raise EvaluationError(
                f"{folder}: no scores at {place}",
                hint="pass their new path with --scores (in Python scores=)",
            ) from error
        scores = saved.averaged(average)
    scores, _ = source_models(scores)
    if scores.fingerprint != header.provenance.fingerprint and scores.average != average:
        raise EvaluationError(
            f"{folder}: started with the {average} average of the scores, now it is the "
            f"{scores.average} average",
            hint=f"pass --average {average} (in Python scores.averaged({average!r})); fewbench "
            f"estimate --average {scores.average} asks the other question of the same answers",
            kind="changed",
        )
    own = path if path is not None and path.parent == folder.absolute() else None
    if own is not None and own.exists() and scores.fingerprint != header.provenance.fingerprint:
        kept = open_saved(own).averaged(average)
        has_more = not scores.n_models or scores.n_models >= kept.n_models
        shared = kept.items.index.intersection(scores.items.index, sort=False)
        is_same = not _are_corrected(kept.items.loc[shared], scores.items.loc[shared]).any()
        removed, is_older = _removed(kept, scores)
        has_own = kept.n_models or (is_older and not scores.n_models)
        if len(shared) and has_more and is_same and has_own:
            # A table that grew by runs, items or sources that joined: it keeps its own.
            scores = kept.take(
                items=kept.positions(kept.items.index.difference(removed, sort=False))
            )
    return found_scores(folder, header, scores), notes


def _removed(kept: Scores, now: Scores) -> tuple["pd.Index[str]", bool]:
    """Return the items that scores lost, and whether they lack items that were taken in later.

    Scores without any of the items that came together are those from before.
    """
    gone = ~kept.items.index.isin(now.items.index)
    came = kept.items.get(COHORT, pd.Series(0, kept.items.index))
    is_lost = gone & came.isin(came[~gone]).to_numpy()
    return kept.items.index[is_lost], bool((gone & ~is_lost).any())


def keep_items(scores: Scores, folder: Path) -> None:
    """Save the items into an evaluation's folder."""
    save_scores(as_sources(scores.benchmark), folder / ITEMS)


def share_of_start(folder: Path, size: str | None) -> str | None:
    """Return a number of items as the evaluation of a folder counted it, if it has one.

    A share is one of the items of the start: those that came later change no limit.
    """
    if size is None or not size.strip().endswith("%") or not (folder / ITEMS).exists():
        return size
    items, limit = open_saved(folder / ITEMS), Journal(folder).header().limits.items
    for last in np.unique(items.cohort_of):
        part = items.take(items=np.flatnonzero(items.cohort_of <= last))
        if count_items(size, part) == limit:
            return str(limit)
    return size


def model_hashes(scores: Scores) -> dict[str, str]:
    """Return a hash of each source model's answers. A pack has no hashes, as it never changes."""
    if scores.origin is not None:
        return {}
    rows = (np.nan_to_num(scores.cells[[at]], nan=-1.0) for at in range(scores.n_models))
    digests = (hashlib.sha256(np.ascontiguousarray(row).data).hexdigest()[:8] for row in rows)
    return dict(zip(scores.model_ids, digests, strict=True))


def found_scores(folder: Path, header: Header, now: Scores) -> FoundScores:
    """Return the scores that an evaluation continues with, given the current scores.

    If the scores are those that it was started with, nothing changes.

    Raises
    ------
    EvaluationError
        If the scores have a different scale, are a different pack, or have none of the items.
    """
    if now.fingerprint == header.provenance.fingerprint:
        return FoundScores(now, is_changed=header.changes > 0)
    if now.origin is not None:
        raise EvaluationError(
            f"{folder}: started with another pack, made of other scores: this one is of "
            f"{counted(now.n_models, 'source model')} × {counted(now.n_items, 'item')}",
            hint="restore it; or estimate the run with the newer pack: fewbench pack refresh",
        )
    if not (folder / ITEMS).exists():
        raise EvaluationError(
            f"{folder}: started with other scores, and {ITEMS}, which says with which, is gone",
            hint="restore the scores, or start a new evaluation",
        )
    before = open_saved(folder / ITEMS)
    if now.scale != before.scale:
        raise EvaluationError(
            f"{folder}: the scores are on the scale {now.scale} now, and were on {before.scale}",
            hint="import the scores with the range that they had",
        )
    ids, known = before.items.index, now.items.index
    kept = ids.intersection(known, sort=False)
    if not len(kept):
        raise EvaluationError(
            f"{folder}: none of the {len(ids):,} items that it was started with is in the scores, "
            f"which have {some(known[:2])}",
            hint="name the scores of the same benchmark with --scores",
        )
    more = known.difference(ids, sort=False)
    beyond = (
        f"{counted(len(more), 'new item')} of the scores: {some(more)}. The evaluation leaves them "
        f"out; to take them in: fewbench extend {quoted(folder)} SCORES",
    ) * bool(len(more))
    started, there = header.models, set(now.model_ids)
    table = now.take(items=now.positions(kept))
    if COHORT in before.items:
        table = table.changed(items=table.items.assign(**{COHORT: before.items[COHORT].loc[kept]}))
    if len(kept) == len(ids) and there >= set(started):  # only more models or items than then
        as_before = table.take(models=table.model_positions(started))
        if as_before.fingerprint == header.provenance.fingerprint:
            return FoundScores(as_before, beyond=beyond, is_changed=header.changes > 0)
    was = before.items.loc[kept]
    _refuse_other_scores(folder, was, table.items)
    corrected = kept[_are_corrected(was, table.items)]
    gone = ids.difference(kept, sort=False)
    notes = [
        f"{counted(len(items), 'item')} {what} since the evaluation was started: {some(items)}"
        for items, what in ((gone, "left the scores"), (corrected, "changed"))
        if len(items)
    ]
    n_reweighed = _n_reweighed(was, table.items)
    n_moved = len(changed_items(was, table.items, "task"))
    notes += [
        f"the {name}s of {counted(n, 'item')} changed since the evaluation was started, and "
        "estimates use those of now"
        for name, n in (
            ("weight", n_reweighed),
            ("task", n_moved),
        )
        if n
    ]
    hashes = model_hashes(table) if len(kept) == len(ids) else {}
    names, of_models = _models_now(started, hashes, table)
    table = table.take(models=table.model_positions(names)) if names else table
    removed = (*map(str, gone), *map(str, corrected))
    return FoundScores(
        table, (*notes, *of_models), beyond, removed, is_changed=True,
        is_reweighed=n_reweighed > 0 or (n_moved > 0 and table.average == "macro"),
    )  # fmt: skip


def _refuse_other_scores(folder: Path, before: "pd.DataFrame", now: "pd.DataFrame") -> None:
    """Raise EvaluationError if the items have a different metric or filter."""
    for kind in ("metric", "filter"):
        if kind in before and kind in now:
            was, has = (sorted({*table[kind].fillna("").astype(str)}) for table in (before, now))
            if was != has:
                raise EvaluationError(
                    f"{folder}: started with the {kind} {some(was)}, now it is {some(has)}",
                    hint=f"to ask this of the answers that are there: fewbench estimate "
                    f"{quoted(folder)} --{kind} {quoted(has[0] or 'none')}",
                    kind="changed",
                )


def _n_reweighed(before: "pd.DataFrame", now: "pd.DataFrame") -> int:
    """Return how many items have a different share of all weights."""
    same = pd.Series(1.0, before.index)
    was, has = before.get(WEIGHT, same), now.get(WEIGHT, same)
    share_before, share_now = (x.to_numpy(np.float64) / float(x.sum()) for x in (was, has))
    return int((~np.isclose(share_before, share_now, rtol=1e-9)).sum())


def _are_corrected(before: "pd.DataFrame", now: "pd.DataFrame") -> BoolArray:
    """Return whether each item asks something else now, or has another right answer."""
    differ = np.zeros(len(before), dtype=bool)
    texts_of = (name for name in before if name in now and name not in NEUTRAL)
    for name in texts_of:
        if pd.api.types.is_numeric_dtype(before[name]) or pd.api.types.is_numeric_dtype(now[name]):
            continue  # such as a difficulty: it asks nothing
        texts = (table[name].fillna("").astype(str) for table in (before, now))
        for at, (was, has) in enumerate(zip(*texts, strict=True)):
            # Logs may name several keys of an item: it is the same as long as one is in both.
            is_other = was != has if name != KEYS else not {*was.split()} & {*has.split()}
            differ[at] |= bool(
                was and has and is_other
            )  # a text that came or went is not a different one
    return differ


def _models_now(
    started: Mapping[str, str], hashes: Mapping[str, str], table: Scores
) -> tuple[list[str], list[str]]:
    """Return which models are the source models now, and how they have changed.

    Those that it was started with, under the names that they have; all if none is left.
    """
    new = {digest: name for name, digest in hashes.items() if name not in started}
    gone = [name for name in started if name not in table.models.index]
    renamed = {name: new[started[name]] for name in gone if started[name] in new}
    left = [name for name in gone if name not in renamed]
    other = [name for name in started if name in hashes and hashes[name] != started[name]]
    parts = [f"{some(left)} left the scores"] if left else []
    parts += [f"{was!r} is called {name!r} now" for was, name in renamed.items()]
    parts += [f"{some(other)} answered otherwise"] if other else []
    names = [renamed.get(name, name) for name in started if name not in left]
    text = "the source models have changed since the evaluation was started, and estimates are by "
    return names, [f"{text}those of now: {'; '.join(parts)}"] if parts else []


def left_out(entries: Iterable[JournalEntry], record: Record) -> tuple[str, ...]:
    """Return how many answers of each target do not count any more: those not in the record."""
    answered: dict[str, set[str]] = {}
    for entry in entries:
        if isinstance(entry, AnswerSet):
            answered.setdefault(entry.target, set()).update(entry.items)
    return tuple(
        f"{target}: {lost:,} of {counted(len(items), 'answer')} left the score, as their items are "
        "gone or were corrected"
        for target, items in answered.items()
        if (lost := len(items) - len(record.answered(target)))
    )


def keep_change(journal: Journal, scores: Scores, path: Path | None, /, **settings: Any) -> None:
    """Note in a folder that its evaluation goes on with other scores, and save them to `path`."""
    keep_items(scores, journal.folder)
    if path is not None:
        save_scores(scores, path)
    header = journal.header()
    settings |= {"changes": header.changes + 1, "models": model_hashes(scores)}
    journal.write(header.model_copy(update=settings))
