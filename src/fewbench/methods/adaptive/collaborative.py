"""Two-stage collaborative filtering with models as users.

"Efficient Evaluation of Large Language Models via Collaborative Filtering" (anonymous, 2025).
Stage 1 asks items that tell the sources apart, and items that tell apart sources similar to the
target. Stage 2 predicts each other item from the answers to similar items.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.completion.item_to_item import check_solver
from fewbench.algorithms.sampling import LEAST_OF_TASK, task_sizes
from fewbench.methods.adaptive.task_completion import (
    LowRankItems,
    PastTask,
    TaskCompletion,
    importance_for,
    past_by_task,
)
from fewbench.methods.base import Method, Prediction, Session
from fewbench.methods.needs import Extra, Need
from fewbench.methods.written import check_number, check_words, write
from fewbench.scores import Scores


@dataclass(frozen=True)
class Collaborative(Method):
    """Items chosen for each target in rounds; similar items predict the others.

    The paper gives no setting values and finds the errors robust to them. Cross-validation over
    sources chose the defaults (benchmarks/tune_collaborative.py). Randomness only breaks ties
    between equally important items. Where the transport plan is not unique, the solver's plan is
    used.

    - `similar_sources`: |S|: number of sources most similar to the target (cosine of the answers to
      a task's items).
    - `alpha`: Weight of an item's importance to all sources; the rest is its importance to similar
      sources (Eq. 7).
    - `rounds`: Number of rounds per target; the first round is the probe set, the same for all
      targets.
    - `similar_tasks`: tau_0: least cosine of the sources' scores on two similar tasks.
    - `most_items`: Most answered items used for transport to a task: similar tasks are added, the
      most similar first, up to this total. The task's own items always take part. More items make
      transport slow and gain little.
    - `low_importance`: tau_1: items with an importance below the mean of the selected items divided
      by tau_1 are predicted by the mean of all sources (Eq. 10).
    - `least_similarity`: tau_2: the most similar items predict an item if their mean similarity is
      at least tau_3, the larger of tau_2 and the q-quantile over the task; otherwise the mean of
      the similar sources does. The three most similar items predict.
    - `quantile`: q.
    - `transport`: Add items made by optimal transport of the answers to similar tasks (Eq. 9);
      needs the extra `transport`.
    - `minimum`: Items per task that the budget should cover; smaller tasks are run in full.
    - `prediction` ("similarity", "low-rank"): Stage 2, or a low-rank completion of all items
      (UCBE-LRF in Table 5).

    Examples
    --------
    >>> Collaborative(transport=False, alpha=0.5).describe()
    'collaborative(alpha=0.5,transport=false)'
    """

    similar_sources: int = 10
    alpha: float = 0.75
    rounds: int = 5
    similar_tasks: float = 0.95
    most_items: int = 200
    low_importance: float = 1.5
    least_similarity: float = 0.8
    quantile: float = 0.5
    transport: bool = True
    minimum: int = LEAST_OF_TASK
    prediction: Literal["similarity", "low-rank"] = "similarity"
    needs: ClassVar[tuple[Need, ...]] = (
        Need("distinct sources", 20, "few sources tell few items apart"),
        Need("tasks", 2, "on a single task plain random sampling is often closer"),
    )

    @property
    def extras(self) -> tuple[Extra, ...]:
        """The transport solver if `transport` is used."""
        if not self.transport or self.prediction != "similarity":
            return ()
        return (Extra("transport", "POT", "ot"),)

    def start(
        self, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> "ImportanceSession":
        """Share the budget among the tasks and open a session."""
        self._check()
        return ImportanceSession(self, scores, budget, seed, targets)

    def describe(self) -> str:
        """Return the method and its changed settings as the command line writes them."""
        return write("collaborative", self)

    def _check(self) -> None:
        check_words(self)
        for name in ("similar_sources", "rounds"):
            check_number(name, getattr(self, name), 1, 1_000_000)
        for name in ("alpha", "quantile"):
            check_number(name, getattr(self, name), 0, 1)
        for name in ("similar_tasks", "least_similarity"):  # cosines
            check_number(name, getattr(self, name), -1, 1)
        check_number("low_importance", self.low_importance, 0.001)
        for name in ("minimum", "most_items"):
            check_number(name, getattr(self, name), 0, 1_000_000)
        if self.transport and self.prediction == "similarity":
            check_solver()  # before the user has paid for answers


ONE_TASK = (
    "this method is made for benchmarks with several tasks; on a single task plain random sampling "
    "often has less error: compare with random and greedy-ridge"
)


class ImportanceSession(Session):
    """Asks each target in rounds, independently of the other targets.

    The first round is the probe set, the items most important to all sources. Later rounds also
    weigh the importance to sources that answered a task as the target did.
    """

    def __init__(
        self, method: Collaborative, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> None:
        super().__init__(targets, scores.n_items)
        self._method, self._scores = method, scores
        self._past = past = past_by_task(scores, seed)
        self._tasks = past.tasks
        sizes = task_sizes(budget, np.bincount(scores.task_of), method.minimum)
        self._rounds = in_rounds(sizes, method.rounds)  # items to ask, shape (rounds, tasks)
        self._completion: TaskCompletion | LowRankItems = (
            LowRankItems(scores, budget, seed)
            if method.prediction == "low-rank"
            else TaskCompletion(method, past)
        )
        self._place = np.empty(scores.n_items, dtype=np.intp)  # of each item within its task
        for task in past.tasks:
            self._place[task.items] = np.arange(len(task.items))

    def choose(self, targets: Sequence[str]) -> dict[str, IntArray]:
        """Return each target's items of the next round, task by task."""
        chosen = {}
        for target in targets:
            done = len(self.record.rounds(target))
            if done < len(self._rounds):
                asked = self._by_task(self.record.asked(target))
                answered = self._by_task(self.record.answered(target))
                scores = self.record.scores(target)
                new = [
                    part.items[self._choose(part, asked[task], answered[task], n, scores)]
                    for task, (part, n) in enumerate(
                        zip(self._tasks, self._rounds[done].tolist(), strict=True)
                    )
                ]
                chosen[target] = np.concatenate(new)
        return chosen

    def predict(self, targets: Sequence[str], *, tasks: bool = True) -> Prediction:
        """Predict all items of each target; scores are their means."""
        items = np.array(
            [
                self._completion.complete(
                    self._by_task(self.record.answered(target)), self.record.scores(target)
                )
                for target in targets
            ]
        )
        of_tasks = None
        if tasks:
            of_tasks = np.clip(self._scores.task_means(items), 0.0, 1.0)
        full = np.clip(items @ self._scores.item_weights, 0.0, 1.0)
        notes = (ONE_TASK,) if len(self._tasks) == 1 else ()
        return Prediction(full, of_tasks, np.clip(items, 0.0, 1.0), notes=notes)

    def _by_task(self, items: IntArray) -> list[IntArray]:
        """Return items per task, as positions within the task, in the given order."""
        task_of = self._scores.task_of[items]
        return [self._place[items[task_of == task]] for task in range(len(self._tasks))]

    def _choose(
        self, task: PastTask, asked: IntArray, answered: IntArray, n: int, scores: FloatArray
    ) -> IntArray:
        if not n:
            return asked[:0]
        importance = task.importance
        if len(answered):
            n_similar = self._method.similar_sources
            similar = self._past.similar(task.items[answered], scores, n_similar)
            importance = importance_for(self._method.alpha, task.values, similar, task.importance)
        return task.most_important(importance, asked, n)


def in_rounds(sizes: IntArray, rounds: int) -> IntArray:
    """Split task sizes into at most `rounds` nearly equal rounds, shape (rounds, tasks).

    Larger rounds come first; empty rounds are dropped.

    >>> in_rounds(np.array([1, 5, 6]), 3).tolist()
    [[1, 2, 2], [0, 2, 2], [0, 1, 2]]
    """
    by_then = -(-np.multiply.outer(np.arange(rounds + 1), sizes) // rounds)
    each = np.diff(by_then, axis=0)
    return np.asarray(each[each.any(axis=1)], dtype=np.intp)
