"""Sort & Search: items at equal steps of difficulty, and the place from which a target fails.

Prabhu et al. 2024, "Lifelong Benchmarks: Efficient Model Evaluation in an Era of Rapid Progress",
arXiv 2402.19472. What differs: a threshold between two items is placed midway between them, and
equally good thresholds are averaged; the authors' program places it at the last right item and
takes the first threshold. Items are sorted within each task, with items per task by its share of
the full score; the paper sorts all items together.

The threshold assumes that beyond some difficulty a model fails on nearly all items. In fact, the
best threshold disagrees with 13% of a model's answers on GSM8K and with 22% on GLUE RTE.
"""

from dataclasses import dataclass

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.sampling import allocate
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.difficulty import difficulty_index
from fewbench.methods.prediction.completed import TaskLines, lines_for
from fewbench.methods.subset import Subset
from fewbench.scores import Benchmark, Scores


@dataclass(frozen=True)
class SortedItems:
    """Each (N/n)-th item of a task in order of mean source score: the middles of n equal slices.

    Each chosen item has its slice's share of the full score as weight.
    """

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Choose the items; the seed matters only if a task's share is not a whole number."""
        sizes = np.bincount(scores.task_of)
        masses = np.bincount(scores.task_of, weights=scores.item_weights)
        counts = allocate(budget, masses, sizes, np.random.default_rng(seed))
        orders = easiest_first(scores)
        chosen: list[int] = []
        shares: list[float] = []
        for task in np.flatnonzero(counts):
            items, count = orders[task], int(counts[task])
            slice_of = np.arange(len(items)) * count // len(items)
            ends = np.searchsorted(slice_of, np.arange(count + 1))
            chosen.extend(items[(ends[:-1] + ends[1:] - 1) // 2].tolist())
            shares.extend(np.bincount(slice_of, scores.item_weights[items]).tolist())
        return Subset(items=tuple(scores.item_ids[chosen]), weights=tuple(shares))

    def describe(self) -> str:
        return "sorted"


def easiest_first(scores: Scores) -> list[IntArray]:
    """Return the positions of each task's items by mean source score; equals in table order."""
    easy = difficulty_index(scores)
    tasks = (np.flatnonzero(scores.task_of == task) for task in range(len(scores.tasks)))
    return [items[np.argsort(-easy[items], kind="stable")] for items in tasks]


@dataclass(frozen=True)
class Threshold:
    """Right on a task's easier items, wrong on its harder ones: the threshold that fits best.

    The best threshold has the least sum of absolute differences; for right and wrong answers it
    counts disagreements. A threshold between two chosen items is midway between them among all
    items. One before or after all of them leaves no item right, or none wrong. Equally good
    thresholds are averaged, and the item at the mean is partly right. As in the paper, it also
    replaces the answers to the chosen items. A task without run items follows from the others by a
    line over the sources.
    """

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedThreshold":
        """Sort the items; nothing else is learned."""
        task_of = scores.task_of[scores.positions(subset.items)]
        lines = lines_for(scores, task_of, np.ones(len(task_of)))
        return FittedThreshold(scores.benchmark, lines, easiest_first(scores))

    def describe(self) -> str:
        return "threshold"


@dataclass(frozen=True, eq=False)
class FittedThreshold:
    """Positions of each task's items, easiest first."""

    benchmark: Benchmark
    lines: TaskLines | None
    orders: list[IntArray]

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, the items' scores and, if wanted, task scores."""
        weights = self.benchmark.item_weights
        told = np.full((len(answers.scores), self.benchmark.n_items), np.nan)
        told[:, answers.items] = answers.scores
        run = np.isin(np.arange(self.benchmark.n_items), answers.items)
        items = np.full_like(told, np.nan)
        for order in self.orders:
            at = np.flatnonzero(run[order])
            if len(at):
                right = mean_threshold(told[:, order[at]], at, len(order))
                items[:, order] = _right_before(right, len(order))
        seen = np.isfinite(items[0])
        if self.lines is not None and not seen.all():
            full = items[:, seen] @ (weights[seen] / weights[seen].sum())
            filled = self.lines.fill(self._task_means(items), full)
            for task, order in enumerate(self.orders):
                if not seen[order[0]]:
                    items[:, order] = _right_before(filled[:, task] * len(order), len(order))
        return Prediction(items @ weights, self._task_means(items) if tasks else None, items)

    def _task_means(self, items: FloatArray) -> FloatArray:
        """Return the items' means by task, NaN where an item of the task is NaN."""
        tasks = range(len(self.benchmark.tasks))
        return np.column_stack([items[:, self.benchmark.task_of == t].mean(axis=1) for t in tasks])


def _right_before(right: FloatArray, size: int) -> FloatArray:
    """Return scores in order, 1 for the first `right` items, shape (targets, size)."""
    return np.clip(right[:, None] - np.arange(size), 0.0, 1.0)


def mean_threshold(values: FloatArray, at: IntArray, size: int) -> FloatArray:
    """Return the best threshold on some items as a position among all, shape (models,).

    `values`, shape (models, n), are scores in [0, 1], the easiest item first, at the increasing
    positions `at`. A threshold between two items is midway between them; one before or after all
    of them is before or after all items. Equally good thresholds are averaged.

    >>> values = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    >>> mean_threshold(values, np.array([1, 4, 7]), 9).tolist()
    [3.0, 9.0]
    """
    # Moving the threshold past an item of score a changes the disagreement by (1 - a) - a.
    error = np.zeros((values.shape[0], values.shape[1] + 1))
    np.cumsum(1.0 - 2.0 * values, axis=1, out=error[:, 1:])
    error = np.round(error + values.sum(axis=1, keepdims=True), 9)
    best = error == error.min(axis=1, keepdims=True)
    place = np.concatenate([[0.0], (at[:-1] + at[1:] + 1) / 2, [float(size)]])
    return np.asarray(best @ place / best.sum(axis=1))
