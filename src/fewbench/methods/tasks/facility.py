"""BenTo: tasks that stand for all, by facility location on their similarity (Eq. 5)."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fewbench.algorithms.choice.facility_location import Tie, coverage, facility_location
from fewbench.algorithms.choice.p_median import best_facilities
from fewbench.errors import MethodError
from fewbench.methods.tasks.chooser import Ordered
from fewbench.methods.tasks.matching import matched, mismatch
from fewbench.methods.tasks.matrix import TaskMatrix
from fewbench.methods.tasks.similarity import Distance, Scaling, Similarity, is_identity
from fewbench.methods.written import check_number, check_words

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
EXACT_LIMIT = 400


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
        if greedy.near_ties.any() and k < len(similarity) and not exact:
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
            less = f"{gap:.2%} less than the best" if gap >= 0.00005 else "as much as the best"
            notes.append(f"the greedy choice covers {less}")
            tasks, bound = _by_gain(similarity, best.chosen), best.bound
            gains = None
        if match is not None:
            check_number("match", match, 0, 1)
            tasks = matched(similarity, matrix, tasks, match)
            gains = bound = None
            if (off := abs(mismatch(matrix, tasks))) > match + 1e-9:
                notes.append(
                    f"no further exchange of a task helps: the chosen are still {off:.1%} easier "
                    f"or harder than all, not within {match:.1%}"
                )
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


def _by_gain(similarity: FloatArray, chosen: IntArray) -> IntArray:
    """Order a set as greedy choice among its members would."""
    return chosen[facility_location(similarity[:, chosen], len(chosen)).chosen]
