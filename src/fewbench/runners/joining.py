"""Targets that join a run: their names, and the targets that they follow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fewbench._files import folder_name
from fewbench._names import some
from fewbench._text import quoted
from fewbench.errors import RunError
from fewbench.evaluation import Evaluation, Stop
from fewbench.evaluation.adding import DEFAULT_TARGET
from fewbench.evaluation.changes import ITEMS, started_scores
from fewbench.evaluation.entries import AnswerSet, RunBatch
from fewbench.evaluation.extending import extend, extension_note
from fewbench.evaluation.journal import (
    Header,
    Journal,
    folder_and_target,
    has_evaluation,
    targets_of,
)
from fewbench.evaluation.opening import check_followed
from fewbench.evaluation.packed import check_settings, provenance_of
from fewbench.methods import Method, Subset
from fewbench.methods.base import AUTO
from fewbench.runners.batches import targets_with
from fewbench.scores import Benchmark, Scores, Unit, open_saved


@dataclass(frozen=True)
class LeadingRun:
    """A run on disk that other targets follow.

    Attributes
    ----------
    folder : Path
    header : Header
    target : str or None
        None for the target with most answers.
    """

    folder: Path
    header: Header
    target: str | None

    @classmethod
    def read(cls, place: str | Path) -> "LeadingRun":
        """Read FOLDER or FOLDER:TARGET; RunError if there is no evaluation."""
        named = folder_and_target(str(place))
        if named is None:
            raise RunError(
                f"{place}: no evaluation here",
                hint="name the folder of an earlier run, or FOLDER:TARGET",
                kind="missing",
            )
        return cls(named[0], Journal(named[0]).header(), named[1])

    def scores(self) -> tuple[Scores, Path | None]:
        """Return what this run was started with, and its file."""
        journal = Journal(self.folder)
        return started_scores(journal, self.header)[0].scores, journal.scores_path(self.header)

    def check(self, evaluation: Evaluation) -> None:
        """Raise EvaluationError unless this run's items can run there."""
        provenance = self.header.provenance
        # An extension writes a file of scores; a run without one was never extended.
        is_extended = self.header.scores is not None and bool(self.scores()[0].cohort_of.any())
        check_followed(
            evaluation.provenance, provenance, evaluation.method, str(self.folder),
            is_extended=is_extended,
        )  # fmt: skip

    def followed(self, evaluation: Evaluation, target: str) -> None:
        """Ask a target of an evaluation this run's items first."""
        folder = evaluation.folder
        if folder is not None and folder.resolve() == self.folder.resolve():
            evaluation.follow(target, self.target)
            return
        self.check(evaluation)
        other = Evaluation.open(self.folder, evaluation.scores, evaluation.method)
        evaluation.follow(target, self.target, other)


def check_limits(
    stop: Stop | int | None,
    scores: Scores | Benchmark | None,
    folder: str | Path | None,
    items_of: str | Path | None,
) -> None:
    """Raise RunError if nothing says when a run stops."""
    known = stop is not None or items_of is not None or has_evaluation(folder)
    if not known and getattr(scores, "origin", None) is None:
        raise RunError(
            "no limit for the run",
            hint="pass a number of items, as in budget=100 (stop=100 of Run.open), or the half "
            "width of the interval, as in stop=Stop(half_width=0.03)",
        )


def open_or_start(
    folder: Path | None,
    scores: Scores,
    method: str | Method,
    stop: Stop | int | None,
    targets: Sequence[str],
    seed: int,
    items_of: str | Path | None,
    *,
    subset: Subset | None = None,
    is_run: bool = False,
    repeats: int = 1,
    epochs: int = 1,
) -> tuple[Evaluation, list[str]]:
    """Open the evaluation in a folder, or start one that is not saved yet; return it and notes.

    This alone settles method, limits and seed. What is not given (`auto`, None, the seed 0) is that
    of the pack, or of the run that is followed; limits come first from the folder. New targets
    follow an earlier target. `subset` and `is_run` are as for `Evaluation`, `repeats` and `epochs`
    as for `Run.open`.
    """
    check_limits(stop, scores, folder, items_of)
    lead = None if items_of is None else LeadingRun.read(items_of)
    header = Journal(folder).header() if folder is not None and has_evaluation(folder) else None
    limits = Stop(items=stop) if isinstance(stop, int) else stop
    if limits is None and header is not None:
        limits = header.limits
    if scores.origin is not None and subset is None:
        packed = provenance_of(scores.origin, scores.n_items)
        method, limits, seed = check_settings(packed, method, limits, seed)
    if lead is not None:
        method = lead.header.provenance.method if method == AUTO else method
        limits = limits or lead.header.limits
    assert limits is not None  # as `check_limits` has found
    times = {"repeats": max(repeats, limits.repeats), "epochs": max(epochs, limits.epochs)}
    limits = limits.model_copy(update=times)
    if folder is not None and header is not None:
        evaluation, taken_in = reopened(
            folder, header, scores, method, limits, seed, targets, is_run=is_run
        )
    else:
        taken_in = []
        evaluation = Evaluation(
            scores, method, targets=targets, seed=seed, stop=limits, subset=subset, is_run=is_run
        )
        if lead is not None:
            lead.check(evaluation)
    notes = [*taken_in, *evaluation.notes]
    return evaluation, [*notes, *join_targets(evaluation, targets, lead)]


def join_targets(
    evaluation: Evaluation, targets: Sequence[str], lead: LeadingRun | None
) -> list[str]:
    """Add the targets that are new, and give them their items; return notes."""
    before = evaluation.targets
    taken = {folder_name(name, gap="__"): name for name in before}
    notes = []
    for name in targets:  # all before any joins
        if name not in before and (other := taken.get(folder_name(name, gap="__"))):
            raise RunError(
                f"the targets {other!r} and {name!r} would share a folder of logs",
                hint="choose names that differ in more than their punctuation",
                kind="taken",
            )
    for name in targets:
        if lead is not None:
            lead.followed(evaluation, name)
        elif name not in before:
            leader = evaluation.most_complete()
            evaluation.follow(name, leader)
            notes.append(f"{name} is new here: it runs the items of {leader} first")
            budget, run = evaluation.provenance.budget, len(evaluation.record.answered(leader))
            if run > budget:
                notes[-1] += (
                    f", {budget:,} of {run:,} (for the others, later: fewbench estimate "
                    f"{quoted(evaluation.folder)} --target {quoted(name)} "
                    f"--next-items {run - budget} --ask)"
                )
    return notes


def leaving_note(evaluation: Evaluation, target: str) -> str | None:
    """Say that a target runs items of its own from this round on, not those of another target."""
    lead, rounds = evaluation.record.lead(target), evaluation.record.rounds(target)
    n_led = 0 if lead is None else lead.followed(rounds)
    # Once: with the first round that differs, before the end of the other run.
    if lead is None or not n_led or n_led == len(lead.rounds) or len(rounds) != n_led + 1:
        return None
    items, scale = np.concatenate(lead.rounds[:n_led]), evaluation.scores.scale
    own, other = (
        Unit(scale).score(float(scale.from_unit(np.nanmean(scores[items]))))
        for scores in (evaluation.record.scores(target), lead.scores)
    )
    return (
        f"{target} scores {own} on its first {len(items):,} items, the target that ran them before "
        f"{other}. Items chosen for that one suit {target} badly, so it runs items of its own from "
        "here on. The two share fewer items: versus, rank and track compare them less precisely"
    )


def unnamed_target(
    folder: str | Path | None, facts: Mapping[str, str] | None, model: str | None
) -> str:
    """Return the target of a run that names none.

    The one in the folder that was run in the same way; else the model's name; without facts and
    name, the only one there. RunError if several were run in this way.
    """
    targets: Sequence[str] = ()
    if folder is not None and has_evaluation(folder):
        journal = Journal(Path(folder))
        entries = list(journal.fresh())
        if model is None:
            targets = targets_of(journal.header(), entries)
        if facts:
            targets = targets_with(
                [entry for entry in entries if isinstance(entry, RunBatch)], facts
            )
            if len(targets) > 1 and model not in targets:
                raise RunError(
                    f"{folder} has the targets {some(targets)}, all run in this way",
                    hint="name the model with -t",
                )
    return targets[0] if len(targets) == 1 else model or DEFAULT_TARGET


def with_later_items(folder: str | Path | None, scores: Scores) -> Scores:
    """Return scores with the items that `extend` took into a folder since their file was written.

    Scores that lack other items of the evaluation, or have more, stay as they are.
    """
    if folder is None or scores.origin is not None or not (Path(folder) / ITEMS).exists():
        return scores
    known, own = open_saved(Path(folder) / ITEMS).items.index, scores.items.index
    if known.isin(own).all() or not own.isin(known).all():
        return scores
    journal = Journal(Path(folder))
    whole = started_scores(journal, journal.header(), scores)[0].scores
    return whole if whole.n_items == len(known) else scores


def reopened(
    folder: Path,
    header: Header,
    scores: Scores,
    method: str | Method,
    stop: Stop,
    seed: int,
    targets: Sequence[str],
    *,
    is_run: bool,
) -> tuple[Evaluation, list[str]]:
    """Open the evaluation in a folder, to continue with a new limit on cost, tokens or time.

    New items are added (`extend`), with a note. RunError if it was started with different settings,
    or the scores lack one of its tasks.
    """
    provenance, before = header.provenance, header.limits
    was_auto = header.reason is not None
    named = method if isinstance(method, str) else method.describe()
    differ, renewable = [], targets if is_run else ()
    if named != provenance.method and not (was_auto and named == AUTO):
        differ.append(f"method: {AUTO if was_auto else provenance.method}, now {named}")
    if before.kept != stop.kept:
        differ.append(f"limits: {before.describe()}, now {stop.describe()}")
    if provenance.seed != seed:
        differ.append(f"seed: {provenance.seed}, now {seed}")
    if differ:
        more = max(0, (stop.items or 0) - provenance.budget) or 50
        further = "rerun with the settings as before and a larger --cost, --tokens or --minutes"
        if before.items is not None:
            further = (
                f"fewbench estimate {quoted(folder)} --next-items {more} --ask, then rerun with "
                "the settings as before"
            )
        raise _refused(
            folder,
            renewable,
            f"the evaluation there has other settings ({'; '.join(differ)})",
            f"for more items: {further}; or use another folder, which runs the items of this one "
            f"again: --items-of {quoted(folder)} (in Python items_of=)",
        )
    own, notes = None if isinstance(method, str) else method, list[str]()
    if scores.origin is None and (folder / ITEMS).exists():
        items = open_saved(folder / ITEMS)
        if lacking := [task for task in items.tasks if task not in scores.tasks]:
            raise _refused(
                folder,
                renewable,
                f"the evaluation there also has the tasks {some(lacking)}",
                "name a file of items that has them, or all tasks, as in --tasks old,new; or use "
                "another folder",
            )
        is_new = not scores.items.index.isin(items.items.index).all()
        if is_new or (scores.n_models and not header.models):
            notes.append(extension_note(extend(folder, scores)))
            whole = Evaluation.open(folder, None, own).scores
            kept = np.flatnonzero(whole.items.index.isin(scores.items.index))
            scores = whole if len(kept) == whole.n_items else whole.take(items=kept)
    return Evaluation.open(folder, scores, own, stop, is_run=is_run), notes


def _refused(folder: Path, renewable: Sequence[str], reason: str, hint: str) -> RunError:
    """Return the error of a run that does not fit its folder; without answers, nothing is lost.

    `renewable` are the targets that this run could start over; others there keep their settings.
    """
    journal = Journal(folder)
    entries = list(journal.fresh())
    if not any(isinstance(entry, AnswerSet) for entry in entries):
        hint = "use another folder"
        if set(targets_of(journal.header(), entries)) <= set(renewable):
            hint = "it has no answers yet: add --fresh to start over (in Python use another folder)"
    return RunError(f"{folder}: {reason}", hint=hint)
