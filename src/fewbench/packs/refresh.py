"""Estimate an old run again with a newer pack, and say what moved."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fewbench._names import counted
from fewbench._warned import in_cell, issue
from fewbench.errors import FewbenchError, PackError
from fewbench.evaluation import Estimates, Evaluation
from fewbench.evaluation.journal import (
    Asked,
    Entry,
    Followed,
    Header,
    Journal,
    Told,
    kept_replies,
    targets_of,
)
from fewbench.packs.contents import open_pack
from fewbench.scores import Scores, Unit
from fewbench.show.page import Page, Section, Shown, Table


@dataclass(frozen=True, eq=False, repr=False)
class Refreshed(Shown):
    """Estimates of an old run by its own sources and by a newer pack.

    Attributes
    ----------
    before : Estimates or None
        By the sources that the run was started with; None if they cannot be read.
    after : Estimates
        By the newer pack.
    used, recorded : mapping of str to int
        Recorded answers that the newer pack uses, and all of them, by target.
    notes : tuple of str
        What the user should know of the comparison.
    """

    before: Estimates | None
    after: Estimates
    used: Mapping[str, int]
    recorded: Mapping[str, int]
    notes: tuple[str, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per target: scores before and after, change, answers used, warnings."""
        rows = {}
        for name, new in self.after.items():
            old = None if self.before is None else self.before.get(name)
            rows[name] = {
                "before": None if old is None else old.score,
                "after": new.score,
                "low": new.interval.low,
                "high": new.interval.high,
                "moved": None if old is None else new.score - old.score,
                "answers_used": self.used[name],
                "answers_recorded": self.recorded[name],
                "warnings": in_cell(new.warnings),
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("target")

    def to_dict(self) -> dict[str, Any]:
        """Return the rows of the table and the notes, for JSON."""
        rows = self.to_frame().reset_index()
        return {
            "targets": rows.astype(object).where(rows.notna(), None).to_dict("records"),
            "notes": list(self.notes),
        }

    def page(self) -> Page:
        """Return the targets before and after, and what to know of the comparison."""
        rows = []
        for name, new in self.after.items():
            old, unit = None if self.before is None else self.before.get(name), Unit(new.scale)
            before = moved = "–"
            if old is not None:
                before, moved = unit.score(old.score), unit.difference(new.score - old.score)
            row = [name, before, unit.score(new.score), moved, unit.scores(new.interval)]
            rows.append([*row, f"{self.used[name]} of {self.recorded[name]}"])
        head = [("Target", False), ("Before", True), ("After", True), ("Moved", True)]
        head += [("Interval", True), ("Answers used", True)]
        targets = Table("Targets", head, rows, "a target")
        section = Section("targets", "Estimates", tables=[targets], lines=self.notes)
        answer = f"{counted(len(rows), 'target')} estimated again with a newer pack"
        return Page("pack refresh", "A newer pack", answer, (), self.after.warnings, [section])


def refresh_pack(
    folder: str | os.PathLike[str], pack: str | os.PathLike[str], level: float = 0.9
) -> Refreshed:
    """Estimate an old run again with a newer pack, and show what changed.

    The run itself is not changed. Answers to items that the newer pack does not ask for are not
    used.

    Parameters
    ----------
    folder : path
        Folder of the run.
    pack : path
        The newer pack (.few). FILE.few:NAME is one benchmark of several.
    level : float
        Level of the intervals.

    Raises
    ------
    PackError
        If the pack is not of the run's benchmark: no recorded answer is of its items.
    EvaluationError
        If the folder contains no evaluation.
    """
    journal = Journal(Path(folder))
    header, entries = journal.header(), list(journal.fresh())
    scores = open_pack(pack).scores()
    before, notes = _before(folder, header, level)
    targets = targets_of(header, entries)
    runs: dict[str, dict[str, float]] = {name: {} for name in targets}
    for entry in entries:
        if isinstance(entry, Told):
            runs[entry.target] |= dict(zip(entry.items, entry.scores, strict=True))
    if not any(runs.values()):
        raise PackError(f"{folder}: no answers are recorded", hint="record them with fewbench tell")
    ids = set(scores.item_ids)
    named = tuple(name for name in targets if ids & set(runs[name]))
    if not named:
        raise PackError(
            f"{pack}: none of the answered items of {folder} is in the pack",
            hint="use a pack of the same benchmark, with the same item ids",
        )
    after, used = _after(scores, header, entries, runs, named, level)
    if not after:
        raise PackError(
            f"{pack}: asks for none of the answered items of {folder}",
            hint="run the items of the new pack: fewbench start",
        )
    fewer = [name for name in after if used[name] < len(runs[name])]
    if fewer:
        notes.append("answers to items that the new pack does not ask for are not used")
    notes += [f"{name}: no answer to an item of the new pack" for name in runs if name not in after]
    issue(after.warnings)
    recorded = {name: len(answers) for name, answers in runs.items()}
    return Refreshed(before, after, used, recorded, tuple(notes))


def _before(
    folder: str | os.PathLike[str], header: Header, level: float
) -> tuple[Estimates | None, list[str]]:
    try:
        return Evaluation.open(folder).estimate(level, warn=False), []
    except (FewbenchError, OSError) as error:
        reason = error.message if isinstance(error, FewbenchError) else str(error)
        return None, [f"the run's own sources ({header.scores}) give no estimate: {reason}"]


def _after(
    scores: Scores,
    header: Header,
    entries: list[Entry],
    runs: Mapping[str, Mapping[str, float]],
    named: tuple[str, ...],
    level: float,
) -> tuple[Estimates, dict[str, int]]:
    """Return the estimates by the pack, and how many answers each uses."""
    evaluation = Evaluation(scores, targets=named)
    ids, scale = set(scores.item_ids), scores.scale
    if evaluation.method.asks_once:
        for name, items in evaluation.ask().items():
            recorded = {item: runs[name][item] for item in items if item in runs[name]}
            answers = {item: float(scale.from_unit(unit)) for item, unit in recorded.items()}
            replies = kept_replies(
                entry for entry in entries if isinstance(entry, Told) and entry.target == name
            )
            evaluation.tell(name, answers, replies=replies, accept_fractions=True)
        return _estimated(evaluation, level)
    # It predicts from answers to any items, in the rounds in which they were asked.
    with tempfile.TemporaryDirectory() as place:
        evaluation.save(place)
        journal = Journal(Path(place))
        with journal.locked():
            for entry in _of_items(entries, ids, named):
                journal.append(entry)
        return _estimated(Evaluation.open(place, scores), level)


def _estimated(evaluation: Evaluation, level: float) -> tuple[Estimates, dict[str, int]]:
    record = evaluation.record
    used = {name: len(record.answered(name)) for name in record.targets}
    able = [name for name in used if used[name]]
    return (evaluation.estimate(level, able, warn=False) if able else Estimates()), used


def _of_items(entries: list[Entry], ids: set[str], named: tuple[str, ...]) -> list[Entry]:
    """Return the rounds and answers of these targets, of items that are known."""
    taken: list[Entry] = []
    for entry in entries:
        if isinstance(entry, Followed):
            lead = entry.lead.of_items(ids)
            taken += [entry.model_copy(update={"lead": lead})] * (entry.target in named)
            continue
        kept = [at for at, item in enumerate(entry.items) if item in ids]
        items = tuple(entry.items[at] for at in kept)
        if not items:
            continue
        if isinstance(entry, Asked):
            targets = tuple(name for name in entry.targets if name in named)
            taken += [entry.model_copy(update={"items": items, "targets": targets})] * bool(targets)
        elif entry.target in named and isinstance(entry, Told):
            scores = tuple(entry.scores[at] for at in kept)
            replies = {item: kind for item, kind in entry.replies.items() if item in items}
            plain = {"items": items, "scores": scores, "probabilities": None, "replies": replies}
            taken.append(entry.model_copy(update=plain))
        elif entry.target in named:
            taken.append(entry.model_copy(update={"items": items}))
    return taken
