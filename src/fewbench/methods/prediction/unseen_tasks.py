"""Scores of tasks of which no item was run, read off the full score over the sources."""

from dataclasses import dataclass

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.scores import Scores


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
