"""The mean of the answers, weighted where the subset has weights."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewbench.methods.base import Answers, Prediction
from fewbench.methods.prediction.unseen_tasks import fill_unseen_tasks
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


@dataclass(frozen=True)
class Mean:
    """Weighted mean of the answers: of the subset's weights, else of the items' own weights.

    A task's score is the weighted mean of its chosen items; a task without any is read off the
    full score by a line over the sources.
    """

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedMean":
        """Take the weights; nothing is learned."""
        at = scores.positions(subset.items)
        return FittedMean(scores, scores.task_of[at], subset.weights_over(scores))


@dataclass(frozen=True, eq=False)
class FittedMean:
    """Weights of the chosen items, shape (n,), and their tasks."""

    scores: Scores
    task_of: NDArray[np.intp]
    weights: NDArray[np.float64]

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores and, if wanted, task scores."""
        full = self.full(answers)
        if not tasks:
            return Prediction(full)
        return Prediction(full, fill_unseen_tasks(self.seen_tasks(answers), full, self.scores))

    def full(self, answers: Answers) -> NDArray[np.float64]:
        """Return the weighted means, shape (targets,)."""
        return np.asarray(answers.scores @ (self.weights / self.weights.sum()))

    def seen_tasks(self, answers: Answers) -> NDArray[np.float64]:
        """Return the tasks' weighted means, shape (targets, tasks); NaN where one has no item."""
        member = np.equal.outer(self.task_of, np.arange(len(self.scores.tasks)))
        member = member * self.weights[:, None]
        mass = member.sum(axis=0)
        with np.errstate(invalid="ignore"):
            return np.asarray((answers.scores @ member) / mass)
