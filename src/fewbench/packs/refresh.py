"""Estimate an old run again with a newer pack, and say what moved."""

import os
from collections.abc import Mapping
from pathlib import Path

from fewbench._names import counted
from fewbench._warned import issue
from fewbench.errors import FewbenchError, PackError
from fewbench.evaluation import Estimates, Evaluation
from fewbench.evaluation.entries import AnswerSet, JournalEntry, kept_replies
from fewbench.evaluation.journal import Header, Journal, targets_of
from fewbench.packs.contents import open_pack
from fewbench.scores import Scores
from fewbench.scores.benchmark import changes


def refresh_pack(
    folder: str | os.PathLike[str], pack: str | os.PathLike[str], level: float = 0.9
) -> Estimates:
    """Estimate an old run again with a newer pack, and show what changed.

    Each estimate has the score by the sources that the run was started with as `before`.

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
    before, notes = _before(folder, header, level, scores)
    targets = targets_of(header, entries)
    runs: dict[str, dict[str, float]] = {name: {} for name in targets}
    for entry in entries:
        if isinstance(entry, AnswerSet):
            runs[entry.target] |= dict(zip(entry.items, entry.scores, strict=True))
    if not any(runs.values()):
        raise PackError(f"{folder}: no answers are recorded", hint="record them with fewbench tell")
    ids = set(scores.item_ids)
    named = tuple(name for name in targets if ids & set(runs[name]))
    if not named:
        raise PackError(
            f"{pack}: none of the answered items of {folder} is in the pack",
            hint="use a pack of the same benchmark, with the same item ids",
            kind="changed",
        )
    after = _after(scores, entries, runs, named, level)
    if not after:
        raise PackError(
            f"{pack}: asks for none of the answered items of {folder}",
            hint="run the items of the new pack: fewbench start",
            kind="changed",
        )
    notes += [f"{name}: no answer to an item of the new pack" for name in runs if name not in after]
    for name, estimate in after.items():
        used, recorded, of_target = estimate.items_run, len(runs[name]), list[str]()
        if used < recorded:
            unused = "the new pack does not ask for the other items"
            of_target = [f"{used} of {recorded} answers used: {unused}"]
        changed = {
            "before": before[name].score if name in before else None,
            "warnings": (*estimate.warnings, *of_target, *notes),
        }
        after[name] = estimate.model_copy(update=changed)
    issue(after.warnings)
    return after


def _before(
    folder: str | os.PathLike[str], header: Header, level: float, now: Scores
) -> tuple[Estimates, list[str]]:
    """Return the estimates by the run's own sources, and notes: on other items of the pack, too."""
    try:
        evaluation = Evaluation.open(folder)
        was, notes = evaluation.scores, list[str]()
        if {*was.items.index} != {*now.items.index}:
            differ = "; ".join(changes(was.benchmark, now.benchmark)[:2])
            notes = [
                f"the score before is of {counted(was.n_items, 'item')}, and this one of "
                f"{now.n_items:,}: {differ}"
            ]
        return evaluation.estimate(level, warn=False), notes
    except (FewbenchError, OSError) as error:
        reason = error.message if isinstance(error, FewbenchError) else str(error)
        return Estimates(), [f"the run's own sources ({header.scores}) give no estimate: {reason}"]


def _after(
    scores: Scores,
    entries: list[JournalEntry],
    runs: Mapping[str, Mapping[str, float]],
    named: tuple[str, ...],
    level: float,
) -> Estimates:
    """Return the estimates by the pack."""
    evaluation = Evaluation(scores, targets=named)
    scale = scores.scale
    if evaluation.method.asks_once:
        for name, items in evaluation.ask().items():
            recorded = {item: runs[name][item] for item in items if item in runs[name]}
            answers = {item: float(scale.from_unit(unit)) for item, unit in recorded.items()}
            sets = [each for each in entries if isinstance(each, AnswerSet) and each.target == name]
            replies = {item: kind for (item, _), kind in kept_replies(sets).items()}
            evaluation.tell(name, answers, replies=replies, accept_fractions=True)
        return _estimated(evaluation, level)
    # It predicts from answers to any items, in their original rounds.
    evaluation.adopt(entries, named)
    return _estimated(evaluation, level)


def _estimated(evaluation: Evaluation, level: float) -> Estimates:
    able = [name for name in evaluation.targets if len(evaluation.record.answered(name))]
    return evaluation.estimate(level, able, warn=False) if able else Estimates()
