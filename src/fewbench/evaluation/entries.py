"""The entries of an evaluation's list: what happened to its targets, in order, by item.

An entry names its targets, returns its part about some items (`part`), and changes the record
(`apply`). Its line in the journal begins with its kind. A new kind is a class here, named
in `EVERY`.
"""

import math
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fewbench._json import Frozen
from fewbench._types import FloatArray
from fewbench.evaluation.answers import AnswerBook
from fewbench.methods import Answers
from fewbench.methods.record import Drawing, Lead
from fewbench.scores import Scores

Ids = NDArray[Any]
"""The ids of all items, shape (items,)."""
Value = TypeVar("Value")


class JournalEntry(Frozen):
    """One thing that happened."""

    kind: ClassVar[str]

    @property
    def names(self) -> tuple[str, ...]:
        """The targets that it is about."""
        return ()

    def part(self, items: Container[str], targets: Container[str]) -> Self | None:
        """Return its part about some items and targets, or None if nothing."""
        return self

    def apply(self, book: AnswerBook) -> None:
        """Change the record of the book; AnswersError, ScoresError if it does not fit."""

    def line(self) -> bytes:
        """Return its line in the journal."""
        text = self.model_dump_json(exclude_defaults=True).encode()
        return b'{"kind":"%s",%s' % (self.kind.encode(), text[1:])


class TargetEntry(JournalEntry):
    """One thing that happened to one target."""

    target: str

    @property
    def names(self) -> tuple[str, ...]:
        """The targets that it is about."""
        return (self.target,)

    def part(self, items: Container[str], targets: Container[str]) -> Self | None:
        """Return its part about some items and targets, or None if nothing."""
        return self._on(items) if self.target in targets else None

    def _on(self, items: Container[str]) -> Self | None:
        return self


class AskedItems(JournalEntry):
    """One round of items requested from targets."""

    kind = "asked"
    targets: tuple[str, ...]
    items: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The targets that it is about."""
        return self.targets

    def part(self, items: Container[str], targets: Container[str]) -> Self | None:
        """Return its part about some items and targets, or None if nothing."""
        left = {"targets": _among(self.targets, targets), "items": _among(self.items, items)}
        return self.model_copy(update=left) if all(left.values()) else None

    def apply(self, book: AnswerBook) -> None:
        """Add the round to the record."""
        items = book.sources.positions(self.items)
        for target in self.targets:  # unless two processes asked the same
            if not book.record.is_asked(target, items).all():
                book.record.add_round(target, items)


class AnswerSet(TargetEntry):
    """Answers of one target, scores in [0, 1].

    `differences` lists differences in prompts or scoring from the sources that the user accepted,
    `doubts` why that may be so. `replies` are the kinds of replies that deserve a warning, by item
    (see `fewbench.scores.replies`), `texts` the beginnings of replies, where a runner has them.
    `model` is the model that the answers' table names, where the user did not say whose they are.
    `corrects` marks answers that replace earlier ones of the same items. Unknown probabilities are
    null in the file. `conditions` are the prompts and scoring of the items, as far as the answers'
    table has them (see `fewbench.scores.conditions`): column → value → places in `items`. `repeat`
    is 2 for second answers to items, beside the first ones; a line without it has first answers.
    `counts` and `variances` say how many answers each score is the mean of, and how far they vary
    (see `fewbench.scores.repeats`).
    """

    kind = "answers"
    beside: ClassVar = ("items", "scores", "probabilities", "counts", "variances")
    items: tuple[str, ...]
    scores: tuple[float, ...]
    probabilities: tuple[tuple[float | None, ...], ...] | None = None
    differences: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    replies: dict[str, str] = Field(default_factory=dict)
    texts: dict[str, str] = Field(default_factory=dict)
    model: str = ""
    corrects: bool = False
    conditions: dict[str, dict[str, tuple[int, ...]]] = Field(default_factory=dict)
    repeat: int = Field(default=1, ge=1)
    counts: tuple[int, ...] | None = None
    variances: tuple[float | None, ...] | None = None
    cost: float | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        values = (getattr(self, name) for name in self.beside)
        if any(part is not None and len(part) != len(self.items) for part in values):
            raise ValueError("items, scores, probabilities and counts are of different numbers")
        return self

    @classmethod
    def of(cls, target: str, answers: Answers, ids: Ids, **fields: Any) -> Self:
        """Return the entry of answers by position; `fields` are the others."""
        options, counts, variances = answers.probabilities, answers.counts, answers.variances
        if variances is not None:  # JSON has no NaN
            listed = variances[0].tolist()
            fields["variances"] = tuple(None if math.isnan(value) else value for value in listed)
        return cls(
            target=target,
            items=tuple(ids[answers.items]),
            scores=tuple(answers.scores[0].tolist()),
            probabilities=None if options is None else tuple(map(tuple, options[0].tolist())),
            counts=None if counts is None else tuple(map(int, counts[0])),
            **fields,
        )

    def answers(self, scores: Scores) -> Answers:
        """Return the answers by position in these scores."""
        options, counts, variances = (
            None if values is None else np.array([values], dtype=np.float64)
            for values in (self.probabilities, self.counts, self.variances)
        )
        positions = scores.positions(self.items)
        return Answers(positions, np.array([self.scores]), options, counts, variances)

    def _on(self, items: Container[str]) -> Self | None:
        """Return the answers to some items; the cost is that of all."""
        places = [at for at, item in enumerate(self.items) if item in items]
        if len(places) in (0, len(self.items)):
            return self if places else None
        left: dict[str, Any] = {
            name: None if values is None else tuple(values[at] for at in places)
            for name in self.beside
            for values in [getattr(self, name)]
        }
        for name in ("replies", "texts"):
            left[name] = _by_item(getattr(self, name), {*left["items"]})
        now = {at: place for place, at in enumerate(places)}
        left["conditions"] = {
            column: {
                text: tuple(now[at] for at in where if at in now) for text, where in of.items()
            }
            for column, of in self.conditions.items()
        }
        return self.model_copy(update=left)

    def apply(self, book: AnswerBook) -> None:
        """Record the answers."""
        answers = self.answers(book.sources)
        book.record.restore(self.target, answers.items)
        # The last answer counts: a repair may have dropped a correction in between.
        book.check(self.target, answers, accept_fractions=True, correct=True, repeat=self.repeat)
        book.record.tell(self.target, answers, self.repeat)


class SkippedItems(TargetEntry):
    """Items that a target cannot answer; or, with `again`, that are to be requested again."""

    kind = "skipped"
    items: tuple[str, ...]
    again: bool = False

    def _on(self, items: Container[str]) -> Self | None:
        left = _among(self.items, items)
        return self.model_copy(update={"items": left}) if left else None

    def apply(self, book: AnswerBook) -> None:
        """Record that the items are skipped, or are not."""
        items = book.sources.positions(self.items)
        if self.again:
            book.record.unskip(self.target, items.tolist())
        else:
            book.record.restore(self.target, items)
            book.record.skip(self.target, items.tolist())


class LeadByItem(Frozen):
    """A run that a target follows; see `fewbench.methods.record.Lead`."""

    rounds: tuple[tuple[str, ...], ...]
    scores: dict[str, float]
    budget: int
    lead: "LeadByItem | None" = None

    @classmethod
    def of(cls, lead: Lead, ids: Ids) -> Self:
        """Return a lead by position as one by item."""
        return cls(
            rounds=tuple(tuple(ids[items].tolist()) for items in lead.rounds),
            scores=_known(lead.scores, ids),
            budget=lead.budget,
            lead=None if lead.lead is None else cls.of(lead.lead, ids),
        )

    def by_position(self, scores: Scores) -> Lead:
        """Return it by position in these scores."""
        rounds = tuple(map(scores.positions, self.rounds))
        lead = None if self.lead is None else self.lead.by_position(scores)
        return Lead(rounds, _array(self.scores, scores), self.budget, lead)

    def on(self, items: Container[str]) -> "LeadByItem":
        """Return the part of some items; rounds without any are none, as those of targets are."""
        rounds = tuple(filter(None, (_among(asked, items) for asked in self.rounds)))
        lead = None if self.lead is None else self.lead.on(items)
        return LeadByItem(
            rounds=rounds, scores=_by_item(self.scores, items), budget=self.budget, lead=lead
        )


class FollowedRun(TargetEntry):
    """A target, which may be new, follows a run.

    `of` names that run. Its answers are kept here, as they decide the chances of a sample's items.
    """

    kind = "followed"
    of: str
    lead: LeadByItem

    def _on(self, items: Container[str]) -> Self:
        return self.model_copy(update={"lead": self.lead.on(items)})

    def apply(self, book: AnswerBook) -> None:
        """Record the run that the target follows."""
        book.record.follow(self.target, self.lead.by_position(book.sources))


class DrawnPhase(Frozen):
    """One phase of a sample: the items asked before it, and the chance of each drawn item."""

    before: tuple[str, ...]
    chances: dict[str, float]


class DrawnSample(TargetEntry):
    """How a target's items were drawn so far, so that it can be known without the scores then.

    Without phases, a method chose them. The last entry of a target counts. It changes no record:
    only where the scores are others, the chances do not follow from them (`Ledger.carry`).
    """

    kind = "drawn"
    phases: tuple[DrawnPhase, ...]

    @classmethod
    def of(cls, target: str, drawings: Iterable[Drawing], ids: Ids) -> Self:
        """Return the entry of phases by position."""
        phases = tuple(
            DrawnPhase(
                before=tuple(ids[drawing.before]), chances=_known(drawing.chances.round(9), ids)
            )
            for drawing in drawings
        )
        return cls(target=target, phases=phases)

    def drawings(self, scores: Scores) -> tuple[Drawing, ...]:
        """Return the phases by position in these scores."""
        return tuple(
            Drawing(scores.positions(phase.before), _array(phase.chances, scores))
            for phase in self.phases
        )

    def _on(self, items: Container[str]) -> Self:
        phases = (
            DrawnPhase(before=_among(phase.before, items), chances=chances)
            for phase in self.phases
            if (chances := _by_item(phase.chances, items))
        )
        return self.model_copy(update={"phases": tuple(phases)})


class RemovedItems(JournalEntry):
    """Items that were taken out of the benchmark, or corrected: earlier answers do not count.

    Those who open the folder with other scores leave them out (`part_of`).
    """

    kind = "removed"
    removed: tuple[str, ...]


class RunBatch(TargetEntry):
    """What a batch of a run cost, and which of its items failed.

    `counts` is False where the model failed as a whole, which does not count against the items.
    Earlier failures of the items in `again` do not count either. An entry with `facts` says how the
    model was run from there on. `seconds` and `own` are the time since the entry before, and the
    part of it that fewbench itself took.
    """

    kind = "batch"
    facts: dict[str, str] | None = None
    failed: dict[str, str] = Field(default_factory=dict)
    counts: bool = True
    again: tuple[str, ...] = ()
    cost: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    tokens: int = Field(default=0, ge=0)
    seconds: float = 0.0
    own: float = 0.0


EVERY = AskedItems, AnswerSet, SkippedItems, FollowedRun, DrawnSample, RemovedItems, RunBatch
KINDS: dict[str, type[JournalEntry]] = {entry.kind: entry for entry in EVERY}
UNTAGGED = {
    "scores": AnswerSet, "targets": AskedItems, "items": SkippedItems, "lead": FollowedRun,
    "phases": DrawnSample, "removed": RemovedItems, "target": RunBatch,
}  # fmt: skip
"""Lines of older versions have no kind: the first of these fields that one has says what it is."""


def read_entry(fields: Any) -> JournalEntry:
    """Return the entry of a line's fields; ValueError if they are of none."""
    own = dict(fields) if isinstance(fields, dict) else {}
    by_field = next((entry for name, entry in UNTAGGED.items() if name in own), None)
    entry = KINDS.get(str(own.pop("kind"))) if "kind" in own else by_field
    if entry is None:
        raise ValueError("no entry of a known kind")
    return entry.model_validate(own)


def part_of(
    entries: Iterable[JournalEntry], items: Iterable[str], targets: Container[str]
) -> Iterator[JournalEntry]:
    """Yield the parts of entries about some items and targets, without answers to removed items."""
    every, counting, known = list(entries), list[frozenset[str]](), frozenset(items)
    left = known
    for entry in reversed(every):
        counting.append(left)
        if isinstance(entry, RemovedItems):
            left -= {*entry.removed}
    for entry, left in zip(every, reversed(counting), strict=True):
        part = entry.part(left if isinstance(entry, AnswerSet) else known, targets)
        if part is not None and not isinstance(entry, RemovedItems):
            yield part


def kept_replies(answer_sets: Iterable[AnswerSet]) -> dict[tuple[str, int], str]:
    """Return the replies of a target that deserve a warning: (item, repeat) → kind.

    The last correction of an answer counts.
    """
    replies: dict[tuple[str, int], str] = {}
    for entry in answer_sets:
        for item in entry.items:
            replies.pop((item, entry.repeat), None)
        replies |= {(item, entry.repeat): kind for item, kind in entry.replies.items()}
    return replies


def _among(items: Iterable[str], known: Container[str]) -> tuple[str, ...]:
    return tuple(item for item in items if item in known)


def _by_item(values: Mapping[str, Value], known: Container[str]) -> dict[str, Value]:
    return {item: value for item, value in values.items() if item in known}


def _known(values: FloatArray, ids: Ids) -> dict[str, float]:
    """Return the values, shape (items,), that are not NaN, by item."""
    places = np.flatnonzero(np.isfinite(values))
    return dict(zip(ids[places].tolist(), values[places].tolist(), strict=True))


def _array(values: Mapping[str, float], scores: Scores) -> FloatArray:
    """Return values by item as an array, shape (items,), NaN elsewhere."""
    array = np.full(scores.n_items, np.nan)
    array[scores.positions(values)] = [*values.values()]
    return array
