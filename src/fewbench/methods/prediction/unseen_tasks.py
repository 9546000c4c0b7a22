"""Scores of tasks of which no item was run, read off the full score over the sources."""

import numpy as np
from numpy.typing import NDArray

from fewbench.scores import Scores

FloatArray = NDArray[np.float64]


def fill_unseen_tasks(tasks: FloatArray, full: FloatArray, scores: Scores) -> FloatArray:
    """Replace NaN tasks by the line through the sources' (full score, task score) pairs.

    Parameters
    ----------
    tasks : ndarray, shape (targets, tasks)
    full : ndarray, shape (targets,)
        Predicted full scores.

    Returns
    -------
    ndarray, shape (targets, tasks), in [0, 1]
    """
    unseen = np.isnan(tasks)
    if not unseen.any():
        return tasks
    x, y = scores.full_scores(), scores.task_scores()
    centred = x - x.mean()
    spread = float(centred @ centred)
    slope = (centred @ y) / spread if spread > 0 else np.zeros(y.shape[1])
    line = y.mean(axis=0) + np.multiply.outer(full - x.mean(), slope)
    return np.where(unseen, np.clip(line, 0.0, 1.0), tasks)
