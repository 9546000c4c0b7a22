"""Ways of choosing tasks, and their names.

BenTo chooses tasks that represent all, by facility location on their similarity (Eq. 5).
"""

from dataclasses import dataclass, is_dataclass
from typing import Any, ClassVar, Protocol, cast
from urllib.parse import unquote

import numpy as np

from fewbench.algorithms import ties
from fewbench.errors import MethodError
from fewbench.methods.written import Piece, check_words, split, with_settings, write
from fewbench.support import FloatArray, IntArray, some
from fewbench_papers.bento.facility_location import Tie, facility_location
from fewbench_papers.bento.matrix import (
    SOURCE_SCORES,
    Scaling,
    Similarity,
    TaskMatrix,
    is_near_identity,
)
from fewbench_papers.bento.ridge_forward import ridge_forward


@dataclass(frozen=True, eq=False)
class Ordered:
    """Chosen tasks in the order of choice.

    - `tasks`, shape (k,)
    - `nested`: Whether the first j tasks are the choice for j.
    - `gains`, shape (k,): What each task adds to the coverage if tasks are chosen by it.
    - `coverage`: Coverage of the choice.
    - `notes`: Notes for the user on the choice.
    """

    tasks: IntArray
    nested: bool = True
    gains: FloatArray | None = None
    coverage: float | None = None
    notes: tuple[str, ...] = ()


class TaskChooser(Protocol):
    """Chooses k tasks; `compares` tells whether by their similarity."""

    compares: ClassVar[bool]

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Return k tasks in the order of choice."""


@dataclass(frozen=True)
class RandomTasks:
    """Random tasks; each set of a size is equally likely."""

    compares: ClassVar[bool] = False

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Draw k tasks; a larger k extends a smaller one."""
        return Ordered(np.random.default_rng(seed).permutation(len(matrix.names))[:k])


@dataclass(frozen=True)
class ListedTasks:
    """Tasks that a user names, in order.

    - `names`: Names joined by |, with special characters percent-encoded: a comma is %2C.
    """

    names: str = ""
    compares: ClassVar[bool] = False

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Take the first k; MethodError if a task is unknown or repeated, or there are fewer."""
        names = [unquote(name.strip()) for name in self.names.split("|") if name.strip()]
        if unknown := [name for name in names if name not in matrix.names]:
            raise MethodError(
                f"no such task: {some(unknown)}", hint=f"tasks are {some(matrix.names, 9)}"
            )
        if len(set(names)) < len(names):
            raise MethodError("a task is listed twice")
        if len(names) < k:
            raise MethodError(
                f"{len(names)} tasks are listed, but {k} are needed",
                hint="list more tasks, by --list or in names=a|b|c",
            )
        return Ordered(np.array([matrix.names.index(name) for name in names[:k]], dtype=np.intp))


@dataclass(frozen=True)
class RidgeTasks:
    """Tasks added one by one for the held-out error of a ridge on source models' task means.

    Each step adds the task with the least error of ridge regression, from the means of the chosen
    tasks to the full score, on held-out source models; a family is held out together. Predict with
    `task-means+ridge`: the plain mean of these tasks is not near the full score.
    """

    compares: ClassVar[bool] = True
    estimator: ClassVar[str] = "ridge"

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k tasks without randomness; MethodError if the rows are not source scores."""
        _check_scores(matrix, "tasks-ridge learns from")
        full = matrix.weights @ matrix.rows
        return Ordered(ridge_forward(matrix.rows.T, full, k, matrix.groups)[0])


def _check_scores(matrix: TaskMatrix, what: str) -> None:
    if matrix.kind != SOURCE_SCORES:
        raise MethodError(
            f"{what} scores of source models; these are {matrix.kind}",
            hint="give scores instead of a matrix",
        )


LEAST_ERROR = 1e-6
"""Squared errors are equal if they differ by a billionth of this: scores are known to 1e-8."""


@dataclass(frozen=True)
class FittedTasks:
    """Tasks on which source models score as on all, by least squares, added one by one.

    Then single tasks are exchanged while that lowers the error. The comparison for BenTo: it needs
    source models' results, and no transferability.
    """

    compares: ClassVar[bool] = True

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k tasks without randomness; MethodError if the rows are not source scores."""
        _check_scores(matrix, "tasks are fitted to")
        w = matrix.weights
        weighted, full = matrix.rows * w[:, None], w @ matrix.rows
        chosen = fitted_one_by_one(weighted, w, full, k)
        return Ordered(_exchanged(weighted, w, full, chosen), nested=False)


def fitted_one_by_one(weighted: FloatArray, w: FloatArray, full: FloatArray, k: int) -> list[int]:
    """Return k tasks, each the one whose addition leaves the least mean squared error.

    `weighted`, shape (tasks, models), are task scores times the tasks' weights `w`.
    """
    chosen: list[int] = []
    for _ in range(k):
        errors = _errors(weighted, w, full, chosen)
        errors[chosen] = np.inf
        chosen.append(int(ties.argmin(errors, scale=LEAST_ERROR)))
    return chosen


def _errors(weighted: FloatArray, w: FloatArray, full: FloatArray, kept: list[int]) -> FloatArray:
    """Return the mean squared error with each task added to those kept, shape (tasks,)."""
    total = weighted[kept].sum(axis=0) + weighted
    return np.asarray(((total / (w[kept].sum() + w)[:, None] - full) ** 2).mean(axis=1))


def _exchanged(
    weighted: FloatArray, w: FloatArray, full: FloatArray, chosen: list[int]
) -> IntArray:
    """Make the best exchange of one task for another, while it helps."""
    current = list(chosen)
    while len(current) < len(w):
        cost = float(_errors(weighted, w, full, current[:-1])[current[-1]])
        errors = np.array(
            [
                _errors(weighted, w, full, current[:place] + current[place + 1 :])
                for place in range(len(current))
            ]
        )
        errors[:, current] = np.inf
        place, other = divmod(int(ties.argmin(errors, scale=LEAST_ERROR)), len(w))
        if ties.at_least(errors[place, other], cost, scale=LEAST_ERROR):
            break
        current[place] = other
    return np.array(current, dtype=np.intp)


@dataclass(frozen=True)
class BentoSim:
    """Representative tasks by S: distances of what they transfer to (BenTo-sim).

    - `scaling`: See `Similarity`.
    - `tie` ("first", "last"): Which of tasks with equal gain is taken; the authors' program takes
      the last.
    """

    scaling: Scaling = "centre"
    tie: Tie = "first"
    compares: ClassVar[bool] = True

    @property
    def similarity(self) -> Similarity:
        """How tasks are compared."""
        check_words(self)
        return Similarity(self.scaling)

    def similarities(self, matrix: TaskMatrix) -> tuple[FloatArray, float]:
        """Return S, and the similarity of a task that no chosen task represents."""
        return self.similarity.sim(matrix.rows), 0.0

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k tasks without randomness."""
        s, floor = self.similarities(matrix)
        choice = facility_location(s, k, floor=floor, tie=self.tie)
        notes = self.notes(s)
        if choice.near_ties.any() and k < len(s):
            notes += (
                f"at choice {int(np.argmax(choice.near_ties)) + 1} a second task is as good "
                "within a millionth: the choice between them is arbitrary",
            )
        gains = choice.gains + floor * len(s) * (np.arange(k) == 0)  # Eq. 5 has no floor
        return Ordered(choice.chosen, True, gains, float(gains.sum()), notes)

    def notes(self, s: FloatArray) -> tuple[str, ...]:
        """Return notes for the user on the similarities."""
        return ()


@dataclass(frozen=True)
class BentoLe(BentoSim):
    """Representative tasks by S': cosines of the Laplacian eigenmaps of S (BenTo-le).

    As the authors' program does and Eq. 4-5 do not, a task's similarity with itself is left out of
    the Laplacian, and negative cosines count as 0 in the coverage.

    - `components`, `t`: See `Similarity`.
    - `printed`: Choose by Eq. 4-5 to the letter instead.
    """

    components: int = 0
    printed: bool = False
    t: float = 1.5

    @property
    def similarity(self) -> Similarity:
        """How tasks are compared."""
        check_words(self)
        return Similarity(self.scaling, self.components, self.printed, self.t)

    def similarities(self, matrix: TaskMatrix) -> tuple[FloatArray, float]:
        """Return S', and the similarity of a task that no chosen task represents."""
        return self.similarity.le(matrix.rows), -1.0 if self.printed else 0.0

    def notes(self, s: FloatArray) -> tuple[str, ...]:
        """Return a note if hardly any two tasks are similar."""
        if not is_near_identity(s):
            return ()
        return (
            "hardly any two tasks are similar in the embedding, so any choice covers about as "
            "much: use fewer components",
        )


def mismatch(matrix: TaskMatrix, chosen: IntArray) -> float:
    """Return how much easier the chosen tasks are than all, relative to the weighted mean."""
    if matrix.ease is None:
        raise MethodError(
            "the difficulty of the tasks is not known",
            hint="measure every task as a target, or compare tasks by source scores",
            kind="missing",
        )
    mean = float(np.average(matrix.ease, weights=matrix.weights))
    of_chosen = float(np.average(matrix.ease[chosen], weights=matrix.weights[chosen]))
    return (of_chosen - mean) / abs(mean) if mean else of_chosen - mean


CHOOSERS: dict[str, type[Any]] = {
    "bento-sim": BentoSim,
    "bento-le": BentoLe,
    "tasks-fit": FittedTasks,
    "tasks-ridge": RidgeTasks,
    "tasks-random": RandomTasks,
    "tasks-listed": ListedTasks,
}
_NAMES = {chooser: name for name, chooser in CHOOSERS.items()}
# Further names on the command line: the paper's, and shorter ones.
SHORT: dict[str, tuple[str, dict[str, str]]] = {
    "bm25": ("bento-sim", {}),
    "bm25-sim": ("bento-sim", {}),
    "bm25-le": ("bento-le", {}),
    "fit": ("tasks-fit", {}),
    "ridge": ("tasks-ridge", {}),
    "random": ("tasks-random", {}),
    "list": ("tasks-listed", {}),
}


def read_chooser(text: str) -> TaskChooser:
    """Make a chooser from a name with settings in parentheses; MethodError if there is none.

    >>> read_chooser("bento-le(components=5)").components
    5
    """
    pieces = split(text)
    if len(pieces) > 1:
        raise MethodError(f"{text!r} has several parts", hint="give one task chooser")
    piece = pieces[0]
    if piece.name in SHORT:
        name, settings = SHORT[piece.name]
        piece = Piece(name, settings | piece.settings)
    return make_chooser(piece)


def make_chooser(piece: Piece) -> TaskChooser:
    """Make a chooser from a piece."""
    if piece.name not in CHOOSERS:
        raise MethodError(
            f"unknown task chooser {piece.name!r}",
            hint=f"use {some([*CHOOSERS, *SHORT], 20)}",
            kind="unknown",
        )
    return cast(TaskChooser, with_settings(CHOOSERS[piece.name], piece.settings, piece.name))


def describe_chooser(chooser: TaskChooser) -> str:
    """Write a chooser as `read_chooser` reads it, with changed settings only."""
    part: Any = chooser
    name = _NAMES.get(type(part), type(part).__name__)
    return write(name, part) if is_dataclass(part) else name
