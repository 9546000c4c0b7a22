"""A static method: a selector and a predictor, asked once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fewbench.methods.base import (
    Answers,
    FittedPredictor,
    IntArray,
    Prediction,
    Predictor,
    Selector,
)
from fewbench.methods.needs import Extra, Need, extras_of, is_costly, needs_of
from fewbench.methods.obstacles import obstacle
from fewbench.methods.parts import describe
from fewbench.methods.prediction.mean import Mean
from fewbench.methods.selection.random import Random
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


@dataclass(frozen=True)
class StaticMethod:
    """Items chosen before any target is run, and a predictor over them."""

    selector: Selector
    predictor: Predictor

    @property
    def plain_sampling(self) -> bool:
        """Whether this is a simple random sample and its mean."""
        return isinstance(self.selector, Random) and isinstance(self.predictor, Mean)

    @property
    def costly(self) -> bool:
        """Whether the method takes long to learn from the sources."""
        return is_costly(self.selector, self.predictor)

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the two need of the past scores."""
        return needs_of(self.selector, self.predictor)

    @property
    def extras(self) -> tuple[Extra, ...]:
        """The optional packages that the two need."""
        return extras_of(self.selector, self.predictor)

    def start(
        self, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> "StaticSession":
        """Choose the items and open a session.

        Raises
        ------
        MethodError, MissingExtraError
            If the scores or this installation lack what the parts need: now, not when a target
            has answered.
        """
        if (error := obstacle(self, scores)) is not None:
            raise error
        subset = self.selector.select(scores, budget, seed)
        return StaticSession(self.predictor, scores, subset, seed, targets)

    def describe(self) -> str:
        """Return the parts and their settings as the command line writes them."""
        return describe(self.selector, self.predictor)


class StaticSession:
    """Asks every target for the same items, once.

    Parameters
    ----------
    subset : Subset
        The chosen items; also given by a user who has a subset file.
    """

    def __init__(
        self,
        predictor: Predictor,
        scores: Scores,
        subset: Subset,
        seed: int,
        targets: Sequence[str],
    ) -> None:
        self.subset = subset
        self._predictor = predictor
        self._scores = scores
        self._seed = seed
        self._items = scores.positions(subset.items)
        self._told: dict[str, Answers | None] = dict.fromkeys(targets)

    def ask(self) -> dict[str, IntArray]:
        """Return the subset for every target that has not answered."""
        return {target: self._items for target, told in self._told.items() if told is None}

    def tell(self, target: str, answers: Answers) -> None:
        """Take a target's answers to the whole subset."""
        self._told[target] = answers

    def predict(self, targets: Sequence[str], *, tasks: bool = True) -> Prediction:
        """Predict the targets together: one matrix product or one forest for all."""
        told = [answers for target in targets if (answers := self._told[target]) is not None]
        options = [a.probabilities for a in told if a.probabilities is not None]
        together = Answers(
            self._items,
            np.concatenate([answers.scores for answers in told]),
            np.concatenate(options) if len(options) == len(told) else None,
        )
        said = self._fitted.predict(together, tasks=tasks)
        return replace(said, notes=(*self.subset.notes, *said.notes))

    @cached_property
    def _fitted(self) -> FittedPredictor:
        return self._predictor.fit(self._scores, self.subset, self._seed)
