"""Requests and answers of an evaluation: in memory, and in its folder once it has one."""

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from fewbench._names import same_text, some
from fewbench._text import quoted
from fewbench._threads import Turn
from fewbench._types import IntArray
from fewbench.errors import AnswersError, EvaluationError, ScoresError
from fewbench.evaluation.answers import AnswerBook, Taken
from fewbench.evaluation.entries import (
    AnswerSet,
    AskedItems,
    DrawnSample,
    FollowedRun,
    JournalEntry,
    LeadByItem,
    RunBatch,
    SkippedItems,
    kept_replies,
    part_of,
)
from fewbench.evaluation.journal import Journal
from fewbench.methods import Answers, Record
from fewbench.methods.record import Drawing, Lead
from fewbench.scores import Scores
from fewbench.scores.conditions import recorded_conditions
from fewbench.scores.costs import cost_of_answers
from fewbench.scores.replies import describe_alike, describe_replies, is_limited, replies_of

NOTHING = 0.0, 0
Accepted = Mapping[str, bool]
"""`accept_fractions` and `correct`, as of `AnswerBook.check`."""


class Ledger:
    """Every round of items asked, answer told, item skipped and batch run, in order.

    Parameters
    ----------
    scores : Scores
        Those of the source models.
    targets : sequence of str

    Attributes
    ----------
    record : Record
        The same by position, for methods.
    book : AnswerBook
        Checks answers before they are recorded.
    entries : list of JournalEntry
    batches : list of RunBatch
        Those of them that are batches of runs.
    turn : Turn
        For threads that share the evaluation: one at a time changes it, or estimates.
    """

    def __init__(self, scores: Scores, targets: Sequence[str]) -> None:
        self.record = Record(tuple(targets), scores.n_items)
        self.book = AnswerBook(scores, self.record)
        self.entries: list[JournalEntry] = []
        self.batches: list[RunBatch] = []
        self.turn = Turn()
        self._scores, self._item_ids = scores, scores.item_ids
        self._noted: dict[str, int] = defaultdict(int)  # rounds that are among the entries
        self._drawn: dict[str, DrawnSample] = {}  # the last of each target
        self._paid: dict[str, set[tuple[str, int]]] = defaultdict(set)  # items, and which answers
        self._stated: dict[str, tuple[float, int]] = {}  # by logs: costs, of how many answers
        self._journal: Journal | None = None
        self._before_writing: Callable[[], None] | None = None

    # -- the folder ----------------------------------------------------------------------------

    @property
    def folder(self) -> Path | None:
        """Where entries are written, or None."""
        return None if self._journal is None else self._journal.folder

    def write_to(self, journal: Journal) -> None:
        """Write all entries, and those to come, to a new folder."""
        with self.turn:
            for entry in self.entries:
                journal.append(entry)
            self._journal = journal

    def go_on_in(self, journal: Journal, before: Callable[[], None] | None = None) -> None:
        """Read the entries of a folder that were not read yet, and write those to come there.

        `before` is called once, before the first of them.
        """
        self._take_up(journal)
        self._journal, self._before_writing = journal, before

    def _take_up(self, journal: Journal) -> None:
        """Add new entries of the folder to the record."""
        for entry in journal.fresh():
            try:
                self._take(entry)
            except (AnswersError, ScoresError) as error:
                raise EvaluationError(
                    f"{journal.folder}: entry {len(self.entries) + 1} does not fit the "
                    f"evaluation: {error.message}",
                    hint="the file was changed by hand; restore it from a backup",
                ) from error

    def _take(self, entry: JournalEntry) -> None:
        """Add an entry that was made before; AnswersError, ScoresError if it does not fit."""
        if not isinstance(entry, FollowedRun):  # by which a target joins
            for target in entry.names:
                self.check_target(target)
        entry.apply(self.book)
        self._add(entry)
        for name in entry.names:
            self._noted[name] = len(self.record.rounds(name))

    def carry(self, entries: Iterable[JournalEntry], targets: Container[str]) -> None:
        """Take over the parts of entries about these items and some targets.

        They were made with other scores: the chances with which items were drawn are of those.
        """
        for entry in part_of(entries, self._item_ids, targets):
            self._take(entry)
        for target in self.record.targets:
            drawn = self._drawn.get(target)
            if len(self.record.asked(target)):  # else all its items are drawn by the scores of now
                self.record.draw(target, () if drawn is None else drawn.drawings(self._scores))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other threads out, lock the folder, and read what others added to it."""
        with self.turn, nullcontext() if self._journal is None else self._journal.locked():
            if self._journal is not None:
                self._take_up(self._journal)
            yield

    def _note(self, entry: JournalEntry) -> None:
        """Write a new entry to the folder, and let it change the record; the folder is locked."""
        if self._journal is not None:
            self.note_changes()
            self._journal.append(entry)
        entry.apply(self.book)
        self._add(entry)

    def note_changes(self) -> None:
        """Note what has changed in the scores, unless it is noted; the folder is locked."""
        before, self._before_writing = self._before_writing, None
        if before is not None:
            before()

    def _add(self, entry: JournalEntry) -> None:
        self.entries.append(entry)
        if isinstance(entry, RunBatch):
            self.batches.append(entry)
        elif isinstance(entry, DrawnSample):
            self._drawn[entry.target] = entry
        elif isinstance(entry, AnswerSet):
            paid = self._paid[entry.target]
            stated, n_stated = self._stated.get(entry.target, NOTHING)
            n_before = len(paid)
            paid.update((item, entry.repeat) for item in entry.items)
            if entry.cost is not None:
                new = len(paid) - n_before
                self._stated[entry.target] = stated + entry.cost, n_stated + new

    @property
    def n_changes(self) -> int:
        """Number of entries that estimates may depend on."""
        return len(self.entries) - len(self.batches)

    # -- entries -------------------------------------------------------------------------------

    def note_rounds(self) -> None:
        """Note the rounds of the record that are not among the entries; the folder is locked."""
        new: dict[tuple[int, ...], list[str]] = {}
        for target in self.record.targets:
            for items in self.record.rounds(target)[self._noted[target] :]:
                new.setdefault(tuple(items.tolist()), []).append(target)
        for positions, targets in new.items():
            ids = tuple(self._item_ids[list(positions)])
            self._note(AskedItems(targets=tuple(targets), items=ids))
            for target in targets:
                self._noted[target] += 1

    def note_drawn(self, target: str, drawings: Sequence[Drawing]) -> None:
        """Note how a target's items were drawn, if that has changed."""
        entry = DrawnSample.of(target, drawings, self._item_ids)
        before = self._drawn.get(target)
        # Items that a method chose need no entry, unless they follow on a sample.
        if entry != before and (drawings or before is not None):
            self._note(entry)

    def check_target(self, target: str) -> None:
        """Raise AnswersError unless this is a target."""
        if target not in self.record.targets:
            raise AnswersError(
                f"{target!r} is not a target",
                hint=f"the targets are {some(self.record.targets)}",
                kind="unknown",
            )

    def check_answers(self, target: str) -> None:
        """Raise EvaluationError unless the target has answers."""
        if not len(self.record.answered(target)):
            raise EvaluationError(
                f"{target!r} has answered none of the asked items",
                hint="run the items that ask lists, and record the answers with tell",
                kind="unanswered",
            )

    def is_noted(self, target: str) -> bool:
        """Whether every round of the target is among the entries."""
        return self._noted[target] == len(self.record.rounds(target))

    def tell(
        self, target: str, answers: Answers, accepted: Accepted, *, repeat: int = 1, **known: Any
    ) -> None:
        """Check and record answers; `known` sets further fields of `AnswerSet`."""
        with self.alone():
            self.book.check(target, answers, **accepted, repeat=repeat)
            if len(answers.items):
                known |= {"repeat": repeat, "corrects": accepted["correct"]}
                self._note(AnswerSet.of(target, answers, self._item_ids, **known))

    def check_table(self, table: Scores, matched: Mapping[str, int], *, is_named: bool) -> None:
        """Raise AnswersError for a different scale or model, or ids in a different Unicode form.

        `matched` are the table's rows by target; with `is_named` the user said whose they are.
        """
        if table.scale != self.book.scale:
            raise AnswersError(
                f"the answers are on the scale {table.scale}, but the source models on "
                f"{self.book.scale}",
                hint="read the answers with the scale of the source models",
            )
        others = set(table.item_ids) - set(self._item_ids)
        if (pair := same_text(sorted(others), self._item_ids)) is not None:
            raise AnswersError(
                f"the answers name the item {pair[1]!a}, which is {pair[0]!a} in the sources: the "
                "same text in a different Unicode form",
                hint="write the ids of answers as ask lists them",
                kind="unknown",
            )
        for target, row in matched.items() if not is_named else ():
            model = table.model_ids[row]
            others = {entry.model for entry in self.answers_of(target)} - {"", model}
            if others:
                raise AnswersError(
                    f"{target!r} has answers of the model {some(sorted(others))}, and these are "
                    f"of {model!r}",
                    hint="start an evaluation of each model; for the same model, add "
                    f"--target {quoted(target)} (in Python target={target!r})",
                )

    def tell_table(
        self,
        table: Scores,
        matched: Mapping[str, int],
        replies: Mapping[str, str],
        texts: Mapping[str, str],
        accepted: Accepted,
        *,
        accept_differences: bool,
        strict: bool,
        is_named: bool,
        repeat: int = 1,
    ) -> Taken:
        """Check and record a table's answers, all or none; see `Evaluation.tell_table`."""
        book = self.book
        compared = book.compare(table, matched, accept_differences=accept_differences)
        every = {name: book.from_table(table, row, name) for name, row in matched.items()}
        odd: dict[str, dict[str, str]] = {}
        for name, answers in every.items():  # before any is recorded
            book.check(name, answers, **accepted, repeat=repeat)
            reply_texts = replies_of(table, table.model_ids[matched[name]]) | dict(replies)
            odd[name] = book.odd_replies(name, answers, reply_texts, strict=strict)
        taken, repeated, corrected, asked = 0, 0, 0, set[str]()
        empty, unskipped = dict[str, None](), dict[str, None]()
        for name, answers in every.items():
            again = [at for at in answers.items.tolist() if at in self.record.skipped(name)]
            unskipped |= dict.fromkeys(self._item_ids[again].tolist())
            before = self.record.scores_of(name, repeat)[answers.items]
            is_new, repeats = np.isnan(before), answers.scores[0] == before
            taken += int(is_new.sum())
            repeated += int(repeats.sum())
            corrected += int((~is_new & ~repeats).sum())
            asked.update(self._item_ids[self.record.asked(name)])
            model = "" if is_named else table.model_ids[matched[name]]
            conditions = recorded_conditions(table, self._item_ids[answers.items])
            left = self._item_ids[np.setdiff1d(self.record.open(name), answers.items)].tolist()
            empty |= dict.fromkeys(item for item in left if item in table.items.index)
            paid_for = self._item_ids[answers.items[is_new]].tolist()
            cost = cost_of_answers(table, table.model_ids[matched[name]], paid_for)
            self.tell(
                name, answers, accepted, repeat=repeat, conditions=conditions,
                differences=compared.differences, doubts=compared.doubts, replies=odd[name],
                texts=texts, model=model, cost=cost,
            )  # fmt: skip
        rows = set(matched.values())
        renamed = {name: table.model_ids[row] for name, row in matched.items() if not is_named}
        return Taken(
            taken,
            [item for item in table.item_ids if item not in asked],
            [model for row, model in enumerate(table.model_ids) if row not in rows],
            tuple(empty),
            repeated,
            (*compared.differences, *compared.doubts, *compared.notes),
            tuple(unskipped),
            {name: model for name, model in renamed.items() if name != model},
            compared.uncompared,
            corrected,
        )

    def skip(self, target: str, items: IntArray, again: Collection[int] = ()) -> None:
        """Record that a target cannot answer these items, or not `again`."""
        with self.alone():
            self.book.check_skipped(target, items, again)
            self._note(SkippedItems(target=target, items=tuple(self._item_ids[items])))

    def follow(self, target: str, lead: Lead, leader: str) -> None:
        """Record that a target, which may be new, follows a run.

        AnswersError if it already has items other than these.
        """
        with self.alone():
            rounds = self.record.rounds(target) if target in self.record.targets else []
            recorded = self.record.lead(target) if rounds else None
            for entry in self.entries:  # past what `lead_itself` noted
                if isinstance(entry, FollowedRun) and entry.target == entry.of == target:
                    recorded = None if recorded is None else recorded.lead
            theirs = rounds if recorded is None else recorded.rounds
            pairs = zip(chain(*theirs), chain(*lead.rounds), strict=False)
            # The same run named again, as every rerun of a command does; a budget may cut a round.
            if rounds and all(own == other for own, other in pairs):
                return
            if rounds:
                raise AnswersError(
                    f"{target!r} already has items other than those of {leader}",
                    hint="use a different name for the target, or a different folder",
                    kind="taken",
                )
            self._note_lead(target, leader, lead)

    def lead_itself(self, target: str, budget: int) -> None:
        """Record that the rounds of a target so far were chosen for this largest number of items.

        Those that it got together with other targets need no entry.
        """
        rounds, lead = self.record.rounds(target), self.record.lead(target)
        if len(rounds) > (0 if lead is None else lead.followed(rounds)):
            lead = self.record.as_lead(target, len(self._item_ids), budget)
            self._note_lead(target, target, lead)

    def _note_lead(self, target: str, leader: str, lead: Lead) -> None:
        self._note(FollowedRun(target=target, of=leader, lead=LeadByItem.of(lead, self._item_ids)))

    def unskip(self, target: str, items: IntArray) -> None:
        """Record that those of these items that were skipped are to be requested again."""
        with self.alone():
            again = [at for at in items.tolist() if at in self.record.given_up(target)]
            if again:
                ids = tuple(self._item_ids[again])
                self._note(SkippedItems(target=target, items=ids, again=True))

    def note_run(self, entry: RunBatch) -> None:
        """Record what a batch cost, and which of its items failed."""
        with self.alone():
            self._note(entry)

    def reported_cost(self, target: str) -> float:
        """Return what runs reported to have spent on a target."""
        return sum(entry.cost for entry in self.batches if entry.target == target)

    def answers_of(self, target: str) -> list[AnswerSet]:
        """Return the entries with answers of a target."""
        sets = (entry for entry in self.entries if isinstance(entry, AnswerSet))
        return [entry for entry in sets if entry.target == target]

    def stated_cost(self, target: str, *, is_all: bool) -> float:
        """Return what the answers of a target cost by their logs, 0 if none states it.

        With `is_all`, answers of other entries count as the mean of these. A corrected answer was
        paid once.
        """
        (stated, n_stated), paid = self._stated.get(target, NOTHING), self._paid[target]
        # A log that states no costs was paid, too: as much an answer as the others.
        return stated * len(paid) / n_stated if is_all and n_stated else stated

    def limited(self, target: str) -> list[tuple[str, int]]:
        """Return the answers that are not right and that a limit ended: items and repeats."""
        kept = kept_replies(self.answers_of(target))
        return [answer for answer, kind in kept.items() if is_limited(kind)]

    def notes(self, target: str, *, is_compared: bool = False) -> tuple[str, ...]:
        """Return warnings on a target's answers: cut replies, fractions, other prompts.

        The warning that all answers are right belongs to estimates and is not repeated in
        comparisons.
        """
        entries = self.answers_of(target)
        kinds = {item: kind for (item, _), kind in kept_replies(entries).items()}
        odd = describe_replies(kinds, len(self.record.answered(target)))
        answers = self.record.answers(target)
        ids, texts = self._item_ids[answers.items].tolist(), {}
        for entry in entries:
            texts.update(entry.texts)
        scores = dict(zip(ids, answers.scores[0].tolist(), strict=True))
        odd += describe_alike(
            {} if is_compared and set(scores.values()) == {1.0} else scores, texts
        )
        differences = dict.fromkeys(
            difference for entry in entries for difference in entry.differences
        )
        accepted = (
            f"accepted answers with different prompts or scoring: {difference}"
            for difference in differences
        )
        doubts = dict.fromkeys(doubt for entry in entries for doubt in entry.doubts)
        return (*odd, *self.book.notes(target), *accepted, *doubts)
