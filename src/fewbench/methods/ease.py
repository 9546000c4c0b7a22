"""How well the sources do on an item: a guess, before a target is run, of how it will do.

The mean of the sources' scores, or of the probabilities that they give to the right option, which
tells apart items that as many sources get right.
"""

from dataclasses import replace
from typing import Literal

import numpy as np

from fewbench._types import FloatArray
from fewbench.algorithms.option_probabilities import probabilities_of, right_options
from fewbench.errors import MethodError
from fewbench.methods.needs import Need
from fewbench.scores import Scores

Proxy = Literal["scores", "probabilities"]
PROBABILITIES = Need("probabilities", 1, "there are no probabilities to go by", required=True)


def ease(scores: Scores, proxy: Proxy = "scores") -> FloatArray:
    """Return how easy each item is to the sources, in [0, 1], shape (items,).

    Parameters
    ----------
    proxy : {"scores", "probabilities"}
        The mean over the sources of what they scored, missing cells filled; or of the probability
        that they gave to the right option. Which option is right is told from the sources
        (`fewbench.algorithms.option_probabilities`); a source that has a score and no probabilities
        counts by its score.

    Raises
    ------
    MethodError
        If there are no probabilities to go by.

    Examples
    --------
    >>> from fewbench.scores import from_arrays
    >>> ease(from_arrays([[1, 0, 1], [1, 0, 0]], models=["a", "b"])).tolist()
    [1.0, 0.0, 0.5]
    """
    if proxy == "scores":
        return np.asarray(np.round(scores.filled.mean(axis=0), 12))  # a hair of rounding apart
    if scores.probabilities is None:
        raise MethodError(
            "the scores have no option probabilities", hint="go by the scores themselves"
        )
    n_options = scores.items["n_options"].to_numpy(np.intp)
    right = right_options(scores.probabilities.by_model(), scores.values, n_options)
    believed = probabilities_of(scores.probabilities.by_model(), right)
    believed = np.where(np.isnan(believed), scores.values, believed)
    believed = np.where(np.isnan(scores.values), np.nan, np.clip(believed, 0.0, 1.0))
    filled = replace(scores, values=believed, probabilities=None).filled
    return np.asarray(np.round(filled.mean(axis=0), 12))
