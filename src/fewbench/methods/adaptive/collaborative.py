"""Two-stage collaborative filtering with models as users.

"Efficient Evaluation of Large Language Models via Collaborative Filtering" (anonymous, 2025).
Stage 1 asks items that tell the sources apart, and items that tell apart sources similar to the
target. Stage 2 predicts each other item from the answers to similar items.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.completion.item_to_item import (
    ItemNeighbours,
    check_solver,
    cosine_similarities,
    importance,
    most_similar,
    oversample,
)
from fewbench.algorithms.completion.low_rank import LowRank, fit_low_rank
from fewbench.algorithms.sampling import LEAST_OF_TASK, task_sizes
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
    of_similar = importance(values[similar])
    return np.asarray(np.round(alpha * overall + (1.0 - alpha) * of_similar, 12))


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
class SourceTasks:
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


def past_by_task(scores: Scores, seed: int) -> SourceTasks:
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
    return SourceTasks(scores.filled, tasks, likeness, scores.is_binary, by_chance)


@dataclass(frozen=True, eq=False)
class TaskCompletion:
    """Predicts a task's unselected items."""

    method: "Collaborative"
    past: SourceTasks

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
        method, part, chosen = self.method, self.past.tasks[task], target.chosen[task]
        similar = target.similar(task)
        unselected = part.values[:, rest]
        selected, answers = part.values[:, chosen], target.answers[part.items[chosen]]
        weights = [importance_for(method.alpha, selected, similar, part.importance[chosen])]
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
        # Eq. 10 compares with the items that predict: those run, and those made by transport.
        joined = np.concatenate(weights)
        least = joined.mean() / method.low_importance if len(joined) else 0.0
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
        # The transport plan has a row for each of these items: their number, not that of tasks,
        # makes it slow.
        items = len(chosen[task]) + np.cumsum([len(chosen[other]) for other in others])
        return np.append(task, others[items <= self.method.most_items])


@dataclass(frozen=True, eq=False)
class _Target:
    """One target's answers and similar sources."""

    past: SourceTasks
    chosen: list[IntArray]
    answers: FloatArray
    n_similar: int

    def run_on(self, tasks: IntArray) -> IntArray:
        parts: list[PastTask] = [self.past.tasks[task] for task in tasks]
        items = [part.items[self.chosen[t]] for part, t in zip(parts, tasks, strict=True)]
        return np.concatenate(items)

    def similar(self, task: int) -> IntArray:
        """Return the sources most similar on a task, or overall if the target ran none of it."""
        chosen = self.chosen[task]
        if not len(chosen):
            return self._similar_overall
        items = self.past.tasks[task].items[chosen]
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
