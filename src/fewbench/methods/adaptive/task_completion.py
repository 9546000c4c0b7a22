"""Stage 2 of two-stage collaborative filtering: expected scores of items that were not run."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.completion.item_to_item import (
    ItemNeighbours,
    cosine_similarities,
    importance,
    most_similar,
    oversample,
)
from fewbench.algorithms.completion.low_rank import LowRank, fit_low_rank
from fewbench.scores import Scores

if TYPE_CHECKING:
    from fewbench.methods.adaptive.collaborative import Collaborative


NEIGHBOURS = 3
"""Most similar items that predict an item; the paper does not give their number."""


def importance_for(
    alpha: float, values: FloatArray, similar: IntArray, overall: FloatArray | None
) -> FloatArray:
    """Return the importance of columns to all sources and to similar ones (Eq. 7).

    `overall` is the importance to all sources if known.
    """
    if overall is None:
        overall = importance(values)
    if alpha == 1.0:
        return overall
    own = importance(values[similar])
    return np.asarray(np.round(alpha * overall + (1.0 - alpha) * own, 12))


@dataclass(frozen=True, eq=False)
class PastTask:
    """One task of the source scores.

    `items` are positions in the scores, `values` has shape (sources, items of the task), and
    `importance` is that to all sources. `priority` breaks ties between equally important items at
    random.
    """

    items: IntArray
    values: FloatArray
    importance: FloatArray
    priority: IntArray

    def most_important(self, importance: FloatArray, seen: IntArray, n: int) -> IntArray:
        """Return the n most important items that are not in `seen`."""
        order = np.lexsort((self.priority, -importance))
        unseen = np.ones(len(order), dtype=np.bool_)
        unseen[seen] = False
        return order[unseen[order]][:n]


@dataclass(frozen=True, eq=False)
class Past:
    """The source scores by task.

    `values` has shape (sources, items); `likeness`, shape (tasks, tasks), is the cosine similarity
    of the sources' scores on two tasks; `binary` is whether answers are right or wrong. `priority`
    breaks ties between equally similar sources at random.
    """

    values: FloatArray
    tasks: list[PastTask]
    likeness: FloatArray
    binary: bool
    priority: IntArray

    def similar(self, items: IntArray, answers: FloatArray, n: int) -> IntArray:
        """Return the n sources most similar on `items` to a target's `answers` to all items."""
        return most_similar(answers[items], self.values[:, items], n, self.priority)


def past_by_task(scores: Scores, seed: int) -> Past:
    """Compute from the sources what does not depend on the target."""
    rng = np.random.default_rng(seed)
    priority = rng.permutation(scores.n_items)
    tasks = []
    for task in range(len(scores.tasks)):
        items = np.flatnonzero(scores.task_of == task)
        values = np.ascontiguousarray(scores.filled[:, items])
        tasks.append(PastTask(items, values, importance(values), priority[items]))
    of_tasks = scores.task_scores()
    likeness = cosine_similarities(of_tasks.T, of_tasks.T)
    by_chance = rng.permutation(scores.n_models)
    return Past(scores.filled, tasks, likeness, scores.is_binary, by_chance)


@dataclass(frozen=True, eq=False)
class TaskCompletion:
    """Predicts a task's unselected items."""

    method: "Collaborative"
    past: Past

    def complete(self, chosen: list[IntArray], answers: FloatArray) -> FloatArray:
        """Return a target's answers, with expected scores of all other items, shape (items,).

        Expected scores are not clipped, also in means. `chosen` has the items run, per task, as
        positions within the task in the order asked. `answers`, shape (items,), is NaN elsewhere.
        """
        expected = answers.copy()
        target = _Target(self.past, chosen, answers, self.method.similar_sources)
        for task, part in enumerate(self.past.tasks):
            rest = np.setdiff1d(np.arange(len(part.items)), chosen[task])
            if len(rest):
                expected[part.items[rest]] = self._task(target, task, rest)
        return np.asarray(expected)

    def _task(self, target: "_Target", task: int, rest: IntArray) -> FloatArray:
        method, part, own = self.method, self.past.tasks[task], target.chosen[task]
        similar = target.similar(task)
        unselected = part.values[:, rest]
        selected, answers = part.values[:, own], target.answers[part.items[own]]
        weights = [importance_for(method.alpha, selected, similar, part.importance[own])]
        if method.transport:
            items = target.run_on(self._like(task, target.chosen))
            if len(items):
                columns, carried = oversample(
                    self.past.values[:, items],
                    unselected,
                    target.answers[items],
                    binary=self.past.binary,
                )
                weights.append(importance_for(method.alpha, columns, similar, None))
                selected = np.concatenate([selected, columns], axis=1)
                answers = np.concatenate([answers, carried])
        known = np.concatenate(weights)
        least = known.mean() / method.low_importance if len(known) else 0.0
        of_rest = importance_for(method.alpha, unselected, similar, part.importance[rest])
        unimportant = of_rest < least
        expected = unselected.mean(axis=0)
        others = unselected[:, ~unimportant]
        fallback = others[similar].mean(axis=0)
        nearest = ItemNeighbours(NEIGHBOURS, method.least_similarity, method.quantile)
        expected[~unimportant] = nearest.predict(others, selected, answers, fallback)
        return np.asarray(expected)

    def _like(self, task: int, chosen: list[IntArray]) -> IntArray:
        """Return the tasks whose items are transported to a task, itself first."""
        likeness = self.past.likeness[task]
        order = np.argsort(-likeness, kind="stable")
        others = order[(order != task) & (likeness[order] >= self.method.similar_tasks)]
        items = len(chosen[task]) + np.cumsum([len(chosen[other]) for other in others])
        return np.append(task, others[items <= self.method.most_items])


@dataclass(frozen=True, eq=False)
class _Target:
    """One target's answers and similar sources."""

    past: Past
    chosen: list[IntArray]
    answers: FloatArray
    n_similar: int

    def run_on(self, tasks: IntArray) -> IntArray:
        parts: list[PastTask] = [self.past.tasks[task] for task in tasks]
        items = [part.items[self.chosen[t]] for part, t in zip(parts, tasks, strict=True)]
        return np.concatenate(items)

    def similar(self, task: int) -> IntArray:
        """Return the sources most similar on a task, or overall if the target ran none of it."""
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
    """Completes answers by the low-rank model of the filled sources (UCBE-LRF in Table 5).

    The rank is chosen for `budget` items per target.
    """

    def __init__(self, scores: Scores, budget: int, seed: int) -> None:
        self._scores, self._budget, self._seed = scores, budget, seed

    def complete(self, chosen: list[IntArray], answers: FloatArray) -> FloatArray:
        """Return unclipped expected scores of all items (see `TaskCompletion`)."""
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
