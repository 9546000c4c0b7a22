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

from fewbench.algorithms import ties
from fewbench.algorithms.sampling import LEAST_OF_TASK, task_sizes
from fewbench.methods.base import Method, Prediction, Session
from fewbench.methods.needs import Extra, Need
from fewbench.methods.written import check_number, check_words, write
from fewbench.scores import Scores
from fewbench.support import FloatArray, IntArray
from fewbench_papers.algorithms.completion.item_to_item import (
    ItemNeighbours,
    barycentric_weights,
    check_solver,
    column_distances,
    cosine_similarities,
    importance,
    mixed,
    most_similar,
)
from fewbench_papers.algorithms.completion.low_rank import LowRank, fit_low_rank


@dataclass(frozen=True)
class Collaborative(Method):
    """Items chosen for each target in rounds; similar items predict the others.

    The paper gives two values, 20 items per task and the three most similar items, and draws errors
    over the others (Figure 9) without numbers. It finds the errors robust to them; on MATH-hard and
    MuSR, `alpha` and `low_importance` change them. Cross-validation over sources chose the defaults
    (benchmarks/tune_collaborative.py). Randomness only breaks ties between equally important items.

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
    - `printed`: Eq. 9 to the letter: what arrives at an item counts 1 / number of unselected items,
      so that nearly every transported value is 0. By default each column of the plan has the sum 1.
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
    printed: bool = False
    minimum: int = LEAST_OF_TASK
    prediction: Literal["similarity", "low-rank"] = "similarity"
    needs: ClassVar[tuple[Need, ...]] = (
        Need("independent sources", 20, "few sources distinguish few items"),
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
"""Most similar items that predict an item (the paper's Section 4.2.2)."""


def importance_for(
    alpha: float, values: FloatArray, similar: IntArray, overall: FloatArray
) -> FloatArray:
    """Return the importance of columns to all sources and to similar ones (Eq. 7).

    `overall` is the importance to all sources.
    """
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
        values = np.asfortranarray(scores.filled[:, items])  # items are picked all the time
        tasks.append(PastTask(items, values, importance(values), priority[items]))
    of_tasks = scores.task_scores()
    likeness = cosine_similarities(of_tasks.T, of_tasks.T)
    by_chance = rng.permutation(scores.n_models)
    return SourceTasks(scores.filled, tasks, likeness, scores.is_binary, by_chance)


@dataclass(frozen=True, eq=False)
class Neighborhood:
    """What predicts a task's unselected items, given the items that a target ran.

    `rest` are the positions of the unselected items within the task. `values`, shape (sources, n),
    are the columns of the selected items, of the items made by transport, and of the unselected
    items; `importance`, shape (n,), is that to all sources. `shares`, shape (items run, rest), mix
    the items run into those made. `similarity` and `nearest` are those of `ItemNeighbours.find`.
    """

    rest: IntArray
    values: FloatArray
    importance: FloatArray
    shares: FloatArray | None
    similarity: FloatArray
    nearest: IntArray


@dataclass(frozen=True, eq=False)
class TaskCompletion:
    """Predicts the tasks' unselected items."""

    method: "Collaborative"
    past: SourceTasks

    def complete(self, chosen: list[list[IntArray]], answers: FloatArray) -> FloatArray:
        """Return targets' answers, with expected scores of all other items, (targets, items).

        Expected scores are not clipped, also in means. `chosen` has each target's items run, per
        task, as positions within the task in the order asked. `answers`, shape (targets, items),
        is NaN elsewhere.
        """
        expected = answers.copy()
        n_similar = self.method.similar_sources
        targets = [_Target(self.past, *run, n_similar) for run in zip(chosen, answers, strict=True)]
        for task, part in enumerate(self.past.tasks):
            last: tuple[bytes, Neighborhood] | None = None
            for row, target in zip(expected, targets, strict=True):
                run = target.run_on(self._like(task, target))
                if last is None or last[0] != run.tobytes():  # targets often ran the same items
                    last = run.tobytes(), self._neighborhood(task, target.chosen[task], run)
                rest = last[1].rest
                if len(rest):
                    row[part.items[rest]] = self._task(target, task, last[1], run)
        return np.asarray(expected)

    def _neighborhood(self, task: int, chosen: IntArray, run: IntArray) -> Neighborhood:
        part = self.past.tasks[task]
        rest = np.delete(np.arange(len(part.items)), chosen)
        selected, unselected = part.values[:, chosen], part.values[:, rest]
        importances = [part.importance[chosen], part.importance[rest]]
        shares = None
        if self.method.transport and len(run) and len(rest):
            columns = self.past.values[:, run]
            shares = barycentric_weights(column_distances(columns, unselected))
            if self.method.printed:
                shares /= len(rest)
            columns = mixed(columns, shares, binary=self.past.binary)
            importances.insert(1, importance(columns))
            selected = np.concatenate([selected, columns], axis=1)
        return Neighborhood(
            rest,
            np.concatenate([selected, unselected], axis=1),
            np.concatenate(importances),
            shares,
            *self._nearest.find(unselected, selected),
        )

    def _task(
        self, target: "_Target", task: int, neighborhood: Neighborhood, run: IntArray
    ) -> FloatArray:
        method, n_rest = self.method, len(neighborhood.rest)
        similar = target.similar(task)
        answers = target.answers[target.items[task]]
        if neighborhood.shares is not None:
            carried = mixed(target.answers[run], neighborhood.shares, binary=self.past.binary)
            answers = np.concatenate([answers, carried])
        # Eq. 10 compares with the items that predict: those run, and those made by transport.
        weights = importance_for(
            method.alpha, neighborhood.values, similar, neighborhood.importance
        )
        joined, of_rest = weights[:-n_rest], weights[-n_rest:]
        least = joined.mean() / method.low_importance if len(joined) else 0.0
        important = ties.at_least(of_rest, least)
        unselected = neighborhood.values[:, -n_rest:]
        expected = unselected.mean(axis=0)
        expected[important] = self._nearest.predict(
            neighborhood.similarity[important],
            neighborhood.nearest[important],
            answers,
            unselected[similar].mean(axis=0)[important],
        )
        return np.asarray(expected)

    @cached_property
    def _nearest(self) -> ItemNeighbours:
        return ItemNeighbours(NEIGHBOURS, self.method.least_similarity, self.method.quantile)

    def _like(self, task: int, target: "_Target") -> IntArray:
        """Return the tasks whose items are transported to a task, itself first."""
        others = self._similar_tasks[task]
        # The transport plan has a row for each of these items: their number, not that of tasks,
        # makes it slow.
        items = target.sizes[task] + np.cumsum(target.sizes[others])
        return np.append(task, others[items <= self.method.most_items])

    @cached_property
    def _similar_tasks(self) -> list[IntArray]:
        """The other tasks similar to each task, the nearest first (empty without transport)."""
        least = self.method.similar_tasks if self.method.transport else np.inf
        likeness = self.past.likeness
        orders = ties.argsort(-likeness)
        return [
            order[(order != task) & ties.at_least(likeness[task, order], least)]
            for task, order in enumerate(orders)
        ]


@dataclass(frozen=True, eq=False)
class _Target:
    """One target's answers and similar sources."""

    past: SourceTasks
    chosen: list[IntArray]
    answers: FloatArray
    n_similar: int

    @cached_property
    def items(self) -> list[IntArray]:
        """Positions of the items run in the scores, per task."""
        return [
            part.items[chosen] for part, chosen in zip(self.past.tasks, self.chosen, strict=True)
        ]

    @cached_property
    def sizes(self) -> IntArray:
        """Numbers of items run, per task."""
        return np.array([len(chosen) for chosen in self.chosen])

    def run_on(self, tasks: IntArray) -> IntArray:
        return np.concatenate([self.items[task] for task in tasks])

    def similar(self, task: int) -> IntArray:
        """Return the sources most similar on a task, or overall if the target ran none of it."""
        if not self.sizes[task]:
            return self._similar_overall
        return self.past.similar(self.items[task], self.answers, self.n_similar)

    @cached_property
    def _similar_overall(self) -> IntArray:
        items = np.concatenate(self.items)
        return self.past.similar(items, self.answers, self.n_similar)


class LowRankItems:
    """Completes answers by the low-rank model of the filled sources (UCBE-LRF in Table 5).

    The rank is chosen for `budget` items per target.
    """

    def __init__(self, scores: Scores, budget: int, seed: int) -> None:
        self._scores, self._budget, self._seed = scores, budget, seed

    def complete(self, chosen: list[list[IntArray]], answers: FloatArray) -> FloatArray:
        """Return unclipped expected scores of all items (see `TaskCompletion`)."""
        completed = []
        for row in answers:
            run = np.flatnonzero(~np.isnan(row))
            completed.append(self._fitted.complete(run, row[None, run], clip=False)[0])
        return np.array(completed)

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
        items = self._completion.complete(
            [self._by_task(self.record.answered(target)) for target in targets],
            np.array([self.record.scores(target) for target in targets]),
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
