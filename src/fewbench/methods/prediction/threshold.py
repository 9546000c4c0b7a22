"""Search: find the place in the order of difficulty from which a target fails.

The second half of Sort & Search, Prabhu et al. 2024, arXiv 2402.19472.
"""

from dataclasses import dataclass

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.completion.staircase import mean_threshold
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.confidence import PROBABILITIES
from fewbench.methods.needs import Need
from fewbench.methods.prediction.completed import TaskLines, lines_for
from fewbench.methods.selection.sorted_items import Order, groups, sorted_groups
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_words
from fewbench.scores import Benchmark, Scores


@dataclass(frozen=True)
class Threshold:
    """Right on easier items, wrong on harder ones: the threshold that fits the answers best.

    The best threshold has the least sum of absolute differences; for right and wrong answers it
    counts disagreements. A threshold between two chosen items is midway between them among all
    items. One before or after all of them leaves no item right, or none wrong. Equally good
    thresholds are averaged, and the item at the mean is partly right.

    Real targets get some hard items right and easy ones wrong, and more items do not help (GSM8K,
    100 items: an error of 6.0 percentage points; plain sampling 2.6). The sources give the order,
    so any selector works, with any setting of its own.

    - `by_task`: One threshold per task; otherwise one over all items, as in the paper. A task
      without run items follows from the others by a line over the sources.
    - `order` ("sum", "confidence", "recursive"): As in the selector `sorted`.
    - `keep`: Keep the answers on the chosen items; otherwise the threshold also replaces these, as
      in the paper.
    """

    by_task: bool = True
    order: Order = "sum"
    keep: bool = True

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the order needs."""
        return (PROBABILITIES,) if self.order == "confidence" else ()

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedThreshold":
        """Sort the items; nothing else is learned."""
        check_words(self)
        group_of = groups(scores, by_task=self.by_task)
        task_of = scores.task_of[scores.positions(subset.items)]
        lines = lines_for(scores, task_of, np.ones(len(task_of)))
        orders = sorted_groups(scores, group_of, self.order)
        return FittedThreshold(scores.benchmark, lines, orders, self.keep)


@dataclass(frozen=True, eq=False)
class FittedThreshold:
    """Positions of each group's items, easiest first."""

    benchmark: Benchmark
    lines: TaskLines | None
    orders: list[IntArray]
    keep: bool

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, the items' scores and, if wanted, task scores."""
        weights = self.benchmark.item_weights
        items = np.full((len(answers.scores), self.benchmark.n_items), np.nan)
        run = np.zeros(self.benchmark.n_items, dtype=np.bool_)
        run[answers.items] = True
        items[:, answers.items] = answers.scores
        seen = np.zeros(self.benchmark.n_items, dtype=np.bool_)
        for order in self.orders:
            at = np.flatnonzero(run[order])
            if len(at):
                seen[order] = True
                right = mean_threshold(items[:, order[at]], at, len(order))
                rest = ~run[order] if self.keep else np.ones(len(order), dtype=np.bool_)
                items[:, order[rest]] = _right_before(right, len(order))[:, rest]
        if self.lines is not None and not seen.all():
            full = items[:, seen] @ (weights[seen] / weights[seen].sum())
            filled = self.lines.fill(self._task_means(items), full)
            for task, order in enumerate(self.orders):  # groups are tasks, or all were seen
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
