"""Add evaluated models to a table of scores, as source models of the next evaluations."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._lazy import pandas as pd
from fewbench._names import counted, did_you_mean, some
from fewbench._text import quoted
from fewbench._types import FloatArray
from fewbench._warned import issue
from fewbench.errors import EvaluationError
from fewbench.evaluation.entries import AnswerSet, part_of
from fewbench.evaluation.journal import Header, Journal, folder_and_target, targets_of
from fewbench.evaluation.ledger import Ledger
from fewbench.methods import Answers
from fewbench.scores import Benchmark, OptionProbabilities, Scores, open_saved
from fewbench.scores.benchmark import WEIGHT, changes
from fewbench.scores.conditions import COLUMNS, compare_conditions, with_conditions
from fewbench.scores.families import FAMILY, stated_families
from fewbench.scores.repeats import Repeats
from fewbench.scores.roles import as_sources
from fewbench.scores.table import NO_TASK, RUN

DEFAULT_TARGET = "target"
SIDES = ("the table", "the run")
CONTENT = ("task", WEIGHT, "content", "content_hash")
"""Columns of the items that must be the same in a run's benchmark and in the table."""


def add(
    runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    scores: Scores | Benchmark | None = None,
    *,
    names: Mapping[str, str] | None = None,
    family: str | None = None,
    accept_differences: bool = False,
) -> Scores:
    """Add finished runs to the source models.

    Each target with answers becomes a row. Items that it did not run stay empty. For answers from
    logs, the table also keeps prompts, settings and answer keys. If a run that was added before has
    more answers now, its row is replaced.

    Parameters
    ----------
    runs : path or sequence of paths
        Folders of evaluations of one benchmark, or FOLDER:TARGET for one of several targets. Seeds
        and numbers of items may differ.
    scores : Scores or Benchmark, optional
        The table to add to (default: the one that the runs were started with; of several, the one
        with most models). Its models come first.
    names : mapping of str to str, optional
        Names of the models in the table, by FOLDER or FOLDER:TARGET (default: the target's name, or
        the folder's if the target is called `target`).
    family : str, optional
        Family of these models, such as a training run: all models of a family count as one source
        model (default: models whose names differ only in a step, epoch or seed are one family).
    accept_differences : bool
        Add runs with other items, prompts, settings or scoring than in the table. Items that are
        not in the table are left out.

    Returns
    -------
    Scores
        A new table. Its models have a column `run`, which says where a row comes from.

    Raises
    ------
    EvaluationError
        If a folder contains no evaluation or no answers, a name is taken, the family has no name,
        or the run's items or conditions differ from the table's.

    Warns
    -----
    EstimateWarning
        If runs are in the table already, with the same answers, differences are accepted, or
        answers are left out, as the table does not have their items.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from fewbench import run
    >>> from fewbench.testing import simulate
    >>> new = simulate(1, 60, seed=1)
    >>> right = dict(zip(new.item_ids, new.values[0]))
    >>> with TemporaryDirectory() as folder:
    ...     _ = run(new.benchmark, budget=20, score=right.get, targets=["a"], folder=folder)
    ...     add(folder)
    Scores: 1 model × 60 items, 3 tasks, 66.7% missing
    """
    listed = [runs] if isinstance(runs, str | os.PathLike) else list(runs)
    added_runs = [_Run.from_folder(Path(path)) for path in listed]
    if not added_runs:
        raise EvaluationError(
            "no runs to add", hint="name the folders of evaluations", kind="too-few"
        )
    if family is not None and not family.strip():
        raise EvaluationError(
            "the family has no name", hint="name it, or leave it out", kind="name"
        )
    named = {os.path.normpath(where): name for where, name in (names or {}).items()}
    places = [where for run in added_runs for where in run.places]
    if unknown := [where for where in named if where not in places]:
        raise EvaluationError(
            f"no run to give a name: {some(unknown)}",
            hint=f"name one of {some(places, most=8)}",
            kind="unknown",
        )
    sources = as_sources(_started_with(added_runs) if scores is None else scores)
    if sources.origin is not None:
        raise EvaluationError(
            "models cannot be added to a pack", hint="add to the scores that it was made from"
        )
    table = sources
    again: list[str] = []
    accepted: list[str] = []
    for started in added_runs:
        table, differences = _with_run(
            table, started, named, again, accept_differences=accept_differences
        )
        accepted += [
            f"{started.place}: accepted as answers to the same items: {difference}"
            for difference in differences
        ]
    accepted += [note for started in added_runs for note in _left_out(table, started)]
    if family is not None:
        added = {f"{run.header.id}:{target}" for run in added_runs for target in run.targets}
        stated = pd.Series(stated_families(table), index=table.models.index, dtype=object)
        of_runs = table.models[RUN].isin(added)
        table = table.changed(
            models=table.models.assign(**{FAMILY: stated.mask(of_runs, family.strip())})
        )
    if again:
        accepted.append(f"no new answers of {some(again)}: the table has them all")
    issue(accepted)
    return table


Spread = tuple[NDArray[Any], FloatArray]
"""Numbers of answers, and their variances about the item's mean, shape (models, items)."""


@dataclass(frozen=True)
class _Run:
    """What a folder holds of its targets, by position among the answered items."""

    journal: Journal
    header: Header
    ledger: Ledger
    item_ids: NDArray[Any]
    only: str | None = None

    @classmethod
    def from_folder(cls, path: Path) -> "_Run":
        folder, only = folder_and_target(str(path)) or (path, None)
        journal = Journal(folder)
        header = journal.header()
        every = list(journal.fresh())
        targets = targets_of(header, every)
        answered = (entry.items for entry in every if isinstance(entry, AnswerSet))
        items = pd.Index(dict.fromkeys(chain.from_iterable(answered)))
        entries = list(part_of(every, items, targets))  # without removed items
        if not any(isinstance(entry, AnswerSet) for entry in entries):
            raise EvaluationError(
                f"{folder}: no answers of {some(targets)}",
                hint="run the items that fewbench ask lists, and record the answers",
                kind="unanswered",
            )
        benchmark = Benchmark(pd.DataFrame({"task": NO_TASK}, index=items))
        ledger = Ledger(as_sources(benchmark), targets)
        ledger.carry(entries, targets)
        run = cls(journal, header, ledger, items.to_numpy(), only)
        if not run.targets:
            raise EvaluationError(
                f"{folder}: no answers of {only!r}",
                hint=did_you_mean(only or "", targets, f"its targets are {some(targets)}"),
            )
        return run

    @property
    def place(self) -> str:
        return os.path.normpath(self.journal.folder)

    @property
    def targets(self) -> list[str]:
        record = self.ledger.record
        named = record.targets if self.only is None else [self.only]
        return [name for name in record.targets if name in named and len(record.answered(name))]

    def items(self, target: str) -> list[str]:
        """Return the answered items of a target."""
        return list(self.item_ids[self.ledger.record.answered(target)])

    def place_of(self, target: str) -> str:
        return f"{self.place}:{target}"

    @property
    def places(self) -> list[str]:
        """What a user may name: each target, or the folder if it has one."""
        folder = [self.place] if len(self.ledger.record.targets) == 1 else []
        return [*map(self.place_of, self.targets), *folder]

    def name_of(self, target: str, named: Mapping[str, str]) -> str:
        places = [self.place_of(target), *self.places[len(self.targets) :]]
        default = self.journal.folder.resolve().name if target == DEFAULT_TARGET else target
        return next((named[place] for place in places if place in named), default)

    @cached_property
    def table(self) -> Scores | None:
        """The scores that it was started with, if their file is still there."""
        path = self.journal.scores_path(self.header)
        is_there = path is not None and path.suffix == ".parquet" and path.is_file()
        return open_saved(path) if is_there and path is not None else None

    def conditions(self, target: str) -> "pd.DataFrame":
        """Return the known prompts and scoring of items: one row per item."""
        by_column: dict[str, dict[str, str]] = {name: {} for name in COLUMNS}
        for entry in self.ledger.answers_of(target):
            for name, texts in entry.conditions.items():
                by_column[name] |= {
                    entry.items[at]: text for text, places in texts.items() for at in places
                }
        index = pd.Index(self.items(target), dtype=object)
        columns = {
            name: pd.Series(texts, dtype=object) for name, texts in by_column.items() if texts
        }
        return pd.DataFrame(columns, index=index).fillna("")


def _started_with(runs: Sequence[_Run]) -> Scores:
    tables = [run.table for run in runs if run.table is not None]
    if not tables:
        raise EvaluationError(
            f"{runs[0].place}: no table of scores to add to: the run does not record one that is "
            "still there",
            hint="pass the table with --scores (in Python scores=…)",
            kind="missing",
        )
    return max(tables, key=lambda table: table.n_models)


def _with_run(
    table: Scores,
    run: _Run,
    named: Mapping[str, str],
    again: list[str],
    *,
    accept_differences: bool,
) -> tuple[Scores, list[str]]:
    """Return the table with a run's targets, and the differences that were accepted.

    Targets whose rows stay as they were are added to `again`, unless others of the run are new.
    """
    differences, kept, is_new = list(_other_items(table, run)), list[str](), False
    for target in run.targets:
        answered_items, by_position = run.items(target), run.ledger.record.answers(target)
        answers = dict(zip(answered_items, by_position.scores[0].tolist(), strict=True))
        items = table.items.index.intersection(pd.Index(answered_items), sort=False)
        if not len(items):
            raise EvaluationError(
                f"{run.place}: none of the answered items is in the table",
                hint="add runs of one benchmark, with the same item ids",
                kind="changed",
            )
        row = np.array([[answers.get(item, np.nan) for item in table.items.index]], dtype=float)
        name, source = run.name_of(target, named), f"{run.header.id}:{target}"
        at = _row_of(table, source)
        if at is None and name in table.models.index:
            raise EvaluationError(
                f"{run.place}: the table has a model {name!r} already, from another source",
                hint="give the target a different name: --name "
                f"{quoted(run.place_of(target))}=NAME (in Python "
                f"names={{{run.place_of(target)!r}: NAME}})",
            )
        repeats = _repeats_of(table, answered_items, by_position)
        if at is not None and _is_same(table, at, row, repeats):
            kept.append(f"{table.model_ids[at]} ({run.place})")
            continue
        is_new = True
        conditions = run.conditions(target).loc[items]
        metadata = table.items.loc[items].drop(columns=[*COLUMNS], errors="ignore")
        answered = Scores(
            row[:, table.positions(items)], pd.DataFrame(index=[name]), metadata.join(conditions)
        )
        compared = compare_conditions(table, answered, items, SIDES, other_agents=True)
        differences += [*compared.differences, *compared.doubts]
        if differences and not accept_differences:
            raise EvaluationError(
                f"{run.place}: not answers to the same items as in the table: "
                + "; ".join(dict.fromkeys(differences)),
                hint="add runs of one benchmark, asked and scored alike; or pass "
                "--accept-differences (in Python accept_differences=True)",
                kind="changed",
            )
        options = _options(table, run, target)
        table = with_conditions(_with_row(table, row, name, source, at, options, repeats), answered)
    again += [] if is_new else kept
    return table, list(dict.fromkeys(differences))


def _left_out(table: Scores, run: _Run) -> Iterator[str]:
    """Report how many answers belong to items that the table lacks."""
    for target in run.targets:
        answers = run.items(target)
        others = pd.Index(answers).difference(table.items.index, sort=False)
        if len(others):
            yield (
                f"{run.place}: {len(others)} of {counted(len(answers), 'answer')} of {target!r} "
                f"are left out: the table does not have these items: {some(others)}"
            )


def _row_of(table: Scores, source: str) -> int | None:
    if RUN not in table.models:
        return None
    rows = np.flatnonzero((table.models[RUN] == source).to_numpy())
    return int(rows[0]) if len(rows) else None


def _with_row(
    table: Scores,
    row: FloatArray,
    name: str,
    source: str,
    at: int | None,
    options: np.ndarray[Any, Any] | None,
    repeats: Spread,
) -> Scores:
    """Return the table with a row in the place of another, or at its end."""
    end = table.n_models
    order = [*range(end), end] if at is None else [*range(at), end, *range(at + 1, end)]
    models = table.models
    if RUN not in models:
        models = models.assign(**{RUN: np.full(end, "", dtype=object)})
    if at is None:
        models = pd.concat([models, pd.DataFrame({RUN: [source]}, index=[name])])
        if "role" in models:
            models.loc[name, "role"] = "source"
        if FAMILY in models:
            models.loc[name, FAMILY] = ""
    probabilities = table.probabilities
    if probabilities is not None:
        every = [*probabilities.by_model(), options]
        probabilities = OptionProbabilities(np.stack([every[item] for item in order]))
    values = np.vstack([table.values, row])[order]
    counts, variances = (
        np.vstack([before, now])[order]
        for before, now in zip(_answers_of(table), repeats, strict=True)
    )
    kept = Repeats.from_counts(counts, variances)
    return table.changed(values=values, models=models, probabilities=probabilities, repeats=kept)


def _answers_of(table: Scores) -> Spread:
    """Return how often each item was answered, and how far the answers vary."""
    if table.repeats is not None:
        return table.repeats.counts, table.repeats.variances
    return table.is_run.astype(np.uint32), np.full((table.n_models, table.n_items), np.nan)


def _repeats_of(table: Scores, items: Sequence[str], answers: Answers) -> Spread:
    """Return the same of a run's answers, by the items of the table, shape (1, items)."""
    counts = np.ones(len(items)) if answers.counts is None else answers.counts[0]
    variances = np.full(len(items), np.nan) if answers.variances is None else answers.variances[0]
    of_item = {item: at for at, item in enumerate(items)}
    at = np.array([of_item.get(item, -1) for item in table.items.index])
    is_run = at >= 0
    whole = np.where(is_run, counts[at], 0), np.where(is_run, variances[at], np.nan)
    return whole[0].astype(np.uint32)[None], whole[1][None]


def _is_same(table: Scores, at: int, row: FloatArray, repeats: Spread) -> bool:
    """Whether a row of the table has these answers."""
    counts = _answers_of(table)[0][at]
    same = np.array_equal(table.cells[at], row[0], equal_nan=True)
    return same and np.array_equal(counts, repeats[0][0])


def _options(table: Scores, run: _Run, target: str) -> np.ndarray[Any, Any] | None:
    """Return option probabilities of all items, shape (items, options), if the table has some."""
    if table.probabilities is None:
        return None
    _, n_items, width = table.probabilities.shape
    shares = np.full((n_items, width), np.nan, table.probabilities.dtype)
    of_items: dict[str, Any] = {}
    for entry in run.ledger.answers_of(target):
        options = entry.probabilities or [None] * len(entry.items)
        of_items |= dict(zip(entry.items, options, strict=True))
    lacking = [item for item, options in of_items.items() if options is None or None in options]
    if lacking:
        raise EvaluationError(
            f"{run.place}: {counted(len(lacking), 'answer')} without option probabilities, which "
            f"the table has: {some(lacking)}",
            hint="add to a table without them (in Python scores.changed(probabilities=None))",
            kind="missing",
        )
    for at, item in enumerate(table.item_ids):
        if item in of_items:
            shares[at, : len(of_items[item])] = of_items[item]
    return shares


def _other_items(table: Scores, run: _Run) -> Iterator[str]:
    """Yield how a run's benchmark differs from the table's."""
    ours = run.table
    if ours is None:
        answered = {item: None for name in run.targets for item in run.items(name)}
        if unknown := [item for item in answered if item not in table.items.index]:
            yield f"{counted(len(unknown), 'item')} not in the table: {some(unknown)}"
        return
    if ours.scale != table.scale:
        raise EvaluationError(
            f"{run.place}: scores on the scale {ours.scale}, but those of the table are on "
            f"{table.scale}",
            hint="add runs of one benchmark",
            kind="changed",
        )
    columns = [name for name in CONTENT if name in table.items and name in ours.items]
    before, now = (side.items[columns] for side in (table, ours))
    if {NO_TASK} in (set(before["task"]), set(now["task"])):
        before, now = before.assign(task=NO_TASK), now.assign(task=NO_TASK)
    if sorted(before.index) != sorted(now.index) or not before.equals(now.loc[before.index]):
        yield from changes(Benchmark(before), Benchmark(now))
