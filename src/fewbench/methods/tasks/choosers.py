"""Ways of choosing tasks, from a row of numbers for each.

Every one is a dataclass of its settings with `order(matrix, k, seed)`, so that it can be written
like other parts: `tasks-le(components=5)`.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from fewbench._names import some
from fewbench.algorithms.choice.facility_location import Tie, coverage, facility_location
from fewbench.algorithms.choice.p_median import best_facilities
from fewbench.algorithms.clustering.kmedoids import kmedoids
from fewbench.errors import MethodError
from fewbench.methods.tasks.matching import matched
from fewbench.methods.tasks.matrix import TaskMatrix
from fewbench.methods.tasks.similarity import Distance, Scaling, Similarity, Space, is_identity
from fewbench.methods.written import check_number, check_words

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
EXACT_LIMIT = 400
RESTARTS = 20


@dataclass(frozen=True, eq=False)
class Ordered:
    """Chosen tasks in the order of choice.

    Attributes
    ----------
    tasks : ndarray of int, shape (k,)
    nested : bool
        Whether the first j of them are what is chosen for j.
    gains : ndarray, shape (k,), optional
        What each added to the coverage, where tasks are chosen by it.
    coverage, bound : float, optional
        What the chosen tasks reach, and what no others exceed.
    notes : tuple of str
        What a user should know of the choice.
    """

    tasks: IntArray
    nested: bool = True
    gains: FloatArray | None = None
    coverage: float | None = None
    bound: float | None = None
    notes: tuple[str, ...] = ()


class TaskChooser(Protocol):
    """Chooses k tasks; `compares` is whether by how alike they are."""

    compares: ClassVar[bool]

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Return k tasks in the order of choice."""


@dataclass(frozen=True)
class _Facility:
    """Facility location on a similarity of tasks (BenTo, Eq. 5)."""

    compares: ClassVar[bool] = True

    def _choose(
        self,
        similarity: FloatArray,
        matrix: TaskMatrix,
        k: int,
        tie: Tie,
        match: float | None,
        exact: bool,
    ) -> Ordered:
        greedy = facility_location(similarity, k, tie=tie)
        notes = []
        if greedy.near_ties[:k].any() and k < len(similarity):
            first = int(np.argmax(greedy.near_ties))
            notes.append(
                f"at choice {first + 1} another task does as well within a millionth: "
                "which one is taken hangs on rounding"
            )
        tasks = greedy.chosen
        gains: FloatArray | None = greedy.gains
        bound: float | None = None
        if exact:
            if len(similarity) > EXACT_LIMIT:
                raise MethodError(
                    f"exact choice among {len(similarity)} tasks",
                    hint=f"it is for up to {EXACT_LIMIT}; the greedy choice reaches 63 % at least, "
                    "and nearly all as a rule",
                )
            best = best_facilities(similarity, k, start=tasks)
            gap = 1 - greedy.value / best.value
            if best.bound > best.value * (1 + 1e-6):
                notes.append(
                    f"the best choice could not be proven: coverage may be "
                    f"{best.bound / best.value - 1:.2%} higher"
                )
            notes.append(f"the greedy choice covers {gap:.2%} less than the best")
            tasks, bound = _by_gain(similarity, best.chosen), best.bound
            gains = None
        if match is not None:
            check_number("match", match, 0, 1)
            tasks = matched(similarity, matrix, tasks, match)
            gains = bound = None
        nested = not exact and match is None
        reached = coverage(similarity, tasks)
        return Ordered(tasks, nested, gains, reached, bound, tuple(notes))


@dataclass(frozen=True)
class BentoSim(_Facility):
    """Tasks that stand for all by S: distances of what they transfer to (BenTo-sim).

    Parameters
    ----------
    scaling, distance
        See `Similarity`.
    exact : bool
        The best choice, by mixed-integer programming; up to 400 tasks.
    match : float, optional
        Exchange tasks, at the least loss of coverage, until the chosen are as easy as all within
        this share (ours; 0.01 is 1 %).
    tie : {"first", "last"}
        Of tasks that add equally much; the authors' program takes the last.
    """

    scaling: Scaling = "centre"
    distance: Distance = "euclidean"
    exact: bool = False
    match: float | None = None
    tie: Tie = "first"
    space: ClassVar[Literal["sim"]] = "sim"

    @property
    def similarity(self) -> Similarity:
        """How tasks are compared."""
        check_words(self)
        return Similarity(self.scaling, self.distance)

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k tasks; nothing is drawn by chance."""
        s = self.similarity.sim(matrix.rows)
        return self._choose(s, matrix, k, self.tie, self.match, self.exact)


@dataclass(frozen=True)
class BentoLe(_Facility):
    """Tasks that stand for all by S': cosines of the Laplacian eigenmaps of S (BenTo-le).

    Parameters
    ----------
    components, self_loops, scaling, distance
        See `Similarity`.
    exact, match, tie
        See `BentoSim`.
    """

    components: int = 0
    self_loops: bool = False
    scaling: Scaling = "centre"
    distance: Distance = "euclidean"
    exact: bool = False
    match: float | None = None
    tie: Tie = "first"
    space: ClassVar[Literal["le"]] = "le"

    @property
    def similarity(self) -> Similarity:
        """How tasks are compared."""
        check_words(self)
        return Similarity(self.scaling, self.distance, self.components, self.self_loops)

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k tasks; nothing is drawn by chance."""
        s = self.similarity.le(matrix.rows)
        chosen = self._choose(s, matrix, k, self.tie, self.match, self.exact)
        if not is_identity(s):
            return chosen
        note = "no task is like any other in the embedding: any choice covers as much"
        return replace(chosen, notes=(note, *chosen.notes))


@dataclass(frozen=True)
class TaskMedoids:
    """Medoids of the rows of A, S or S' (the paper's KM-raw, KM-sim, KM-le).

    Parameters
    ----------
    space : {"raw", "sim", "le"}
    scaling, distance, components
        See `Similarity`.
    """

    space: Space = "raw"
    scaling: Scaling = "centre"
    distance: Distance = "euclidean"
    components: int = 0
    compares: ClassVar[bool] = True

    @property
    def similarity(self) -> Similarity:
        """How tasks are compared."""
        check_words(self)
        return Similarity(self.scaling, self.distance, self.components)

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k medoids, the one with most tasks first; other k, other medoids."""
        e = self.similarity.medoid_distances(matrix.rows, self.space)
        found = kmedoids(e, k, np.random.default_rng(seed), restarts=RESTARTS if k > 1 else 1)
        numbers = np.bincount(found.labels, minlength=k)
        return Ordered(found.medoids[np.argsort(-numbers, kind="stable")], nested=False)


@dataclass(frozen=True)
class RandomTasks:
    """Tasks drawn at random; every set of a size is equally likely."""

    compares: ClassVar[bool] = False

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Draw k tasks; a larger k extends a smaller one."""
        return Ordered(np.random.default_rng(seed).permutation(len(matrix.names))[:k])


@dataclass(frozen=True)
class ListedTasks:
    """Tasks that a user names, in their order: what a person or a language model suggests.

    Parameters
    ----------
    names : str
        Names, joined by |; signs that have a meaning there are written as in addresses: a comma
        as %2C.
    """

    names: str = ""
    compares: ClassVar[bool] = False

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Take the first k; MethodError if one is unknown, named twice, or there are fewer."""
        names = [unquote(name.strip()) for name in self.names.split("|") if name.strip()]
        if unknown := [name for name in names if name not in matrix.names]:
            raise MethodError(
                f"no such task: {some(unknown)}", hint=f"tasks are {some(matrix.names, 9)}"
            )
        if len(set(names)) < len(names):
            raise MethodError("a task is listed twice")
        if len(names) < k:
            raise MethodError(f"{len(names)} tasks are listed and {k} are to be chosen")
        return Ordered(np.array([matrix.names.index(name) for name in names[:k]], dtype=np.intp))


def _by_gain(similarity: FloatArray, chosen: IntArray) -> IntArray:
    """Order a set as greedy choice among its members would."""
    return chosen[facility_location(similarity[:, chosen], len(chosen)).chosen]


CHOOSERS: dict[str, type[Any]] = {
    "tasks-sim": BentoSim,
    "tasks-le": BentoLe,
    "tasks-medoids": TaskMedoids,
    "tasks-random": RandomTasks,
    "tasks-listed": ListedTasks,
}
