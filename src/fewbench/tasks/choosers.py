"""Ways of choosing tasks, and their names.

BenTo chooses tasks that represent all, by facility location on their similarity (Eq. 5).
"""

from dataclasses import dataclass, is_dataclass, replace
from typing import Any, ClassVar, Protocol, cast
from urllib.parse import unquote

import numpy as np

from fewbench._names import some
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.choice.facility_location import (
    Tie,
    best_facilities,
    coverage,
    facility_location,
)
from fewbench.algorithms.choice.linear_choice import ridge_forward
from fewbench.algorithms.clustering.kmedoids import kmedoids
from fewbench.errors import MethodError
from fewbench.methods.written import Piece, check_number, check_words, split, with_settings, write
from fewbench.tasks.matrix import (
    SOURCE_SCORES,
    Distance,
    Scaling,
    Similarity,
    Space,
    TaskMatrix,
    is_near_identity,
)


@dataclass(frozen=True, eq=False)
class Ordered:
    """Chosen tasks in the order of choice.

    - `tasks`, shape (k,)
    - `nested`: Whether the first j tasks are the choice for j.
    - `gains`, shape (k,): What each task adds to the coverage if tasks are chosen by it.
    - `coverage`, `bound`: Coverage of the choice, and its upper bound over all choices.
    - `notes`: What a user should know about the choice.
    """

    tasks: IntArray
    nested: bool = True
    gains: FloatArray | None = None
    coverage: float | None = None
    bound: float | None = None
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


RESTARTS = 20


@dataclass(frozen=True)
class TaskMedoids:
    """Medoids of the rows of A, S or S' (the paper's KM-raw, KM-sim, KM-le).

    `space` is "raw", "sim" or "le"; `scaling`, `distance`, `components` and `t` are those of
    `Similarity`.
    """

    space: Space = "raw"
    scaling: Scaling = "centre"
    distance: Distance = "euclidean"
    components: int = 0
    t: float = 1.5
    compares: ClassVar[bool] = True

    @property
    def similarity(self) -> Similarity:
        """How tasks are compared."""
        check_words(self)
        return Similarity(self.scaling, self.distance, self.components, t=self.t)

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k medoids, the one with most tasks first; the choices are not nested."""
        e = self.similarity.medoid_distances(matrix.rows, self.space)
        found = kmedoids(e, k, np.random.default_rng(seed), restarts=RESTARTS if k > 1 else 1)
        numbers = np.bincount(found.labels, minlength=k)
        return Ordered(found.medoids[np.argsort(-numbers, kind="stable")], nested=False)


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


SMALLEST = 1e-15


@dataclass(frozen=True)
class FittedTasks:
    """Tasks on which source models score as on all, by least squares, added one by one.

    The comparison for BenTo: it needs source models' results, and no transferability.

    - `exchange`: Then exchange single tasks while that lowers the error.
    """

    exchange: bool = True
    compares: ClassVar[bool] = True

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k tasks without randomness; MethodError if the rows are not source scores."""
        _check_scores(matrix, "tasks are fitted to")
        w = matrix.weights
        weighted, full = matrix.rows * w[:, None], w @ matrix.rows
        chosen: list[int] = []
        for _ in range(k):
            errors = _errors(weighted, w, full, chosen)
            errors[chosen] = np.inf
            chosen.append(int(np.argmin(errors)))
        if not self.exchange:
            return Ordered(np.array(chosen, dtype=np.intp))
        return Ordered(_exchanged(weighted, w, full, chosen), nested=False)


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
        best = (cost - SMALLEST, -1, -1)
        for place in range(len(current)):
            errors = _errors(weighted, w, full, current[:place] + current[place + 1 :])
            errors[current] = np.inf
            other = int(np.argmin(errors))
            best = min(best, (float(errors[other]), place, other))
        if best[1] < 0:
            break
        current[best[1]] = best[2]
    return np.array(current, dtype=np.intp)


EXACT_LIMIT = 400


@dataclass(frozen=True)
class BentoSim:
    """Representative tasks by S: distances of what they transfer to (BenTo-sim).

    - `scaling`, `distance`: See `Similarity`.
    - `exact`: The best choice, by mixed-integer programming; up to 400 tasks.
    - `match`: Exchange tasks, at the least loss of coverage, until the chosen tasks are as easy as
      all within this share (ours; 0.01 is 1%).
    - `tie` ("first", "last"): Which of tasks with equal gain is taken; the authors' program takes
      the last.
    """

    scaling: Scaling = "centre"
    distance: Distance = "euclidean"
    exact: bool = False
    match: float | None = None
    tie: Tie = "first"
    compares: ClassVar[bool] = True

    @property
    def similarity(self) -> Similarity:
        """How tasks are compared."""
        check_words(self)
        return Similarity(self.scaling, self.distance)

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k tasks without randomness."""
        return self._by_coverage(self.similarity.sim(matrix.rows), matrix, k)

    def _by_coverage(self, s: FloatArray, matrix: TaskMatrix, k: int) -> Ordered:
        found = facility_location(s, k, tie=self.tie)
        chosen = Ordered(found.chosen, True, found.gains, found.value, None, ())
        if self.exact:
            chosen = _best(s, chosen)
        elif found.near_ties.any() and k < len(s):
            note = (
                f"at choice {int(np.argmax(found.near_ties)) + 1} another task is as good within "
                "a millionth: rounding decides which one is taken"
            )
            chosen = replace(chosen, notes=(note,))
        return chosen if self.match is None else _matched(s, matrix, chosen, self.match)


@dataclass(frozen=True)
class BentoLe(BentoSim):
    """Representative tasks by S': cosines of the Laplacian eigenmaps of S (BenTo-le).

    `components`, `self_loops` and `t` are those of `Similarity`; other settings are those of
    `BentoSim`.
    """

    components: int = 0
    self_loops: bool = False
    t: float = 1.5

    @property
    def similarity(self) -> Similarity:
        """How tasks are compared."""
        check_words(self)
        return Similarity(self.scaling, self.distance, self.components, self.self_loops, self.t)

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k tasks without randomness."""
        s = self.similarity.le(matrix.rows)
        chosen = self._by_coverage(s, matrix, k)
        if not is_near_identity(s):
            return chosen
        note = (
            "hardly any two tasks are similar in the embedding, so any choice covers about as "
            "much: use fewer components"
        )
        return replace(chosen, notes=(note, *chosen.notes))


def _best(s: FloatArray, greedy: Ordered) -> Ordered:
    """Return the best choice, with a note on the shortfall of the greedy choice."""
    if len(s) > EXACT_LIMIT:
        raise MethodError(
            f"exact choice among {len(s)} tasks is too slow",
            hint=f"use it for up to {EXACT_LIMIT} tasks; the greedy choice reaches at least 63%, "
            "and usually nearly all",
        )
    best = best_facilities(s, len(greedy.tasks), start=greedy.tasks)
    gap = 1 - coverage(s, greedy.tasks) / best.value
    less = f"{gap:.2%} less than the best" if gap >= 0.00005 else "as much as the best"
    notes = [f"the greedy choice covers {less}"]
    if best.bound > best.value * (1 + 1e-6):
        more = best.bound / best.value - 1
        notes.insert(0, f"the best choice could not be proven: coverage may be {more:.2%} higher")
    # In the order in which greedy choice would take its members.
    order = facility_location(s[:, best.chosen], len(best.chosen)).chosen
    return Ordered(best.chosen[order], False, None, best.value, best.bound, tuple(notes))


def _matched(s: FloatArray, matrix: TaskMatrix, chosen: Ordered, match: float) -> Ordered:
    """Return a choice as easy as all tasks, with a note if none was reached."""
    check_number("match", match, 0, 1)
    tasks = matched(s, matrix, chosen.tasks, match)
    notes = chosen.notes
    if (off := abs(mismatch(matrix, tasks))) > match + 1e-9:
        notes += (
            f"no further exchange of a task helps: the chosen tasks are still {off:.1%} easier or "
            f"harder than all tasks, not within {match:.1%}",
        )
    return Ordered(tasks, False, None, coverage(s, tasks), None, notes)


MOST_EXCHANGES = 100


def mismatch(matrix: TaskMatrix, chosen: IntArray) -> float:
    """Return how much easier the chosen tasks are than all, relative to the weighted mean."""
    if matrix.ease is None:
        raise MethodError(
            "the difficulty of the tasks is not known",
            hint="measure every task as a target, or compare tasks by source scores",
        )
    mean = float(np.average(matrix.ease, weights=matrix.weights))
    of_chosen = float(np.average(matrix.ease[chosen], weights=matrix.weights[chosen]))
    return (of_chosen - mean) / abs(mean) if mean else of_chosen - mean


def matched(
    similarity: FloatArray, matrix: TaskMatrix, chosen: IntArray, within: float
) -> IntArray:
    """Exchange tasks one by one until the chosen are as easy as all, within a share of the mean.

    Ours. The distance of a choice's mean from the benchmark's, for a single model, predicts the
    error of all models far better than coverage does; exchanging a task or two removes it.

    Each exchange brings the mismatch within `within` at the highest coverage or, where none does,
    leaves the smallest mismatch; ties go to the first. `similarity` has shape (tasks, tasks),
    `chosen` and the result shape (k,); a new task takes the place of the old one.
    """
    current, off = chosen, abs(mismatch(matrix, chosen))
    assert matrix.ease is not None
    mean = float(np.average(matrix.ease, weights=matrix.weights))
    unit = abs(mean) or 1.0
    worth = np.maximum(similarity, 0.0)
    scored = matrix.ease * matrix.weights
    for _ in range(MOST_EXCHANGES):
        if off <= within:
            break
        others = np.setdiff1d(np.arange(len(matrix.names)), current)
        if not len(others):
            break
        best, step = (np.inf, np.inf), current
        for place in range(len(current)):
            kept = np.delete(current, place)
            size = matrix.weights[kept].sum() + matrix.weights[others]
            total = scored[kept].sum() + scored[others]
            left = np.abs(total / size - mean) / unit
            covered = worth[:, kept].max(axis=1, initial=0.0)
            reached = np.maximum(covered[:, None], worth[:, others]).sum(axis=0)
            rank = np.lexsort((-reached, np.maximum(left, within)))[0]
            found = (max(float(left[rank]), within), -float(reached[rank]))
            if found < best:
                best, step = found, current.copy()
                step[place] = others[rank]
        if best[0] >= off:
            break
        current, off = step, abs(mismatch(matrix, step))
    return current


CHOOSERS: dict[str, type[Any]] = {
    "bento-sim": BentoSim,
    "bento-le": BentoLe,
    "tasks-medoids": TaskMedoids,
    "tasks-fit": FittedTasks,
    "tasks-ridge": RidgeTasks,
    "tasks-random": RandomTasks,
    "tasks-listed": ListedTasks,
}
_NAMES = {chooser: name for name, chooser in CHOOSERS.items()}
# Further names on the command line: the paper's, and shorter ones.
SHORT: dict[str, tuple[str, dict[str, str]]] = {
    "kmedoids": ("tasks-medoids", {}),
    "km-raw": ("tasks-medoids", {"space": "raw"}),
    "km-sim": ("tasks-medoids", {"space": "sim"}),
    "km-le": ("tasks-medoids", {"space": "le"}),
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
        )
    return cast(TaskChooser, with_settings(CHOOSERS[piece.name], piece.settings, piece.name))


def describe_chooser(chooser: TaskChooser) -> str:
    """Write a chooser as `read_chooser` reads it, with changed settings only."""
    part: Any = chooser
    name = _NAMES.get(type(part), type(part).__name__)
    return write(name, part) if is_dataclass(part) else name
