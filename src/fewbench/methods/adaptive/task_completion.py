"""Expected scores of the items not run, as two-stage collaborative filtering has them (stage 2)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.completion.item_to_item import (
    Importance,
    ItemNeighbours,
    cosine_similarities,
    importance,
    most_similar,
    oversample,
)
from fewbench.algorithms.completion.low_rank import LowRank, fit_low_rank
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


@dataclass(frozen=True, eq=False)
class TaskCompletion:
    """How a task's unselected items are predicted.

    Attributes
    ----------
    past : Past
    mixture : Mixture
    similar_sources : int
    similar_tasks : float
        Least cosine similarity of tasks whose items are transported to each other.
    most_items : int
        Similar tasks are taken, the most similar first, while their answered items and the task's
        own are no more than this.
    low_importance : float
        Items are unimportant below the mean importance of the selected over this.
    nearest : ItemNeighbours
    transport : bool
    """

    past: Past
    mixture: Mixture
    similar_sources: int
    similar_tasks: float
    most_items: int
    low_importance: float
    nearest: ItemNeighbours
    transport: bool

    def complete(self, chosen: list[IntArray], answers: FloatArray) -> FloatArray:
        """Return a target's expected score of every item, answers where there are any.

        What comes out below 0 or above 1 counts so in the means.

        Parameters
        ----------
        chosen : list of ndarray of int, one a task
            The items run, as positions within their task, in the order they were asked.
        answers : ndarray, shape (items,)
            The target's scores there; NaN elsewhere.
        """
        expected = answers.copy()
        target = _Target(self.past, chosen, answers, self.similar_sources)
        for task, part in enumerate(self.past.tasks):
            rest = np.setdiff1d(np.arange(len(part.items)), chosen[task])
            if len(rest):
                expected[part.items[rest]] = self._task(target, task, rest)
        return np.asarray(expected)

    def _task(self, target: "_Target", task: int, rest: IntArray) -> FloatArray:
        part, own = self.past.tasks[task], target.chosen[task]
        similar = target.similar(task)
        unselected = part.values[:, rest]
        selected, answers = part.values[:, own], target.answers[part.items[own]]
        weights = [self.mixture.of(selected, similar, part.importance[own])]
        if self.transport:
            items = target.run_on(self._like(task, target.chosen))
            if len(items):
                columns, carried = oversample(
                    self.past.values[:, items],
                    unselected,
                    target.answers[items],
                    binary=self.past.binary,
                )
                weights.append(self.mixture.of(columns, similar, None))
                selected = np.concatenate([selected, columns], axis=1)
                answers = np.concatenate([answers, carried])
        importance = self.mixture.of(unselected, similar, part.importance[rest])
        known = np.concatenate(weights)
        least = known.mean() / self.low_importance if len(known) else 0.0
        unimportant = importance < least
        expected = unselected.mean(axis=0)
        others = unselected[:, ~unimportant]
        fallback = others[similar].mean(axis=0)
        expected[~unimportant] = self.nearest.predict(others, selected, answers, fallback)
        return np.asarray(expected)

    def _like(self, task: int, chosen: list[IntArray]) -> IntArray:
        """Return the tasks from which a task's items are made, itself first."""
        order = np.argsort(-self.past.likeness[task], kind="stable")
        others = order[(order != task) & (self.past.likeness[task, order] >= self.similar_tasks)]
        items = len(chosen[task]) + np.cumsum([len(chosen[other]) for other in others])
        return np.append(task, others[items <= self.most_items])


@dataclass(frozen=True, eq=False)
class _Target:
    """One target's answers, and the sources like it."""

    past: Past
    chosen: list[IntArray]
    answers: FloatArray
    n_similar: int

    def run_on(self, tasks: IntArray) -> IntArray:
        """Return the positions of the items of some tasks that the target was run on."""
        parts: list[PastTask] = [self.past.tasks[task] for task in tasks]
        items = [part.items[self.chosen[t]] for part, t in zip(parts, tasks, strict=True)]
        return np.concatenate(items)

    def similar(self, task: int) -> IntArray:
        """Return the sources most like the target on a task; overall where it ran none of it."""
        own = self.chosen[task]
        if not len(own):
            return self._similar_overall
        items = self.past.tasks[task].items[own]
        return self.past.similar(items, self.answers, self.n_similar)

    @cached_property
    def _similar_overall(self) -> IntArray:
        items = self.run_on(np.arange(len(self.chosen)))
        return self.past.similar(items, self.answers, self.n_similar)


class LowRankItems:
    """Completes a target's answers by the low-rank model of the sources (UCBE-LRF in Table 5).

    Parameters
    ----------
    scores : Scores
        Missing cells count as filled.
    budget : int
        How many items a target is run on; the rank is chosen for it.
    seed : int
    """

    def __init__(self, scores: Scores, budget: int, seed: int) -> None:
        self._scores, self._budget, self._seed = scores, budget, seed

    def complete(self, chosen: list[IntArray], answers: FloatArray) -> FloatArray:
        """Return a target's expected score of every item, as it comes (see `TaskCompletion`)."""
        run = np.flatnonzero(~np.isnan(answers))
        return np.asarray(self._fitted.complete(run, answers[None, run], clip=False)[0])

    @cached_property
    def _fitted(self) -> LowRank:
        return fit_low_rank(
            self._scores.filled,
            observed=self._budget,
            weights=self._scores.item_weights,
            rng=np.random.default_rng(self._seed),
        )
