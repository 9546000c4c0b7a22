"""The mean of the answers."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.assisted import sample_errors
from fewbench.methods.base import Answers, Prediction, full_only
from fewbench.methods.prediction.completed import TaskLines, lines_for, task_members
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


@dataclass(frozen=True)
class Mean:
    """Mean of the answers with the subset's weights, else the items' own weights.

    A task's score is the weighted mean of its chosen items. A task without any follows from the
    full score by a line over the sources.
    """

    packs_answers: ClassVar[bool] = True

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedMean":
        """Take the weights; nothing is learned."""
        at = scores.positions(subset.items)
        task_of, weights = scores.task_of[at], subset.weights_over(scores)
        lines = lines_for(scores, task_of, weights)
        is_even = not scores.n_models and subset.weights is None  # an exact interval
        chances = None if is_even else subset.chances_over(scores)
        return FittedMean(len(scores.tasks), task_of, weights, lines, chances)


@dataclass(frozen=True, eq=False)
class FittedMean:
    """Weights and tasks of the chosen items, shape (n,), and lines for tasks without items.

    For a sample, also the probabilities of all items.
    """

    n_tasks: int
    task_of: IntArray
    weights: FloatArray
    lines: TaskLines | None
    chances: FloatArray | None = None

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores and, if wanted, task scores."""
        full = self.full(answers)
        of_tasks = self.tasks(answers, full) if tasks else None
        if self.chances is None:
            return Prediction(full, of_tasks)
        how = self.weights, answers.items, self.chances
        predicted = np.zeros_like(answers.scores)  # nothing: the estimate is the plain mean
        spread, degrees, samples = sample_errors(answers.scores, predicted, *how)
        freedom = full_only(degrees, self.n_tasks)
        return Prediction(full, of_tasks, spread=spread, freedom=freedom, samples=samples)

    def full(self, answers: Answers) -> FloatArray:
        """Return the weighted means, shape (targets,)."""
        return np.asarray(answers.scores @ (self.weights / self.weights.sum()))

    def tasks(self, answers: Answers, full: FloatArray) -> FloatArray:
        """Return the tasks' scores, shape (targets, tasks), given the full scores."""
        member = task_members(self.task_of, self.n_tasks, self.weights)
        with np.errstate(invalid="ignore"):
            seen = np.asarray((answers.scores @ member) / member.sum(axis=0))
        return seen if self.lines is None else self.lines.fill(seen, full)  # NaN without items
