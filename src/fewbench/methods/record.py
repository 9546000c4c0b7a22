"""What each target was asked and answered."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from fewbench._types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of targets to the same items.

    - `items`, shape (n,): Positions of the items in the source scores.
    - `scores`, shape (targets, n): Scores in [0, 1].
    - `probabilities`, shape (targets, n, options)
    """

    items: IntArray
    scores: FloatArray
    probabilities: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Lead:
    """A run whose items another target is asked first.

    - `rounds`: Positions of its items, round by round.
    - `scores`, shape (items,): Its answers, by which its later rounds were chosen; NaN elsewhere.
    - `budget`: The most items that it may be asked.
    - `lead`: The run whose items it was asked first itself.
    """

    rounds: tuple[IntArray, ...]
    scores: FloatArray
    budget: int
    lead: "Lead | None" = None

    def followed(self, rounds: Sequence[IntArray]) -> int:
        """Return how many of another target's rounds, from the first on, are these."""
        pairs = zip(rounds, self.rounds, strict=False)
        return len(list(takewhile(lambda pair: np.array_equal(*pair), pairs)))


class Record:
    """What each target was asked, round by round, and answered; items are positions.

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
    """

    def __init__(self, targets: Sequence[str], n_items: int) -> None:
        self._n_items = n_items
        self._rounds: dict[str, list[IntArray]] = {}
        self._asked: dict[str, IntArray] = {}
        self._scores: dict[str, FloatArray] = {}
        self._options: dict[str, dict[int, FloatArray]] = {}
        self._skipped: dict[str, set[int]] = {}
        self._leads: dict[str, Lead] = {}
        for target in targets:
            self.add(target)

    def add(self, target: str) -> None:
        """Add a target that was asked nothing yet."""
        self._rounds[target], self._options[target], self._skipped[target] = [], {}, set()
        self._asked[target] = np.empty(0, dtype=np.intp)
        self._scores[target] = np.full(self._n_items, np.nan)

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets, in order."""
        return tuple(self._rounds)

    def rounds(self, target: str) -> list[IntArray]:
        """Return the items that a target was asked, one array per round."""
        return self._rounds[target]

    def asked(self, target: str) -> IntArray:
        """Return all items that a target was asked, in order, each once."""
        return self._asked[target]

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

    def skipped(self, target: str) -> frozenset[int]:
        """Return the items that the target cannot answer."""
        return frozenset(self._skipped[target])

    def scores(self, target: str) -> FloatArray:
        """Return a target's scores, shape (items,), NaN where it gave no answer."""
        return self._scores[target]

    def answers(self, target: str, items: IntArray | None = None) -> Answers:
        """Return a target's answers, by default all; with probabilities if all have them."""
        items = self.answered(target) if items is None else items
        options = self._options[target]
        rows = [options[at] for at in items.tolist() if at in options] if options else []
        return Answers(
            items,
            self._scores[target][items][None],
            np.array([rows]) if rows and len(rows) == len(items) else None,
        )

    def lead(self, target: str) -> Lead | None:
        """Return the run whose items a target was asked first."""
        return self._leads.get(target)

    def as_lead(self, target: str, most: int, budget: int) -> Lead:
        """Return a target's rounds, of at most so many items, and its answers, for another one.

        `budget` is its own.
        """
        rounds: list[IntArray] = []
        for items in self._rounds[target]:
            left = most - sum(map(len, rounds))
            rounds += [items[:left]] if left > 0 else []
        return Lead(tuple(rounds), self._scores[target].copy(), budget, self._leads.get(target))

    def follow(self, target: str, lead: Lead) -> None:
        """Record that a target, which may be new, is asked the items of another run first."""
        if target not in self._rounds:
            self.add(target)
        self._leads[target] = lead

    def add_round(self, target: str, items: IntArray) -> None:
        """Record that a target was asked these items."""
        self._rounds[target].append(items)
        self._note_asked(target)

    def extend_round(self, target: str, items: IntArray) -> None:
        """Record further items of a target's last round."""
        self._rounds[target][-1] = np.append(self._rounds[target][-1], items)
        self._note_asked(target)

    def _note_asked(self, target: str) -> None:
        every = np.concatenate(self._rounds[target])
        _, first = np.unique(every, return_index=True)
        self._asked[target] = every if len(first) == len(every) else every[np.sort(first)]

    def tell(self, target: str, answers: Answers) -> None:
        """Record a target's answers; they replace earlier answers and option probabilities."""
        changed = answers.items[self._scores[target][answers.items] != answers.scores[0]]
        for at in changed.tolist():
            self._options[target].pop(at, None)
        self._scores[target][answers.items] = answers.scores[0]
        self._skipped[target].difference_update(answers.items.tolist())
        if answers.probabilities is not None:
            rows = zip(answers.items.tolist(), answers.probabilities[0], strict=True)
            self._options[target].update((at, row) for at, row in rows if not np.isnan(row).any())

    def skip(self, target: str, items: Sequence[int]) -> None:
        """Record that a target cannot answer these items; they are not asked again."""
        self._skipped[target].update(items)

    def unskip(self, target: str, items: Sequence[int]) -> None:
        """Record that these items are to be asked again."""
        self._skipped[target].difference_update(items)
