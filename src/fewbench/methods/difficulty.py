"""Item difficulty index of classical test theory: how easy each item is for the sources.

It is the mean of the sources' scores, or of their probabilities of the right option, which also
separate items that equally many sources get right. Before a target runs, it is a guess of how it
will do.
"""

import numpy as np

from fewbench._blocks import by_columns
from fewbench._types import FloatArray
from fewbench.methods.confidence import Values, confidence
from fewbench.scores import Scores


def difficulty_index(scores: Scores, proxy: Values = "scores") -> FloatArray:
    """Return how easy each item is for the sources, in [0, 1], shape (items,).

    `proxy` is "scores", the mean filled score over the sources, or "probabilities", the mean
    probability of the right option (`fewbench.methods.confidence`). Raises MethodError if the
    scores have no probabilities.

    >>> from fewbench.scores import from_arrays
    >>> difficulty_index(from_arrays([[1, 0, 1], [1, 0, 0]], models=["a", "b"])).tolist()
    [1.0, 0.0, 0.5]
    """
    if proxy == "scores":  # rounded: ties despite rounding errors
        return scores.remember("difficulty", lambda: np.round(_means(scores), 12))
    return np.asarray(np.round(confidence(scores).sources.mean(axis=0), 12))


def _means(scores: Scores) -> FloatArray:
    means: FloatArray = by_columns(scores.filled_cells, lambda part: part.mean(axis=0))
    return means
