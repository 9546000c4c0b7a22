"""The items and answers of each target."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.scores.repeats import pool_answers

Part = tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of targets to the same items.

    - `items`, shape (n,): Positions of the items in the source scores.
    - `scores`, shape (targets, n): Scores in [0, 1].
    - `probabilities`, shape (targets, n, options)
    - `counts`, `variances`, shape (targets, n): If items were answered several times, how often,
      and the variance of an answer about the item's own mean (see `fewbench.scores.repeats`).
      Scores are then means.
    - `lost`: Positions of items requested before these, without an answer.
    """

    items: IntArray
    scores: FloatArray
    probabilities: FloatArray | None = None
    counts: FloatArray | None = None
    variances: FloatArray | None = None
    lost: IntArray | None = None

    def among(self, items: IntArray) -> "Answers":
        """Return the answers to some items, sorted, by their places among these."""
        has = np.isin(self.items, items)
        of_items = (
            None if array is None else array[:, has]
            for array in (self.scores, self.probabilities, self.counts, self.variances)
        )
        scores, options, counts, variances = of_items
        assert scores is not None
        lost = self.lost
        if lost is not None:
            lost = np.searchsorted(items, lost[np.isin(lost, items)])
        places = np.searchsorted(items, self.items[has])
        return Answers(places, scores, options, counts, variances, lost)


@dataclass(frozen=True, eq=False)
class Lead:
    """A run that a target follows: the target runs the same items first.

    - `rounds`: Positions of its items, round by round.
    - `scores`, shape (items,): Its answers, by which its later rounds were chosen (NaN elsewhere).
    - `budget`: The largest number of its items.
    - `lead`: The run that it followed itself.
    """

    rounds: tuple[IntArray, ...]
    scores: FloatArray
    budget: int
    lead: "Lead | None" = None

    def followed(self, rounds: Sequence[IntArray]) -> int:
        """Return how many of another target's rounds, from the first on, are these."""
        pairs = zip(rounds, self.rounds, strict=False)
        return len(list(takewhile(lambda pair: np.array_equal(*pair), pairs)))


@dataclass(frozen=True, eq=False)
class Drawing:
    """One phase of a sample: items drawn with known chances, given all earlier items.

    - `before`: Positions of the items asked before this phase.
    - `chances`, shape (items,): Each drawn item's chance of being drawn; for other items, NaN.
    """

    before: IntArray
    chances: FloatArray


class Record:
    """Each target's items, round by round, and its answers; items are positions.

    A session computes its next items and its predictions from the record alone, so a reopened
    evaluation needs no replay.

    >>> record = Record(["new"], n_items=5)
    >>> record.add_round("new", np.array([3, 1]))
    >>> record.tell("new", Answers(np.array([3]), np.array([[1.0]])))
    >>> record.open("new").tolist(), record.answered("new").tolist()
    ([1], [3])
    >>> record.skip("new", [1])
    >>> record.open("new").tolist()
    []
    >>> record.tell("new", Answers(np.array([3]), np.array([[0.0]])), repeat=2)
    >>> record.scores("new")[3].item(), record.times("new").tolist()
    (0.5, [0, 0, 0, 2, 0])
    """

    def __init__(self, targets: Sequence[str], n_items: int) -> None:
        self._n_items = n_items
        self._rounds: dict[str, list[IntArray]] = {}
        self._asked: dict[str, IntArray] = {}
        self._is_asked: dict[str, BoolArray] = {}
        self._scores: dict[str, FloatArray] = {}
        # By number of the answer, its scores, counts and variances; empty without repeats.
        self._repeats: dict[str, dict[int, Part]] = {}
        self._options: dict[str, dict[int, FloatArray]] = {}
        self._skipped: dict[str, set[int]] = {}
        self._leads: dict[str, Lead] = {}
        self._drawings: dict[str, tuple[Drawing, ...]] = {}
        self._restored: dict[str, int] = {}  # number of the round whose request was lost
        for target in targets:
            self.add(target)

    def add(self, target: str) -> None:
        """Add a target without items."""
        self._rounds[target], self._options[target], self._skipped[target] = [], {}, set()
        self._asked[target] = np.empty(0, dtype=np.intp)
        self._is_asked[target] = np.zeros(self._n_items, dtype=bool)
        self._scores[target] = np.full(self._n_items, np.nan)
        self._repeats[target] = {}

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets, in order."""
        return tuple(self._rounds)

    def rounds(self, target: str) -> list[IntArray]:
        """Return a target's items, one array per round."""
        return self._rounds[target]

    def asked(self, target: str) -> IntArray:
        """Return all items of a target, in order, each once."""
        return self._asked[target]

    def is_asked(self, target: str, items: IntArray) -> BoolArray:
        """Return whether these items are among a target's."""
        return np.asarray(self._is_asked[target][items])

    def open(self, target: str) -> IntArray:
        """Return the asked items that were neither answered nor skipped, in order."""
        asked = self.asked(target)
        left = np.isnan(self._scores[target][asked])
        if self._skipped[target]:
            left &= ~np.isin(asked, list(self._skipped[target]))
        return np.asarray(asked[left])

    def answered(self, target: str) -> IntArray:
        """Return the answered items, in the order asked."""
        asked = self.asked(target)
        return np.asarray(asked[~np.isnan(self._scores[target][asked])])

    def lost(self, target: str) -> IntArray:
        """Return the items without an answer, requested before one with an answer, in order.

        They were not missed by chance, as those are that a run had not come to when it stopped.
        """
        asked = self.asked(target)
        has = ~np.isnan(self._scores[target][asked])
        return np.asarray(asked[~has & (np.cumsum(has[::-1])[::-1] > 0)])

    def skipped(self, target: str) -> frozenset[int]:
        """Return the items that the target cannot answer."""
        scores = self._scores[target]
        return frozenset(at for at in self._skipped[target] if np.isnan(scores[at]))

    def given_up(self, target: str) -> frozenset[int]:
        """Return the items that the target cannot answer, or not once more."""
        return frozenset(self._skipped[target])

    def scores(self, target: str) -> FloatArray:
        """Return a target's scores, shape (items,), NaN where it gave no answer.

        The mean, if an item was answered several times.
        """
        return self._scores[target]

    def first_scores(self, target: str) -> FloatArray:
        """Return a target's first answers, shape (items,), by which its rounds were chosen."""
        return self.scores_of(target, 1)

    def scores_of(self, target: str, repeat: int) -> FloatArray:
        """Return a target's first answers, second ones, …, shape (items,), NaN where none."""
        if repeat in self._repeats[target]:
            return self._repeats[target][repeat][0]
        if repeat == 1 and not self._repeats[target]:
            return self._scores[target]
        return np.full(self._n_items, np.nan)

    def has_repeats(self, target: str) -> bool:
        """Whether a target answered items several times."""
        return bool(self._repeats[target])

    def times(self, target: str) -> IntArray:
        """Return how many times each item was run and answered, shape (items,)."""
        parts = [part[0] for part in self._repeats[target].values()] or [self._scores[target]]
        return np.asarray((~np.isnan(np.stack(parts))).sum(axis=0))

    def calls(self, target: str) -> FloatArray:
        """Return how many answers each item has, shape (items,): each of them costs."""
        parts = self._repeats[target]
        if not parts:
            return (~np.isnan(self._scores[target])).astype(np.float64)
        return pool_answers([*parts.values()])[1]

    def by_repeat(self, target: str) -> Iterator[tuple[int, Answers]]:
        """Yield a target's answers, the first ones to all items, then the second ones, ….

        Without option probabilities if there are several.
        """
        if not self._repeats[target]:
            yield 1, self.answers(target)
        for repeat, part in self._repeats[target].items():
            items = np.flatnonzero(~np.isnan(part[0]))
            scores, counts, variances = (array[items][None] for array in part)
            yield repeat, Answers(items, scores, None, counts, variances)

    def answers(self, target: str, items: IntArray | None = None) -> Answers:
        """Return a target's answers, by default all; with probabilities if all have them."""
        lost = None
        if items is None:
            items, lost = self.answered(target), self.lost(target)
        options = self._options[target]
        rows = [options[at] for at in items.tolist() if at in options] if options else []
        counts = variances = None
        if parts := [*self._repeats[target].values()]:
            of_items = [(part[0][items], part[1][items], part[2][items]) for part in parts]
            _, counts, variances = (array[None] for array in pool_answers(of_items))
        return Answers(
            items,
            self._scores[target][items][None],
            np.array([rows]) if rows and len(rows) == len(items) else None,
            counts,
            variances,
            lost,
        )

    def lead(self, target: str) -> Lead | None:
        """Return the run that a target follows."""
        return self._leads.get(target)

    def drawings(self, target: str) -> tuple[Drawing, ...] | None:
        """Return how a target's items were drawn, where other scores than now decided it."""
        return self._drawings.get(target)

    def draw(self, target: str, drawings: tuple[Drawing, ...]) -> None:
        """Record how a target's items were drawn: their chances do not follow from the scores."""
        self._drawings[target] = drawings

    def as_lead(self, target: str, most: int, budget: int) -> Lead:
        """Return a target's rounds, up to a number of items, and answers, for a target that
        follows.

        `budget` is its own.
        """
        rounds: list[IntArray] = []
        for items in self._rounds[target]:
            left = most - sum(map(len, rounds))
            rounds += [items[:left]] if left > 0 else []
        return Lead(
            tuple(rounds), self.first_scores(target).copy(), budget, self._leads.get(target)
        )

    def follow(self, target: str, lead: Lead) -> None:
        """Record that a target, which may be new, follows a run."""
        if target not in self._rounds:
            self.add(target)
        self._leads[target] = lead

    def add_round(self, target: str, items: IntArray) -> None:
        """Record that these items were requested from a target."""
        self._rounds[target].append(items)
        self._note_asked(target, items)

    def restore(self, target: str, items: IntArray) -> None:
        """Add a round for those of these items whose request was lost, as by a repair."""
        lost, rounds = np.unique(items[~self.is_asked(target, items)]), self._rounds[target]
        if len(lost) and self._restored.get(target) != len(rounds):
            rounds.append(lost[:0])  # one round for all, until a request follows that is known
            self._restored[target] = len(rounds)
        if len(lost):
            rounds[-1] = np.append(rounds[-1], lost)
            self._note_asked(target, lost)

    def _note_asked(self, target: str, items: IntArray) -> None:
        new = items[~self.is_asked(target, items)]
        new = new[np.sort(np.unique(new, return_index=True)[1])]
        self._asked[target] = np.append(self._asked[target], new)
        self._is_asked[target][new] = True

    def tell(self, target: str, answers: Answers, repeat: int = 1) -> None:
        """Record a target's answers; they replace earlier answers and option probabilities.

        With `repeat` 2, they are the second answers to these items, beside the first ones.
        """
        self._skipped[target].difference_update(answers.items.tolist())
        # Means of several answers are pooled by their counts, also with those that come later.
        if repeat > 1 or answers.counts is not None or self._repeats[target]:
            self._tell_again(target, answers, repeat)
            return
        # Probabilities belong to the answer that they came with, not to one that replaces it.
        changed = answers.items[self._scores[target][answers.items] != answers.scores[0]]
        for at in changed.tolist():
            self._options[target].pop(at, None)
        self._scores[target][answers.items] = answers.scores[0]
        if answers.probabilities is not None:
            rows = zip(answers.items.tolist(), answers.probabilities[0], strict=True)
            self._options[target].update((at, row) for at, row in rows if not np.isnan(row).any())

    def _tell_again(self, target: str, answers: Answers, repeat: int) -> None:
        """Record answers beside others to the same items; the score is then their mean."""
        parts, items = self._repeats[target], answers.items
        if not parts:  # what is recorded so far are the first answers, one each
            scores = self._scores[target]
            parts[1] = (scores.copy(), np.ones(len(scores)), np.full(len(scores), np.nan))
        if repeat not in parts:
            nothing = np.full(self._n_items, np.nan)
            parts[repeat] = (nothing, np.ones(self._n_items), nothing.copy())
        new = (answers.scores, answers.counts, answers.variances)
        for array, values, unknown in zip(parts[repeat], new, (np.nan, 1.0, np.nan), strict=True):
            array[items] = unknown if values is None else values[0]
        of_items = [(part[0][items], part[1][items], part[2][items]) for part in parts.values()]
        self._scores[target][items] = pool_answers(of_items)[0]
        for at in items.tolist():  # probabilities are of one answer
            self._options[target].pop(at, None)

    def part(self, items: IntArray, targets: Sequence[str] | None = None) -> "Record":
        """Return what is known of some items, sorted, by their places among these.

        `targets` are those to take (default: all); the others stay, with nothing known.
        """

        def at(positions: IntArray) -> IntArray:
            return np.searchsorted(items, positions[np.isin(positions, items)])

        def lead_on(lead: Lead) -> Lead:
            before = None if lead.lead is None else lead_on(lead.lead)
            return Lead(tuple(map(at, lead.rounds)), lead.scores[items], lead.budget, before)

        part = Record(self.targets, len(items))
        for target in self.targets if targets is None else targets:
            for asked in self._rounds[target]:
                part.add_round(target, at(asked))
            for repeat, answers in self.by_repeat(target):
                part.tell(target, answers.among(items), repeat)
            part.skip(target, at(np.array(sorted(self._skipped[target]), dtype=np.intp)).tolist())
            if target in self._leads:
                part.follow(target, lead_on(self._leads[target]))
            if target in self._drawings:
                drawings = self._drawings[target]
                phases = (Drawing(at(phase.before), phase.chances[items]) for phase in drawings)
                part.draw(target, tuple(phases))
        return part

    def skip(self, target: str, items: Sequence[int]) -> None:
        """Record that a target cannot answer these items, so that they are not requested again."""
        self._skipped[target].update(items)

    def unskip(self, target: str, items: Sequence[int]) -> None:
        """Record that these items are to be requested again."""
        self._skipped[target].difference_update(items)
