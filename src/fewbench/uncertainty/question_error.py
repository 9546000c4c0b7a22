"""The error of a verdict on models from other questions and a new run, beside items not run.

Which estimator of the variance over items holds depends on what chose the common items. Where both
models ran all items, or a sample with known chances, their answers say it. Where a method chose
items that tell models apart, the source models say how much more often they do. Cells that were
filled in do not count as answers: the mean over the others has the error of a sample.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.methods.base import Answers
from fewbench.scores import Scores
from fewbench.uncertainty.bounds import EXACT
from fewbench.uncertainty.contrast import Contrast
from fewbench.uncertainty.intervals import Uncertainty
from fewbench.uncertainty.questions import (
    NEAREST,
    TINY,
    Questions,
    clustered,
    disagreement_ratio,
    from_end,
    nearest,
    predicted_disagreement,
    questions_by_task,
    variance_of,
    variance_of_chosen,
    variance_of_score,
    variance_without_pairs,
)


@dataclass(frozen=True, eq=False)
class CommonAnswers:
    """What two models answered in common, in [0, 1].

    Parameters
    ----------
    scores : Scores
        The benchmark, with its source models if it has any.
    items : ndarray of int, shape (n,)
        Positions of the common items.
    apart : ndarray, shape (n,)
        Differences of their answers.
    estimates : ndarray, shape (2, 1 + tasks)
        Full score and task scores of both.
    chances : ndarray, shape (n,), or None
        Chance of each item to be run by both, or None if a method chose them.
    fewest : int
        Number of answers of the one that has fewer.
    filled : float
        Number of items in place of every one that both ran, where cells were filled in; else 1.
    """

    scores: Scores
    items: IntArray
    apart: FloatArray
    estimates: FloatArray
    chances: FloatArray | None
    fewest: int
    filled: float = 1.0

    def error(self, column: int = 0, *, fixed_items: bool = False) -> Questions | None:
        """Return the error of the difference of the full scores, or of task scores (column 1 + t).

        With `fixed_items`, only the error of cells that were filled in, or None without any.
        """
        if fixed_items and self.filled <= 1:
            return None
        scores = self.scores
        weights = scores.task_weights[:, column - 1] if column else scores.item_weights
        error = clustered_error(
            self._of_items(column, weights), scores, self.items, self.apart, weights
        )
        return replace(error, variance=error.variance * (self.filled - fixed_items))

    def _of_items(self, column: int, weights: FloatArray) -> Questions:
        """Return the error for items that are independent of each other."""
        counted, (a, b) = weights > 0, self.estimates[:, column].tolist()
        squares, inside = float(weights @ weights), counted[self.items]
        items, apart = self.items[inside], self.apart[inside]
        if len(items) and self.chances is not None:
            loads = weights[items] ** 2 / np.maximum(self.chances[inside], TINY)
            if self.scores.average == "macro" and not column:
                task_of = self.scores.task_of
                by_task = np.bincount(task_of, weights**2).astype(np.float64)
                return questions_by_task(apart, task_of[items], by_task, loads)
            return Questions(variance_of(apart, loads) * squares, max(len(apart) - 1.0, 1.0))
        freedom = max((len(self.items) or self.fewest) - 1.0, 1.0)
        if self._predicted is None:
            variance = variance_without_pairs(a, b)
            if len(items):
                variance = variance_of(apart, weights[items] ** 2)
            return Questions(variance * squares, freedom)
        # The few items of a task do not show how often two models differ; all items together do.
        ratio = disagreement_ratio(self.apart, self.items, self._predicted)
        how = self._predicted[counted], a - b, weights[counted], ratio
        variance = variance_of_chosen(apart, *how)
        if self.scores.whole.n_models < NEAREST and len(apart):
            # Few source models say too little of how often two differ: .75 to .93 of the truth.
            variance = max(variance, variance_of(apart))
        return Questions(variance * squares, freedom)

    @cached_property
    def _predicted(self) -> FloatArray | None:
        """How often the source models nearest in score differ, by item."""
        whole = self.scores.whole
        if whole.n_models < 2 or whole.chosen is not None:
            return None
        a, b = self.estimates[:, 0].tolist()
        return predicted_disagreement(whole.filled_cells, whole.full_scores(), a, b)


def clustered_error(
    error: Questions, scores: Scores, items: IntArray, values: FloatArray, weights: FloatArray
) -> Questions:
    """Return an error of the mean of values, for items that belong together (`scores.cluster_of`).

    In a macro average, tasks are fixed: items vary about the means of their tasks.

    Parameters
    ----------
    error : Questions
        As if items were independent.
    scores : Scores
    items, values : ndarray, shape (n,)
        Positions of the items that are seen, and what is averaged: answers, or their differences.
    weights : ndarray, shape (items,)
        Weights of all items, 0 for those that do not count.
    """
    counted = weights[items] > 0
    items, values = items[counted], values[counted]
    if scores.cluster_of is None or len(items) < 2:
        return error
    used = weights[items] / weights[items].sum()
    is_macro, n_items = scores.average == "macro", int((weights > 0).sum())
    _, task_of = np.unique(scores.task_of[items] * is_macro, return_inverse=True)
    return clustered(error, values, used, scores.cluster_of[items], task_of, n_items)


def of_one_score(
    scores: Scores,
    items: IntArray,
    answers: FloatArray,
    score: Uncertainty | float,
    task: int | None = None,
) -> Questions:
    """Return the error of a single score, as of a model.

    Parameters
    ----------
    scores : Scores
        The benchmark, with its source models if it has any.
    items, answers : ndarray, shape (n,)
        Positions of the items that the model answered, and its answers in [0, 1].
    score : Uncertainty or float
        The score on these items; known where all of them ran.
    task : int, optional
        Position of the task that the score is of (default: the full score).
    """
    weights = scores.item_weights if task is None else scores.task_weights[:, task]
    counted = weights > 0
    items, answers = items[counted[items]], answers[counted[items]]
    by_task = scores.average == "macro" and task is None
    error = _of_one_score(scores, items, answers, score, weights, by_task=by_task)
    return clustered_error(error, scores, items, answers, weights)


def of_model(
    scores: Scores, answers: Answers, score: Uncertainty | float, task: int | None = None
) -> Contrast:
    """Return a score, as of a model, with the error of `of_one_score`; answers in one row."""
    questions = of_one_score(scores, answers.items, answers.scores[0], score, task)
    return Contrast(score, 0.0, questions=questions)


def _of_one_score(
    scores: Scores,
    items: IntArray,
    answers: FloatArray,
    score: Uncertainty | float,
    weights: FloatArray,
    *,
    by_task: bool,
) -> Questions:
    counted = weights > 0
    squares, n = float(weights @ weights), len(items)
    estimate = score.estimate if isinstance(score, Uncertainty) else score
    estimate = round(float(estimate), EXACT)  # a hair below 1 would count as one of two answers
    is_plain = is_random = True
    if isinstance(score, Uncertainty) and n < np.count_nonzero(counted):
        sample, is_plain = score.sample, score.kind == "exact"
        is_random = sample is not None and bool(np.ptp(sample.chances) == 0)
    is_binary = bool(np.isin(answers, (0.0, 1.0)).all())
    if is_plain and is_binary and not np.ptp(weights[counted]):
        variance = variance_of_score(estimate, n) * squares
        return Questions(variance, max(n - 1.0, 1.0), estimate, n)
    whole, n_items = scores.whole, 1 / squares
    if is_random and by_task:
        of_tasks = np.bincount(scores.task_of, weights**2).astype(np.float64)
        error = questions_by_task(from_end(answers), scores.task_of[items], of_tasks)
        return Questions(error.variance, max(n_items - 1.0, 1.0), estimate)
    if not is_binary and not is_random and whole.n_models >= 2 and whole.chosen is None:
        # What chosen items show is not how scores vary over all of them.
        alike = nearest(whole.full_scores(), estimate)
        answers = np.asarray(whole.filled_cells[alike], dtype=np.float64)[:, counted].ravel()
    variance = variance_of_score(estimate, n_items, answers)
    return Questions(variance * squares, max(n_items - 1.0, 1.0), estimate)
