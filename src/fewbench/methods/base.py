"""The protocols of methods.

A *static* method is a pair: a `Selector` chooses the items before any target is run, a
`Predictor` turns a target's answers on them into its full score. An *adaptive* method implements
`Method` and `Session` itself and may ask several times. To users both are the same:

    session = method.start(scores, budget, seed, targets)
    while any(map(len, (asked := session.ask()).values())):    # {target: positions to run}
        for target, items in asked.items():
            session.tell(target, Answers(items, ...))
    session.predict(targets)                          # a Prediction, one row a target

Sources are in `scores`, targets never: nothing of a target is known but what was told.
Randomness comes from `seed` alone, so replaying the same tells gives the same asks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fewbench.methods.subset import Subset
from fewbench.scores import Scores

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Answers:
    """What targets answered on the same items.

    Attributes
    ----------
    items : ndarray of int, shape (n,)
        Positions of the items in the source scores.
    scores : ndarray, shape (targets, n)
        Scores in [0, 1].
    probabilities : ndarray, shape (targets, n, options), optional
    """

    items: IntArray
    scores: FloatArray
    probabilities: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predicted full scores of targets.

    Attributes
    ----------
    scores : ndarray, shape (targets,)
    tasks : ndarray, shape (targets, tasks), optional
        Task scores, if they were asked for.
    items : ndarray, shape (targets, items), optional
        Expected score of every item in [0, 1], where the method has it. Means of what a method
        expected before it was brought there may err less, so they need not make `scores`.
    outside : ndarray of bool, shape (targets,), optional
        Whether a target is unlike all sources, so that a method that cannot extrapolate errs.
    notes : tuple of str
        What a user should know of all these predictions.
    """

    scores: FloatArray
    tasks: FloatArray | None = None
    items: FloatArray | None = None
    outside: NDArray[np.bool_] | None = None
    notes: tuple[str, ...] = ()


class Selector(Protocol):
    """Chooses items before any target is run."""

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Choose `budget` items, with weights where the method gives them."""


class FittedPredictor(Protocol):
    """Knows the sources and the chosen items; predicts targets from their answers."""

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores; `answers.items` are the subset's items in its order."""


class Predictor(Protocol):
    """Turns answers on a subset into full scores."""

    def fit(self, scores: Scores, subset: Subset, seed: int) -> FittedPredictor:
        """Learn from the sources."""


class Session(Protocol):
    """One run of a method for some targets."""

    def ask(self) -> dict[str, IntArray]:
        """Return what each target should be run on next; empty when all is known.

        A target that waits for others' answers has an empty array. Asking again without telling
        returns the same.
        """

    def tell(self, target: str, answers: Answers) -> None:
        """Take one target's answers to all items last asked of it, in that order."""

    def predict(self, targets: Sequence[str], *, tasks: bool = True) -> Prediction:
        """Predict targets that have answered all that was asked, one row each."""


class Method(Protocol):
    """A published or user-written way from a few answers to a full score.

    A method may also have `needs` and `extras` (see `fewbench.methods.needs`); `targets_apart`,
    which is False if what it asks and says of a target depends on the session's other targets;
    `whole_budget`, which is False if it may stop before a target was run on the whole budget; and
    `beside`, names of methods that every comparison with it shows too.
    """

    @property
    def plain_sampling(self) -> bool:
        """Whether the estimate is the mean of a simple random sample (exact interval)."""

    def start(self, scores: Scores, budget: int, seed: int, targets: Sequence[str]) -> Session:
        """Open a session for targets that are not among the sources."""

    def describe(self) -> str:
        """Return the method and its settings as the command line writes them."""
