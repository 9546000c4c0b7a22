"""From the expected scores of all items to a prediction, for predictors that fill in every item."""

import numpy as np

from fewbench._types import FloatArray
from fewbench.methods.base import Answers, Prediction
from fewbench.scores import Benchmark


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
