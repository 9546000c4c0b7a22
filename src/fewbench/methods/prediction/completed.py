"""What predictors share: expected scores of all items and their averages, and lines for tasks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.methods.base import Answers, Prediction
from fewbench.scores import Benchmark, Scores


def completed(
    benchmark: Benchmark, items: FloatArray, answers: Answers, *, tasks: bool = True
) -> Prediction:
    """Insert the answers into expected `items`, shape (targets, items), and average.

    Averages use unclipped items; the returned scores, tasks and items are clipped to [0, 1].

    >>> from fewbench.scores import from_arrays
    >>> scores = from_arrays([[1, 0, 1], [1, 0, 0]], models=["a", "b"])
    >>> answers = Answers(np.array([0]), np.array([[1.0]]))
    >>> said = completed(scores.benchmark, np.array([[0.2, -0.5, 0.7]]), answers)
    >>> said.scores.round(3).tolist(), said.items.tolist()
    ([0.4], [[1.0, 0.0, 0.7]])
    """
    items[:, answers.items] = answers.scores
    full = np.clip(items @ benchmark.item_weights, 0.0, 1.0)
    of_tasks = np.clip(benchmark.task_means(items), 0.0, 1.0) if tasks else None
    return Prediction(full, of_tasks, np.clip(items, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class FittedItems:
    """Predicts all items: `expected` maps answers to shape (targets, items)."""

    benchmark: Benchmark
    expected: Callable[[Answers], FloatArray]
    notes: tuple[str, ...] = ()

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, the items' expected scores and, if wanted, task scores."""
        whole = completed(self.benchmark, self.expected(answers), answers, tasks=tasks)
        return replace(whole, notes=self.notes)


@dataclass(frozen=True, eq=False)
class SeparateFits:
    """Full and task scores of the sources, learned separately when first needed.

    `fit` learns outputs, shape (sources, outputs), and returns a function of targets' features.
    """

    sources: Scores
    fit: Callable[[FloatArray], Callable[[FloatArray], FloatArray]]

    @cached_property
    def _full(self) -> Callable[[FloatArray], FloatArray]:
        return self.fit(self.sources.full_scores()[:, None])

    @cached_property
    def _tasks(self) -> Callable[[FloatArray], FloatArray]:
        return self.fit(self.sources.task_scores())

    def predict(self, x: FloatArray, *, tasks: bool) -> Prediction:
        """Predict full scores and, if wanted, task scores, both in [0, 1]."""
        full = np.clip(self._full(x)[:, 0], 0.0, 1.0)
        if not tasks:
            return Prediction(full)
        if len(self.sources.tasks) == 1:
            return Prediction(full, full[:, None])
        return Prediction(full, np.clip(self._tasks(x), 0.0, 1.0))


def task_members(task_of: IntArray, n_tasks: int, weights: FloatArray) -> FloatArray:
    """Return each item's weight in its task's column, shape (n, tasks), and 0 in the others."""
    return np.asarray(np.equal.outer(task_of, np.arange(n_tasks)) * weights[:, None])


@dataclass(frozen=True, eq=False)
class TaskLines:
    """The line through the sources' (full score, task score) pairs, for each task.

    `mean` is the mean full score; `means` and `slopes`, shape (tasks,), are the mean task scores
    and their change with the full score.
    """

    mean: float
    means: FloatArray
    slopes: FloatArray

    def fill(self, tasks: FloatArray, full: FloatArray) -> FloatArray:
        """Replace NaN in task scores, shape (targets, tasks), by the line, clipped to [0, 1]."""
        line = self.means + np.multiply.outer(full - self.mean, self.slopes)
        return np.where(np.isnan(tasks), np.clip(line, 0.0, 1.0), tasks)


def task_lines(scores: Scores) -> TaskLines:
    """Fit the lines to the sources; without any, a task's score is the full score."""
    if not scores.n_models:
        return TaskLines(0.0, np.zeros(len(scores.tasks)), np.ones(len(scores.tasks)))
    x, y = scores.full_scores(), scores.task_scores()
    centered = x - x.mean()
    spread = float(centered @ centered)
    slopes = (centered @ y) / spread if spread > 0 else np.zeros(y.shape[1])
    return TaskLines(float(x.mean()), y.mean(axis=0), slopes)


def lines_for(scores: Scores, task_of: IntArray, weights: FloatArray) -> TaskLines | None:
    """Return the lines if some task has no weight among the chosen items, else None."""
    mass = np.bincount(task_of, weights, minlength=len(scores.tasks))
    return None if (mass > 0).all() else task_lines(scores)
