"""BenTo: tasks that stand for all, by facility location on their similarity (Eq. 5)."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.choice.facility_location import (
    Tie,
    best_facilities,
    coverage,
    facility_location,
)
from fewbench.errors import MethodError
from fewbench.methods.tasks.choosers import Ordered
from fewbench.methods.tasks.matrix import TaskMatrix
from fewbench.methods.tasks.similarity import Distance, Scaling, Similarity, is_identity
from fewbench.methods.written import check_number, check_words

EXACT_LIMIT = 400


@dataclass(frozen=True)
class BentoSim:
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
    compares: ClassVar[bool] = True

    @property
    def similarity(self) -> Similarity:
        """How tasks are compared."""
        check_words(self)
        return Similarity(self.scaling, self.distance)

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k tasks; nothing is drawn by chance."""
        return self._by_coverage(self.similarity.sim(matrix.rows), matrix, k)

    def _by_coverage(self, s: FloatArray, matrix: TaskMatrix, k: int) -> Ordered:
        found = facility_location(s, k, tie=self.tie)
        chosen = Ordered(found.chosen, True, found.gains, found.value, None, ())
        if self.exact:
            chosen = _best(s, chosen)
        elif found.near_ties.any() and k < len(s):
            note = (
                f"at choice {int(np.argmax(found.near_ties)) + 1} another task does as well within "
                "a millionth: which one is taken hangs on rounding"
            )
            chosen = replace(chosen, notes=(note,))
        return chosen if self.match is None else _matched(s, matrix, chosen, self.match)


@dataclass(frozen=True)
class BentoLe(BentoSim):
    """Tasks that stand for all by S': cosines of the Laplacian eigenmaps of S (BenTo-le).

    Parameters
    ----------
    scaling, distance, components, self_loops
        See `Similarity`.
    exact, match, tie
        See `BentoSim`.
    """

    components: int = 0
    self_loops: bool = False

    @property
    def similarity(self) -> Similarity:
        """How tasks are compared."""
        check_words(self)
        return Similarity(self.scaling, self.distance, self.components, self.self_loops)

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k tasks; nothing is drawn by chance."""
        s = self.similarity.le(matrix.rows)
        chosen = self._by_coverage(s, matrix, k)
        if not is_identity(s):
            return chosen
        note = "no task is like any other in the embedding: any choice covers as much"
        return replace(chosen, notes=(note, *chosen.notes))


def _best(s: FloatArray, greedy: Ordered) -> Ordered:
    """Return the best choice, with a note on how far the greedy one falls short of it."""
    if len(s) > EXACT_LIMIT:
        raise MethodError(
            f"exact choice among {len(s)} tasks",
            hint=f"it is for up to {EXACT_LIMIT}; the greedy choice reaches 63 % at least, and "
            "nearly all as a rule",
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
    """Return a choice as easy as all tasks, with a note if that could not be reached."""
    check_number("match", match, 0, 1)
    tasks = matched(s, matrix, chosen.tasks, match)
    notes = chosen.notes
    if (off := abs(mismatch(matrix, tasks))) > match + 1e-9:
        notes += (
            f"no further exchange of a task helps: the chosen are still {off:.1%} easier or "
            f"harder than all, not within {match:.1%}",
        )
    return Ordered(tasks, False, None, coverage(s, tasks), None, notes)


MOST_EXCHANGES = 100


def mismatch(matrix: TaskMatrix, chosen: IntArray) -> float:
    """Return how much easier the chosen are than all, as a share of the mean; questions weigh."""
    if matrix.ease is None:
        raise MethodError(
            "how easy each task is, is not known",
            hint="measure every task as a target, or compare tasks by past scores",
        )
    mean = float(np.average(matrix.ease, weights=matrix.weights))
    of_chosen = float(np.average(matrix.ease[chosen], weights=matrix.weights[chosen]))
    return (of_chosen - mean) / abs(mean) if mean else of_chosen - mean


def matched(
    similarity: FloatArray, matrix: TaskMatrix, chosen: IntArray, within: float
) -> IntArray:
    """Exchange tasks one by one until the chosen are as easy as all, within bounds.

    Ours. How far a choice's mean is from the benchmark's, for a single model, foretells the error
    of all models far better than coverage does; exchanging a task or two removes it.

    Each exchange is the one that brings the mismatch within `within` at the highest coverage; where
    none does, the one that leaves the smallest mismatch. Of exchanges that are as good, the first.

    Parameters
    ----------
    similarity : ndarray, shape (tasks, tasks)
    chosen : ndarray of int, shape (k,)
    within : float
        Largest mismatch, as a share of the mean.

    Returns
    -------
    ndarray of int, shape (k,)
        An exchanged task takes the place of the one that it replaces.
    """
    current = chosen.copy()
    off = abs(mismatch(matrix, current))
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
        best: tuple[float, float] | None = None
        step = current
        for place in range(len(current)):
            kept = np.delete(current, place)
            size = matrix.weights[kept].sum() + matrix.weights[others]
            total = scored[kept].sum() + scored[others]
            left = np.abs(total / size - mean) / unit
            covered = worth[:, kept].max(axis=1, initial=0.0)
            reached = np.maximum(covered[:, None], worth[:, others]).sum(axis=0)
            rank = np.lexsort((-reached, np.maximum(left, within)))[0]
            found = (max(float(left[rank]), within), -float(reached[rank]))
            if best is None or found < best:
                best = found
                step = current.copy()
                step[place] = others[rank]
        if best is None or best[0] >= off:
            break
        current, off = step, abs(mismatch(matrix, step))
    return current
