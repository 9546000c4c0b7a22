"""The mean of the answers, weighted where the subset has weights; and a ratio estimator from it.

The ratio is ours for tasks; surveys know it (Cochran 1977, ch. 6): chosen items, or tasks, that are
easier than all of them are so for past models too.
"""

from dataclasses import dataclass

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.errors import MethodError
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.prediction.completed import TaskLines, lines_for
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
        return fitted_mean(scores, scores.task_of[at], subset.weights_over(scores))


def fitted_mean(scores: Scores, task_of: IntArray, weights: FloatArray) -> "FittedMean":
    """Return the weighted mean over chosen items of these tasks and weights, shape (n,)."""
    return FittedMean(len(scores.tasks), task_of, weights, lines_for(scores, task_of, weights))


@dataclass(frozen=True, eq=False)
class FittedMean:
    """Weights of the chosen items, shape (n,), their tasks, and lines for tasks without any."""

    n_tasks: int
    task_of: IntArray
    weights: FloatArray
    lines: TaskLines | None

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores and, if wanted, task scores."""
        full = self.full(answers)
        if not tasks:
            return Prediction(full)
        return Prediction(full, self.tasks(answers, full))

    def full(self, answers: Answers) -> FloatArray:
        """Return the weighted means, shape (targets,)."""
        return np.asarray(answers.scores @ (self.weights / self.weights.sum()))

    def tasks(self, answers: Answers, full: FloatArray) -> FloatArray:
        """Return the tasks' scores, shape (targets, tasks), given the full scores."""
        seen = self._seen_tasks(answers)
        return seen if self.lines is None else self.lines.fill(seen, full)

    def _seen_tasks(self, answers: Answers) -> FloatArray:
        """Return the tasks' weighted means, shape (targets, tasks); NaN where one has no item."""
        member = np.equal.outer(self.task_of, np.arange(self.n_tasks))
        member = member * self.weights[:, None]
        mass = member.sum(axis=0)
        with np.errstate(invalid="ignore"):
            return np.asarray((answers.scores @ member) / mass)


@dataclass(frozen=True)
class AnchorRatio:
    """P = s_X · full / s_X of the anchor, or of all past models together.

    Parameters
    ----------
    anchor : str, optional
        A past model's name; by default sums over all of them.
    """

    anchor: str | None = None

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedAnchorRatio":
        """Work out the ratio; MethodError if there is no such model."""
        if self.anchor is None:
            models = np.arange(scores.n_models)
        elif self.anchor in scores.model_ids:
            models = np.array([scores.model_ids.index(self.anchor)])
        else:
            raise MethodError(f"no past model is called {self.anchor!r}", hint="name a source")
        at = scores.positions(subset.items)
        weights = subset.weights_over(scores)
        of_chosen = float((scores.filled[np.ix_(models, at)] @ weights).sum() / weights.sum())
        full = float(scores.full_scores()[models].sum())
        ratio = full / of_chosen if of_chosen > 0 else 1.0
        return FittedAnchorRatio(Mean().fit(scores, subset, seed), ratio)


@dataclass(frozen=True, eq=False)
class FittedAnchorRatio:
    """The mean of the answers, and what it is multiplied by."""

    mean: FittedMean
    ratio: float

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, at most 1; the score of a task with items is their mean."""
        full = np.clip(self.mean.full(answers) * self.ratio, 0.0, 1.0)
        if not tasks:
            return Prediction(full)
        return Prediction(full, self.mean.tasks(answers, full))
