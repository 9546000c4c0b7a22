"""Stage 2 of two-stage collaborative filtering: what a target would score on unselected items."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.completion.item_neighbours import ItemNeighbours
from fewbench.algorithms.completion.transport import oversample
from fewbench.methods.adaptive.past_tasks import Mixture, Past, PastTask


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
        """Return a target's expected score of every item (see `ItemCompletion`)."""
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
