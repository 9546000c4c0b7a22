"""What two-stage collaborative filtering knows of the sources before any target is run."""

from dataclasses import dataclass

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.completion.item_neighbours import (
    Importance,
    cosine_similarities,
    importance,
    most_similar,
)
from fewbench.scores import Scores


@dataclass(frozen=True, eq=False)
class Mixture:
    """Importance of items to all sources and to those similar to the target (Eq. 7).

    Attributes
    ----------
    kind : {"variance", "balance"}
    share : float
        Alpha: the weight of all sources.
    """

    kind: Importance
    share: float

    def of(self, values: FloatArray, similar: IntArray, overall: FloatArray | None) -> FloatArray:
        """Return the importance of columns; `overall`, that to all sources, if it is known."""
        if overall is None:
            overall = importance(values, self.kind)
        if self.share == 1.0:
            return overall
        own = importance(values[similar], self.kind)
        return np.asarray(np.round(self.share * overall + (1.0 - self.share) * own, 12))


@dataclass(frozen=True, eq=False)
class PastTask:
    """One task of the past scores.

    Attributes
    ----------
    items : ndarray of int, shape (items of the task,)
        Positions in the scores.
    values : ndarray, shape (sources, items of the task)
    importance : ndarray, shape (items of the task,)
        To all sources.
    priority : ndarray of int, shape (items of the task,)
        Which of equally important items comes first, by chance.
    """

    items: IntArray
    values: FloatArray
    importance: FloatArray
    priority: IntArray

    def most_important(self, importance: FloatArray, seen: IntArray, n: int) -> IntArray:
        """Return the n most important items that were not seen."""
        order = np.lexsort((self.priority, -importance))
        unseen = np.ones(len(order), dtype=np.bool_)
        unseen[seen] = False
        return order[unseen[order]][:n]


@dataclass(frozen=True, eq=False)
class Past:
    """The past scores by task.

    Attributes
    ----------
    values : ndarray, shape (sources, items)
    tasks : list of PastTask
    likeness : ndarray, shape (tasks, tasks)
        Cosine similarity of the sources' scores on two tasks.
    binary : bool
        Whether answers are right or wrong.
    priority : ndarray of int, shape (sources,)
        Which of equally similar sources comes first, by chance.
    """

    values: FloatArray
    tasks: list[PastTask]
    likeness: FloatArray
    binary: bool
    priority: IntArray

    def similar(self, items: IntArray, answers: FloatArray, n: int) -> IntArray:
        """Return the n sources whose answers to some items are most like a target's.

        Parameters
        ----------
        items : ndarray of int
            Positions in the scores.
        answers : ndarray, shape (items of the scores,)
        n : int
        """
        return most_similar(answers[items], self.values[:, items], n, self.priority)


def past_by_task(scores: Scores, kind: Importance, seed: int) -> Past:
    """Read off the sources what does not depend on the target."""
    rng = np.random.default_rng(seed)
    priority = rng.permutation(scores.n_items)
    tasks = []
    for task in range(len(scores.tasks)):
        items = np.flatnonzero(scores.task_of == task)
        values = np.ascontiguousarray(scores.filled[:, items])
        tasks.append(PastTask(items, values, importance(values, kind), priority[items]))
    of_tasks = scores.task_scores()
    likeness = cosine_similarities(of_tasks.T, of_tasks.T)
    by_chance = rng.permutation(scores.n_models)
    return Past(scores.filled, tasks, likeness, scores.is_binary, by_chance)
