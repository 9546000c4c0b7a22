"""The protocols of methods.

A *static* method is a `Selector`, which chooses the items before any target is run, and a
`Predictor`, which turns a target's answers into its full score. An *adaptive* method is a `Method`
with a `Session` that chooses items as answers arrive. Users see no difference:

    session = method.start(scores, budget, seed, targets)
    while any(map(len, (asked := session.ask()).values())):    # {target: positions to run}
        for target, items in asked.items():
            session.tell(target, Answers(items, ...))
    session.predict(targets)                          # a Prediction, one row per target

`scores` holds the source models only. A session has only a target's answers. Randomness comes from
`seed` alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.algorithms.assisted import SampleErrors
from fewbench.errors import MethodError
from fewbench.methods.needs import Extra, Need
from fewbench.methods.record import Answers, Drawing, Record
from fewbench.methods.subset import Subset
from fewbench.scores import Scores

__all__ = [
    "AUTO",
    "Answers",
    "FittedPredictor",
    "Method",
    "Prediction",
    "Predictor",
    "Record",
    "Selector",
    "Session",
    "joined",
]

AUTO = "auto"
"""Not a method: the name by which `Evaluation`, `select_items` and `compare` choose one."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predicted full scores of targets.

    Attributes
    ----------
    scores : ndarray, shape (targets,)
    tasks : ndarray, shape (targets, tasks), optional
        Task scores, or None if not requested.
    items : ndarray, shape (targets, items), optional
        Expected score of each item, clipped to [0, 1], or None if the method has none. `scores` may
        be computed before clipping.
    outside : ndarray of bool, shape (targets,), optional
        Whether a target is unlike all sources, so that a method that cannot extrapolate is off.
    notes : tuple of str
        Notes for the user on all these predictions.
    spread : ndarray, shape (targets,), optional
        Standard error of each score if the method has one. Intervals are calibrated in units of
        it; without it, in units of the standard error of random sampling.
    task_spread : ndarray, shape (targets, tasks), optional
        The same of each task score.
    freedom : ndarray, shape (targets, 1 + tasks), optional
        Degrees of freedom of the standard errors, first of the full score, where they come from a
        sample with known probabilities: intervals then need no calibration. NaN elsewhere.
    samples : tuple of SampleErrors or None, one for each target
        With `freedom`: where the error of the full score comes from. By it the errors of two
        targets that ran the same items move together. Empty where the method never samples.
    is_plain : bool
        Whether the scores are means of samples in which every item had the same chance.
    ran : OfRan, optional
        What the method predicts of the items that some source ran, where the others are a random
        sample beside it.
    """

    scores: FloatArray
    tasks: FloatArray | None = None
    items: FloatArray | None = None
    outside: BoolArray | None = None
    notes: tuple[str, ...] = ()
    spread: FloatArray | None = None
    task_spread: FloatArray | None = None
    freedom: FloatArray | None = None
    samples: tuple[SampleErrors | None, ...] = ()
    is_plain: bool = False
    ran: "OfRan | None" = None


@dataclass(frozen=True, eq=False)
class OfRan:
    """A prediction of the items that some source ran.

    Attributes
    ----------
    prediction : Prediction
    scores : Scores
        The sources on these items.
    items : ndarray of int, shape (items,)
        Their positions among all items.
    """

    prediction: Prediction
    scores: Scores
    items: IntArray


def joined(parts: Sequence[Prediction], rows: Sequence[Sequence[int]]) -> Prediction:
    """Join predictions of parts of the targets; `rows` are the rows of each part in the whole."""
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate([np.asarray(row, dtype=np.intp) for row in rows]))

    def put(arrays: list[NDArray[Any] | None]) -> Any:
        present = [array for array in arrays if array is not None]
        return np.concatenate(present)[order] if len(present) == len(arrays) else None

    samples = [sample for part in parts for sample in part.samples or (None,) * len(part.scores)]
    return Prediction(
        np.concatenate([part.scores for part in parts])[order],
        put([part.tasks for part in parts]),
        put([part.items for part in parts]),
        put([part.outside for part in parts]),
        tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        put([part.spread for part in parts]),
        put([part.task_spread for part in parts]),
        _some([part.freedom for part in parts], parts, order),
        tuple(samples[at] for at in order),
        all(part.is_plain for part in parts),
        _of_ran(parts, rows),
    )


def _of_ran(parts: Sequence[Prediction], rows: Sequence[Sequence[int]]) -> OfRan | None:
    found = [part.ran for part in parts if part.ran is not None]
    if len(found) < len(parts):
        return None
    first = found[0]
    of_parts = joined([each.prediction for each in found], rows)
    return OfRan(of_parts, first.scores, first.items)


def _some(
    arrays: Sequence[FloatArray | None], parts: Sequence[Prediction], order: IntArray
) -> FloatArray | None:
    """Join arrays that some parts have; the others' rows are NaN."""
    widths = [array.shape[1] for array in arrays if array is not None]
    if not widths:
        return None
    every = [
        np.full((len(part.scores), widths[0]), np.nan) if array is None else array
        for array, part in zip(arrays, parts, strict=True)
    ]
    return np.asarray(np.concatenate(every)[order])


def full_only(freedom: FloatArray, n_tasks: int) -> FloatArray:
    """Return degrees of freedom of the full score alone, as `Prediction.freedom`."""
    nothing = np.full((len(freedom), n_tasks), np.nan)
    return np.column_stack([freedom, nothing])


class Selector(Protocol):
    """Chooses items before any target is run."""

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Choose `budget` items, with weights where the method gives them."""


class FittedPredictor(Protocol):
    """Predicts targets from their answers on the chosen items."""

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores; `answers.items` are the subset's items in order."""


class Predictor(Protocol):
    """Turns answers on a subset into full scores."""

    def fit(self, scores: Scores, subset: Subset, seed: int) -> FittedPredictor:
        """Learn from the sources."""


class Session(ABC):
    """One run of a method for some targets.

    A subclass chooses the next items and predicts from `record` alone: each target's items and
    answers. It keeps no other state of a target. So a session with an earlier record continues
    where that record stopped, and `predict` works at any time.
    """

    subset: Subset | None = None
    """The chosen items, of a method that chooses them all before any target is run."""

    def __init__(self, targets: Sequence[str], n_items: int) -> None:
        self.record = Record(targets, n_items)

    def ask(self) -> dict[str, IntArray]:
        """Return the items that each target should run next; empty when all is done.

        A target that waits for other targets' answers has an empty array. Asking again without
        telling returns the same.
        """
        record = self.record
        waiting: list[str] = []
        while True:
            ready = [name for name in record.targets if not len(record.open(name))]
            chosen = {name: items for name in ready if len(items := self.next_led(name))}
            if unasked := [name for name in ready if name not in chosen]:
                chosen |= self.choose(unasked)
            waiting = [name for name, items in chosen.items() if not len(items)]
            for name, items in chosen.items():
                if len(items) and np.isin(items, record.asked(name)).all():
                    raise MethodError(
                        f"the method chose items for {name!r} a second time",
                        hint="choose must leave out a target that needs nothing more",
                        kind="repeated",
                    )
                if len(items):
                    record.add_round(name, items)
            # Items that were answered before the method chose them are not requested again.
            answered = [name for name in chosen if len(chosen[name]) and not len(record.open(name))]
            if not answered:
                break
        asked = {name: record.open(name) for name in record.targets}
        return {name: items for name, items in asked.items() if len(items) or name in waiting}

    def tell(self, target: str, answers: Answers) -> None:
        """Take answers of one target to some or all of the items asked."""
        self.record.tell(target, answers)

    def next_led(self, target: str) -> IntArray:
        """Return the next round of the run that a target follows; empty after its end."""
        lead, rounds = self.record.lead(target), self.record.rounds(target)
        if lead is None or not lead.followed(rounds) == len(rounds) < len(lead.rounds):
            return np.empty(0, dtype=np.intp)
        return lead.rounds[len(rounds)]

    def drawn(self, target: str) -> tuple[Drawing, ...]:
        """Return how a target's items were drawn; empty for a method that draws none by itself."""
        return ()

    @abstractmethod
    def choose(self, targets: Sequence[str]) -> dict[str, IntArray]:
        """Choose the next round of targets without open items.

        Leave out a target that needs nothing more. Give an empty array to a target that must wait.
        """

    @abstractmethod
    def predict(self, targets: Sequence[str], *, tasks: bool = True) -> Prediction:
        """Predict targets from the answers so far, at least one each; one row per target."""


class Method(ABC):
    """A published or user-written method to estimate full scores from a few answers.

    The properties declare what fewbench needs from a method; a class attribute of the same name
    overrides the default.
    """

    @property
    def plain_sampling(self) -> bool:
        """Whether the estimate is the mean of a simple random sample (exact interval)."""
        return False

    @property
    def random_items(self) -> bool:
        """Whether the items are a simple random sample of all."""
        return self.plain_sampling

    @property
    def asks_once(self) -> bool:
        """Whether all items are chosen before any target is run."""
        return False

    @property
    def extends(self) -> bool:
        """Whether the first items of a larger budget are those of a smaller one."""
        return False

    @property
    def targets_apart(self) -> bool:
        """Whether the items and prediction of a target are independent of other targets."""
        return True

    @property
    def together(self) -> int:
        """How many targets, in their order, run the same items, chosen for their differences."""
        return 1

    @property
    def whole_budget(self) -> bool:
        """Whether each target runs the whole budget."""
        return True

    @property
    def costly(self) -> bool:
        """Whether learning takes long, so that the method is cross-fitted only once."""
        return False

    @property
    def takes_parts(self) -> bool:
        """Whether it learns from models that ran a part of the items; others get whole ones."""
        return False

    @property
    def reach(self) -> float:
        """How far outside the range of the sources its errors on held-out sources still apply.

        In standard deviations of the sources' abilities above 95% or below 5% of them; 0 for a
        method that cannot go beyond them.
        """
        return 0.0

    @property
    def beside(self) -> tuple[str, ...]:
        """Names of methods that each comparison with this one also shows."""
        return ()

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the method needs from the sources."""
        return ()

    @property
    def extras(self) -> tuple[Extra, ...]:
        """The optional packages that the method needs."""
        return ()

    def for_sources(self, scores: Scores) -> "Method":
        """Return this method with the rules that depend on the number of sources fixed.

        A method that is fitted again without some of the sources, to measure its errors, is then
        the method that runs with all of them. The default is for methods without such rules.
        """
        return self

    @abstractmethod
    def start(self, scores: Scores, budget: int, seed: int, targets: Sequence[str]) -> Session:
        """Open a session for targets that are not sources."""

    @abstractmethod
    def describe(self) -> str:
        """Return the method and its changed settings as the command line writes them."""
