"""From expected scores of items, or of some tasks, to a whole prediction."""

from dataclasses import dataclass

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.methods.base import Answers, Prediction
from fewbench.scores import Benchmark, Scores


def completed(
    benchmark: Benchmark, items: FloatArray, answers: Answers, *, tasks: bool = True
) -> Prediction:
    """Put the answers in their places and average; scores, tasks and items are within 0 and 1.

    Averages are taken of the items as they are expected, before these are brought within 0 and 1.

    Parameters
    ----------
    items : ndarray, shape (targets, items)
        What is expected of every item; the answers are written into it.
    tasks : bool
        Whether task scores are wanted.

    Examples
    --------
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
class TaskLines:
    """The line through the sources' (full score, task score) pairs, for each task.

    Attributes
    ----------
    mean : float
        Mean full score.
    means, slopes : ndarray, shape (tasks,)
        Mean task scores, and how they change with the full score.
    """

    mean: float
    means: FloatArray
    slopes: FloatArray

    def fill(self, tasks: FloatArray, full: FloatArray) -> FloatArray:
        """Replace NaN task scores, shape (targets, tasks), by the line, within [0, 1].

        Parameters
        ----------
        tasks : ndarray, shape (targets, tasks)
        full : ndarray, shape (targets,)
            Predicted full scores.
        """
        line = self.means + np.multiply.outer(full - self.mean, self.slopes)
        return np.where(np.isnan(tasks), np.clip(line, 0.0, 1.0), tasks)


def task_lines(scores: Scores) -> TaskLines:
    """Fit the lines to the sources."""
    x, y = scores.full_scores(), scores.task_scores()
    centered = x - x.mean()
    spread = float(centered @ centered)
    slopes = (centered @ y) / spread if spread > 0 else np.zeros(y.shape[1])
    return TaskLines(float(x.mean()), y.mean(axis=0), slopes)


def lines_for(scores: Scores, task_of: IntArray, weights: FloatArray) -> TaskLines | None:
    """Return the lines if some task has no weight among the chosen items, else None."""
    mass = np.bincount(task_of, weights, minlength=len(scores.tasks))
    return None if (mass > 0).all() else task_lines(scores)
