"""A static method: a selector and a predictor, with items chosen once."""

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fewbench._names import counted
from fewbench._types import IntArray
from fewbench.errors import MethodError
from fewbench.methods.base import (
    Answers,
    FittedPredictor,
    Method,
    Prediction,
    Predictor,
    Selector,
    Session,
    joined,
)
from fewbench.methods.needs import Extra, Need, extras_of, for_sources, is_costly, needs_of, require
from fewbench.methods.prediction.mean import Mean
from fewbench.methods.selection.random import Random
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


@dataclass(frozen=True)
class StaticMethod(Method):
    """Items chosen before any target is run, and a predictor over them."""

    selector: Selector
    predictor: Predictor

    def __post_init__(self) -> None:
        for part, does in ((self.selector, "select"), (self.predictor, "fit")):
            if not hasattr(part, does):
                raise MethodError(
                    f"{type(part).__name__} has no method {does}",
                    hint="a StaticMethod is made of a selector with select(scores, budget, seed) "
                    "and a predictor with fit(scores, subset, seed)",
                )
            if not (hasattr(part, "describe") or is_dataclass(part)):
                raise MethodError(
                    f"{type(part).__name__} is not a dataclass, whose fields are its settings",
                    hint="write @dataclass(frozen=True) above the class",
                )

    @property
    def plain_sampling(self) -> bool:
        """Whether this is a simple random sample and its mean."""
        return self.random_items and isinstance(self.predictor, Mean)

    @property
    def random_items(self) -> bool:
        """Whether the selector draws a simple random sample."""
        return isinstance(self.selector, Random)

    asks_once: ClassVar[bool] = True

    @property
    def extends(self) -> bool:
        """Whether a larger budget extends a smaller one."""
        return self.random_items

    @property
    def reach(self) -> float:
        """How far outside the range of the sources the predictor's errors still apply."""
        return float(getattr(self.predictor, "reach", super().reach))

    @property
    def costly(self) -> bool:
        """Whether the method takes long to learn from the sources."""
        return is_costly(self.selector, self.predictor)

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the two parts need from the source scores."""
        return needs_of(self.selector, self.predictor)

    @property
    def extras(self) -> tuple[Extra, ...]:
        """The optional packages that the two parts need."""
        return extras_of(self.selector, self.predictor)

    def for_sources(self, scores: Scores) -> "StaticMethod":
        """Return this method with parts whose rules for the number of sources are fixed."""
        return replace(
            self,
            selector=for_sources(self.selector, scores),
            predictor=for_sources(self.predictor, scores),
        )

    def start(
        self, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> "StaticSession":
        """Choose the items and open a session.

        Raises MethodError, MissingExtraError if the scores or this installation lack what the parts
        need, before any target runs.
        """
        require(self, scores)
        subset: object = self.selector.select(scores, budget, seed)
        if not isinstance(subset, Subset):
            raise MethodError(
                f"{type(self.selector).__name__}.select gave {type(subset).__name__}, not a Subset",
                hint="return Subset(items=(item id, ...)) of fewbench.methods",
            )
        is_sample = self.random_items
        return StaticSession(self.predictor, scores, subset, seed, targets, is_sample=is_sample)

    def describe(self) -> str:
        """Return the parts and their changed settings as the command line writes them."""
        from fewbench.methods.parts import describe  # imports every part

        return describe(self.selector, self.predictor)


class StaticSession(Session):
    """Asks each target for the same items, once; a user may supply the `subset`.

    If the items are a simple random sample (`is_sample`), further answered items are part of it.
    """

    def __init__(
        self,
        predictor: Predictor,
        scores: Scores,
        subset: Subset,
        seed: int,
        targets: Sequence[str],
        *,
        is_sample: bool = False,
    ) -> None:
        super().__init__(targets, scores.n_items)
        self.subset: Subset = subset
        self._predictor = predictor
        self._scores = scores
        self._seed = seed
        self._items = self._sample = scores.positions(subset.items)
        if is_sample:  # the chosen items, then all others
            others = np.setdiff1d(np.arange(scores.n_items), self._items)
            self._sample = np.concatenate([self._items, others])
        self._fitted: dict[tuple[int, ...], FittedPredictor] = {}

    def choose(self, targets: Sequence[str]) -> dict[str, IntArray]:
        """Return the subset for every target that did not get it yet."""
        record, n = self.record, len(self._items)
        return {name: self._items for name in targets if len(record.asked(name)) < n}

    def predict(self, targets: Sequence[str], *, tasks: bool = True) -> Prediction:
        """Predict targets with the same answered items together.

        If a target did not answer the whole subset, the predictor is refitted on the answered
        items.
        """
        alike: dict[tuple[int, ...], list[int]] = {}
        for row, name in enumerate(targets):
            answered = np.isfinite(self.record.scores(name)[self._sample])
            alike.setdefault(tuple(np.flatnonzero(answered).tolist()), []).append(row)
        parts = []
        for places, rows in alike.items():
            items = self._sample[list(places)]
            of_rows = [self.record.answers(targets[row], items) for row in rows]
            options = [a.probabilities for a in of_rows if a.probabilities is not None]
            together = Answers(
                items,
                np.concatenate([answers.scores for answers in of_rows]),
                np.concatenate(options) if len(options) == len(of_rows) else None,
            )
            parts.append(self._fit(places).predict(together, tasks=tasks))
        whole = joined(parts, list(alike.values()))
        notes = (*self.subset.notes, *whole.notes, *self._left_out(targets))
        return replace(whole, notes=tuple(dict.fromkeys(notes)))

    def _left_out(self, targets: Sequence[str]) -> list[str]:
        """Say how many answers are to items that the method did not choose."""
        notes = []
        for name in targets:
            is_other = np.isfinite(self.record.scores(name))
            is_other[self._sample] = False
            if n := int(is_other.sum()):
                notes.append(
                    f"{counted(n, 'answer')} of {name} {'is' if n == 1 else 'are'} to items that "
                    "the method did not choose, and count for nothing in the estimate"
                )
        return notes

    def _fit(self, places: tuple[int, ...]) -> FittedPredictor:
        if places not in self._fitted:
            is_whole = places == tuple(range(len(self._items)))
            subset = self.subset if is_whole else self._part(places)
            learner: Any = self._predictor
            self._fitted[places] = learner.fit(self._scores, subset, self._seed)
        return self._fitted[places]

    def _part(self, places: tuple[int, ...]) -> Subset:
        """Return the subset of the items at these places; they share the weight of the others."""
        items = tuple(self._scores.item_ids[self._sample[list(places)]].tolist())
        weights = self.subset.weights
        if weights is not None:
            kept = [weights[at] for at in places]
            weights = (
                tuple(weight * sum(weights) / sum(kept) for weight in kept) if sum(kept) else None
            )
        chances = self.subset.chances
        if len(places) and max(places) >= len(self._items):  # a larger sample
            chances = (len(places) / self._scores.n_items,) * len(places)
        elif chances is not None:
            chances = tuple(chances[at] for at in places)
        return self.subset.model_copy(
            update={"items": items, "weights": weights, "chances": chances}
        )
