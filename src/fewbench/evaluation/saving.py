"""An evaluation in its folder: how it is saved, and goes on with other scores or limits."""

import os
from pathlib import Path
from secrets import token_hex
from typing import Any

from fewbench.errors import EvaluationError
from fewbench.evaluation.changes import (
    FoundScores,
    keep_change,
    keep_scores,
    left_out,
    model_hashes,
)
from fewbench.evaluation.choosing import Choosing, Start
from fewbench.evaluation.entries import RemovedItems
from fewbench.evaluation.journal import Header, Journal, targets_of
from fewbench.evaluation.ledger import Ledger
from fewbench.evaluation.opening import Stop
from fewbench.methods import Method


def save(
    choosing: Choosing, folder: Path, scores_path: str | os.PathLike[str] | None
) -> Path | None:
    """Save an evaluation to a folder, and return the file of the scores that the folder names."""
    from fewbench.public import is_source, located

    journal = Journal(folder)
    journal.check_free()
    if scores_path is not None and is_source(scores_path):
        scores_path = located(scores_path)
    named = None if scores_path is None else str(Path(scores_path).resolve())
    header = Header(
        id=token_hex(8),
        scores=keep_scores(choosing.scores, folder) or named,
        targets=choosing.ledger.record.targets,
        subset=choosing.subset,
        stop=choosing.settings.stop,
        provenance=choosing.provenance,
        reason=choosing.settings.reason,
        models=model_hashes(choosing.scores),
    )
    journal.create(header)
    choosing.ledger.write_to(journal)
    choosing.fits.keep_in(folder)
    return journal.scores_path(header)


def go_on_with(choosing: Choosing, found: FoundScores, journal: Journal) -> None:
    """Take the answers of a folder over that was started with other scores.

    What is removed is noted in the folder before anything else is.
    """
    scores, entries = choosing.scores, list(journal.fresh())
    everyone = targets_of(journal.header(), entries)
    removed = [RemovedItems(removed=found.removed)] if found.removed else []
    choosing.ledger.carry([*entries, *removed], everyone)
    choosing.changes = (*found.notes, *left_out(entries, choosing.ledger.record))

    def note() -> None:
        own = journal.scores_path(journal.header())
        is_kept = own is not None and own.parent == journal.folder.absolute()
        journal.append(removed[0])  # first: where this ends here, the answers do not count either
        keep_change(
            journal, scores, own if is_kept else None,
            subset=choosing.settings.subset, provenance=choosing.provenance,
        )  # fmt: skip

    choosing.ledger.go_on_in(journal, note if removed else None)


def go_on_to(choosing: Choosing, stop: Stop, journal: Journal, method: Method | None) -> None:
    """Record a new limit on cost, tokens or time in the folder."""
    scores, ledger, was = choosing.scores, choosing.ledger, choosing.settings.stop
    if stop.kept != was.kept:
        raise EvaluationError(
            f"{journal.folder}: started with {was.describe()}, now {stop.describe()}",
            hint="change only the cost, the number of tokens or the time",
        )
    kept: dict[str, Any] = {"unit": stop.unit or was.unit}
    kept |= {"repeats": max(stop.repeats, was.repeats), "epochs": was.epochs}
    stop = stop.model_copy(update=kept)
    header = journal.header().model_copy(update={"stop": stop})
    before, budget = header.provenance, 0
    subset, chosen_by = choosing.subset, choosing.method
    # A method that chose all at once, or its targets' items together, would now choose others; and
    # the items of changed scores were drawn when they came.
    if chosen_by.extends and chosen_by.targets_apart and not (subset and header.changes):
        budget = stop.budget(chosen_by, scores)
    if budget > before.budget:
        provenance = before.model_copy(update={"budget": budget})
        header = header.model_copy(update={"provenance": provenance, "subset": None})
        if subset is not None:
            start = Start.from_header(header, method)
            more = Choosing(scores, start, Ledger(scores, header.targets))
            header = header.model_copy(update={"subset": more.subset})
    with ledger.alone():
        for target in ledger.record.targets if budget > before.budget else ():
            ledger.lead_itself(target, before.budget)
        journal.write(header)  # last: by the entries alone, nothing changes
