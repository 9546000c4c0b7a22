"""Choices of tasks that only BenTo's tables need, as methods of one's own.

A chooser is a class with `compares` and `order`. `select_tasks` takes it; `WithinTasks` makes a
selector of it, which `compare` takes with a predictor.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.methods.selection.random import Random
from fewbench_papers.algorithms.clustering.kmedoids import kmedoids
from fewbench_papers.bento import (
    Ordered,
    Similarity,
    TaskChooser,
    TaskMatrix,
    TaskSettings,
    WithinTasks,
    read_chooser,
)
from fewbench_papers.bento.choosers import BentoLe, BentoSim, fitted_one_by_one, mismatch
from fewbench_papers.bento.facility_location import coverage, facility_location
from fewbench_papers.bento.within_tasks import WholeTasks

RESTARTS = 20
MOST_EXCHANGES = 100


def chooser_of(method: str | TaskChooser) -> TaskChooser:
    """Return a chooser of one's own, or one by its name."""
    return read_chooser(method) if isinstance(method, str) else method


def sets_of(method: str | TaskChooser, matrix: TaskMatrix, sizes, seed: int) -> dict[int, IntArray]:
    """Return the tasks that a method chooses, by their number."""
    chooser = chooser_of(method)
    whole = chooser.order(matrix, max(sizes), seed)
    if whole.nested:
        return {k: whole.tasks[:k] for k in sizes}
    return {k: chooser.order(matrix, k, seed).tasks for k in sizes}


@dataclass(frozen=True)
class OtherDistance(Similarity):
    """Similarities by cosine or Chebyshev distances (Table 4)."""

    distance: str = "cosine"

    def distances(self, matrix: FloatArray) -> FloatArray:
        from scipy.spatial.distance import cdist

        rows = self.scaled(matrix)
        return cdist(rows, rows, self.distance)


@dataclass(frozen=True)
class BentoByDistance(BentoSim):
    """BenTo-sim by a different distance."""

    distance: str = "cosine"

    @property
    def similarity(self) -> Similarity:
        return OtherDistance(self.scaling, distance=self.distance)


@dataclass(frozen=True)
class MedoidTasks:
    """Medoids of the rows of A, S or S' (KM-raw, KM-sim and KM-le of Figure 4)."""

    space: str = "raw"
    components: int = 0
    compares: ClassVar[bool] = True

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k medoids, the one with most tasks first; the choices are not nested."""
        from scipy.spatial.distance import cdist

        similarity = Similarity(components=self.components)
        distances = similarity.distances(matrix.rows)
        if self.space != "raw":
            rows = (similarity.le if self.space == "le" else similarity.sim)(matrix.rows)
            distances = cdist(rows, rows)
        rng = np.random.default_rng(seed)
        clusters = kmedoids(distances, k, rng, restarts=RESTARTS if k > 1 else 1)
        numbers = np.bincount(clusters.labels, minlength=k)
        return Ordered(clusters.medoids[np.argsort(-numbers, kind="stable")], nested=False)


@dataclass(frozen=True)
class ForwardTasks:
    """Tasks fitted to the source models' full scores one by one, without exchanges."""

    compares: ClassVar[bool] = True

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        w = matrix.weights
        weighted, full = matrix.rows * w[:, None], w @ matrix.rows
        return Ordered(np.array(fitted_one_by_one(weighted, w, full, k), dtype=np.intp))


@dataclass(frozen=True)
class MatchedSim(BentoSim):
    """BenTo-sim's tasks, exchanged until they are as easy as all within a share (ours)."""

    within: float = 0.01

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        return as_easy(self, super().order(matrix, k, seed), matrix)


@dataclass(frozen=True)
class MatchedLe(BentoLe):
    """BenTo-le's tasks, exchanged until they are as easy as all within a share (ours)."""

    within: float = 0.01

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        return as_easy(self, super().order(matrix, k, seed), matrix)


def as_easy(chooser: MatchedSim | MatchedLe, choice: Ordered, matrix: TaskMatrix) -> Ordered:
    s, _ = chooser.similarities(matrix)
    tasks = matched(s, matrix, choice.tasks, chooser.within)
    return replace(choice, tasks=tasks, nested=False, gains=None, coverage=coverage(s, tasks))


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
    mean = float(np.average(matrix.ease, weights=matrix.weights))
    unit = abs(mean) or 1.0
    worth = np.maximum(similarity, 0.0)
    scored = matrix.ease * matrix.weights
    for _ in range(MOST_EXCHANGES):
        others = np.setdiff1d(np.arange(len(matrix.names)), current)
        if off <= within or not len(others):
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


@dataclass(frozen=True)
class ExactSim(BentoSim):
    """The tasks of highest coverage by S, and not only the greedy choice."""

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        s, _ = self.similarities(matrix)
        best = best_facilities(s, k, start=super().order(matrix, k, seed).tasks)
        # In the order in which greedy choice would take its members.
        order = facility_location(s[:, best.chosen], k).chosen
        return Ordered(best.chosen[order], nested=False, coverage=best.value)


@dataclass(frozen=True, eq=False)
class BestFacilities:
    """The best choice found: `chosen`, ascending, with its coverage `value`.

    No choice covers more than `bound`, which equals `value` up to rounding if the choice is proven
    best.
    """

    chosen: IntArray
    value: float
    bound: float


def best_facilities(
    similarity: FloatArray, k: int, *, floor: float = 0.0, start: FloatArray, seconds: float = 60.0
) -> BestFacilities:
    """Choose the k columns that cover all rows best, within `seconds` of solver time.

    This is the p-median problem. With y[j] whether j is chosen and x[i, j] whether j represents i,
    HiGHS solves for some hundred rows

        maximize sum of S[i, j] x[i, j]   with   sum_j x[i, j] <= 1,  x[i, j] <= y[j],  sum y = k.

    Only y must be integer; x then follows.

    `similarity`, `k` and `floor` are those of `facility_location`. `start`, shape (k,), is a
    choice such as the greedy one; it is returned if the solver finds no better one.

    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, hstack, vstack

    worth = np.maximum(np.asarray(similarity, dtype=np.float64) - floor, 0.0)
    rows, n = worth.shape
    # A pair is of use only where it is worth something: the others need no variable.
    of_row, of_column = np.nonzero(worth)
    pairs = len(of_row)
    chosen = np.sort(np.asarray(start, dtype=np.intp))
    value = coverage(similarity, chosen, floor)
    if not pairs:  # nobody stands for anything
        return BestFacilities(chosen, value, value)
    count = np.arange(pairs)
    ones = np.ones(pairs)
    once = hstack([csr_array((rows, n)), csr_array((ones, (of_row, count)), (rows, pairs))])
    open_only = hstack(
        [csr_array((-ones, (count, of_column)), (pairs, n)), csr_array((ones, (count, count)))]
    )
    number = csr_array(np.concatenate([np.ones(n), np.zeros(pairs)])[None])
    limits = np.concatenate([np.ones(rows), np.zeros(pairs), [k]])
    least = np.concatenate([np.full(rows + pairs, -np.inf), [k]])
    found = milp(
        -np.concatenate([np.zeros(n), worth[of_row, of_column]]),
        integrality=np.concatenate([np.ones(n), np.zeros(pairs)]),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(vstack([once, open_only, number]), least, limits),
        options={"time_limit": seconds, "mip_rel_gap": 1e-7},
    )
    if found.x is not None:
        better = np.sort(np.argsort(-found.x[:n], kind="stable")[:k])
        reached = coverage(similarity, better, floor)
        if reached > value:
            chosen, value = better, reached
    bound = float(worth.max(axis=1).sum())
    if found.mip_dual_bound is not None:
        bound = min(bound, -float(found.mip_dual_bound))
    return BestFacilities(chosen, value, max(bound, value))


def among_tasks(chooser: TaskChooser, matrix: str = "scores", share: float = 1.0) -> WithinTasks:
    """Return a chooser as a selector of items, with tasks compared by source scores or a file."""
    inside = WholeTasks() if share == 1.0 else Random()
    return WithinTasks(chooser, TaskSettings(matrix=matrix, share=share), inside)
