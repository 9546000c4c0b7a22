"""Plain ways of choosing tasks, and the protocol of all of them."""

from dataclasses import dataclass
from typing import ClassVar, Protocol
from urllib.parse import unquote

import numpy as np

from fewbench._names import some
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.choice.forward_selection import ridge_forward
from fewbench.algorithms.clustering.kmedoids import kmedoids
from fewbench.errors import MethodError
from fewbench.methods.tasks.matrix import PAST_SCORES, TaskMatrix
from fewbench.methods.tasks.similarity import Distance, Scaling, Similarity, Space
from fewbench.methods.written import check_words


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
            raise MethodError(
                f"{len(names)} tasks are listed and {k} are to be chosen",
                hint="list as many, by --list or in names=a|b|c",
            )
        return Ordered(np.array([matrix.names.index(name) for name in names[:k]], dtype=np.intp))


RESTARTS = 20


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
class RidgeTasks:
    """Tasks chosen forward by the held-out error of a ridge on past models' task means.

    Each step adds the task with which ridge regression from the means of the chosen tasks to the
    full score errs least on past models that are left out, one after another; models of one family
    are left out together. Predict with `task-means+ridge`: the plain mean of these tasks is not
    near the full score.
    """

    compares: ClassVar[bool] = True
    estimator: ClassVar[str] = "ridge"

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k tasks; MethodError if the rows are no past scores. Nothing is left to chance."""
        if matrix.kind != PAST_SCORES:
            raise MethodError(
                f"tasks-ridge learns from past models' scores; these are {matrix.kind}",
                hint="give scores instead of a matrix",
            )
        full = matrix.weights @ matrix.rows
        return Ordered(ridge_forward(matrix.rows.T, full, k, matrix.groups)[0])


SMALLEST = 1e-15


@dataclass(frozen=True)
class FittedTasks:
    """Tasks on which past models score as on all, by least squares; one after another.

    What BenTo is measured against: it needs past models' results, and no transferability.

    Parameters
    ----------
    exchange : bool
        Then exchange single tasks for others while that lowers the error.
    """

    exchange: bool = True
    compares: ClassVar[bool] = True

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k tasks; MethodError if the rows are no past scores. Nothing is left to chance."""
        if matrix.kind != PAST_SCORES:
            raise MethodError(
                f"tasks are fitted to past models' scores; these are {matrix.kind}",
                hint="give scores instead of a matrix",
            )
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
    """Mean squared error with each task added to those kept, shape (tasks,)."""
    total = weighted[kept].sum(axis=0) + weighted
    return np.asarray(((total / (w[kept].sum() + w)[:, None] - full) ** 2).mean(axis=1))


def _exchanged(
    weighted: FloatArray, w: FloatArray, full: FloatArray, chosen: list[int]
) -> IntArray:
    """Make the best exchange of one task for another, again and again while it helps."""
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
