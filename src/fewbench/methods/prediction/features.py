"""What a regression sees of a model: its answers, its signature, or its score on the subset."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from fewbench.errors import AnswersError
from fewbench.methods.base import Answers
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.scores import Scores

FloatArray = NDArray[np.float64]


class Features(Protocol):
    """Turns the sources' and the targets' answers on a subset into rows of numbers."""

    def of_sources(self, scores: Scores, subset: Subset) -> FloatArray:
        """Return the sources' features, shape (sources, features)."""

    def of_targets(self, scores: Scores, subset: Subset, answers: Answers) -> FloatArray:
        """Return the targets' features, shape (targets, features)."""


@dataclass(frozen=True)
class AnswerFeatures:
    """The scores on the chosen items: one number an item."""

    needs: ClassVar = (Need("distinct sources", 20, "few sources to learn many numbers from"),)

    def of_sources(self, scores: Scores, subset: Subset) -> FloatArray:
        """Return the sources' features, shape (sources, n)."""
        return scores.filled[:, scores.positions(subset.items)]

    def of_targets(self, scores: Scores, subset: Subset, answers: Answers) -> FloatArray:
        """Return the targets' features, shape (targets, n)."""
        return answers.scores


@dataclass(frozen=True)
class SubsetScore:
    """The mean score on the chosen items, weighted as the subset says: one number."""

    needs: ClassVar = (Need("distinct sources", 5, "few sources to draw a line through"),)

    def of_sources(self, scores: Scores, subset: Subset) -> FloatArray:
        """Return the sources' features, shape (sources, 1)."""
        at = scores.positions(subset.items)
        return (scores.filled[:, at] @ self._weights(scores, subset))[:, None]

    def of_targets(self, scores: Scores, subset: Subset, answers: Answers) -> FloatArray:
        """Return the targets' features, shape (targets, 1)."""
        return (answers.scores @ self._weights(scores, subset))[:, None]

    @staticmethod
    def _weights(scores: Scores, subset: Subset) -> FloatArray:
        weights = subset.weights_over(scores)
        return np.asarray(weights / weights.sum())


@dataclass(frozen=True)
class TaskMeans:
    """The mean score on the chosen items of each task: one number for each task with any.

    Items count as in their task's score, or as the subset weighs them.
    """

    needs: ClassVar = (
        Need("tasks", 2, "with one task this is the score on the chosen items"),
        Need("distinct sources", 10, "few sources to weigh tasks by"),
    )

    def of_sources(self, scores: Scores, subset: Subset) -> FloatArray:
        """Return the sources' features, shape (sources, tasks with chosen items)."""
        at = scores.positions(subset.items)
        return np.asarray(scores.filled[:, at] @ self._weights(scores, subset))

    def of_targets(self, scores: Scores, subset: Subset, answers: Answers) -> FloatArray:
        """Return the targets' features, shape (targets, tasks with chosen items)."""
        return np.asarray(answers.scores @ self._weights(scores, subset))

    @staticmethod
    def _weights(scores: Scores, subset: Subset) -> FloatArray:
        tasks = scores.task_of[scores.positions(subset.items)]
        member = np.equal.outer(tasks, np.unique(tasks)) * subset.weights_over(scores)[:, None]
        total = member.sum(axis=0)
        return np.asarray(member[:, total > 0] / total[total > 0])


@dataclass(frozen=True)
class Signature:
    """DISCO's model signature: the option probabilities on the chosen items, side by side.

    Where the scores have no option probabilities, the answers themselves. A missing cell is
    filled by the mean of the sources that have it.
    """

    needs: ClassVar = (
        Need("distinct sources", 40, "few sources to compare signatures with"),
        Need("probabilities", 1, "the signature is right and wrong alone"),
    )

    def of_sources(self, scores: Scores, subset: Subset) -> FloatArray:
        """Return the sources' signatures, shape (sources, n × options)."""
        at = scores.positions(subset.items)
        if scores.probabilities is None:
            return scores.filled[:, at]
        options = scores.probabilities.of_items(at)
        if np.isnan(options).any():
            options = np.where(np.isnan(options), _mean_options(options), options)
        return options.reshape(len(options), -1)

    def of_targets(self, scores: Scores, subset: Subset, answers: Answers) -> FloatArray:
        """Return the targets' signatures; AnswersError if they lack option probabilities."""
        if scores.probabilities is None:
            return answers.scores
        if answers.probabilities is None:
            raise AnswersError(
                "the method compares option probabilities, and the answers have none",
                hint="tell the option probabilities too, or use a method on answers, such as "
                "kmedoids-ridge",
            )
        options = answers.probabilities
        if np.isnan(options).any():  # a source in the place of a target, as in cross-fitting
            known = scores.probabilities.of_items(scores.positions(subset.items))
            options = np.where(np.isnan(options), _mean_options(known), options)
        return options.reshape(len(answers.scores), -1)


def _mean_options(options: FloatArray) -> FloatArray:
    """Mean over the models that were run, shape (n, options); 0 where none was."""
    run = ~np.isnan(options)
    total = np.where(run, options, 0.0).sum(axis=0)
    return np.asarray(total / np.maximum(run.sum(axis=0), 1))
