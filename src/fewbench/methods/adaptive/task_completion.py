"""Stage 2 of two-stage collaborative filtering: expected scores of items that were not run."""

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
    """Importance of items to all sources, with weight `share`, and to similar sources (Eq. 7)."""

    kind: Importance
    share: float

    def of(self, values: FloatArray, similar: IntArray, overall: FloatArray | None) -> FloatArray:
        """Return the importance of columns; `overall` is that to all sources, if known."""
        if overall is None:
            overall = importance(values, self.kind)
        if self.share == 1.0:
            return overall
        own = importance(values[similar], self.kind)
        return np.asarray(np.round(self.share * overall + (1.0 - self.share) * own, 12))


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
        """Return the n sources most similar to a target's `answers`, shape (all items,), on some
        items.
        """
        return most_similar(answers[items], self.values[:, items], n, self.priority)


def past_by_task(scores: Scores, kind: Importance, seed: int) -> Past:
    """Compute from the sources what does not depend on the target."""
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
    """Predicts a task's unselected items; the settings are those of `Collaborative`."""

    past: Past
    mixture: Mixture
    similar_sources: int
    similar_tasks: float
    most_items: int
    low_importance: float
    nearest: ItemNeighbours
    transport: bool

    def complete(self, chosen: list[IntArray], answers: FloatArray) -> FloatArray:
        """Return a target's answers, with expected scores of all other items, shape (items,).

        Expected scores are not clipped, also in means. `chosen` has the items run, per task, as
        positions within the task in the order asked. `answers`, shape (items,), is NaN elsewhere.
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
        """Return the tasks whose items are transported to a task, itself first."""
        order = np.argsort(-self.past.likeness[task], kind="stable")
        others = order[(order != task) & (self.past.likeness[task, order] >= self.similar_tasks)]
        items = len(chosen[task]) + np.cumsum([len(chosen[other]) for other in others])
        return np.append(task, others[items <= self.most_items])


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
