"""Item difficulty index of classical test theory: how easy each item is for the sources.

It is the mean of the sources' scores, or of their probabilities of the right option, which also
separate items that equally many sources get right. Before a target runs, it is a guess of how it
will do.
"""

from dataclasses import replace
from typing import Literal

import numpy as np

from fewbench._blocks import by_columns
from fewbench._memory import check_fits
from fewbench._names import counted
from fewbench._types import FloatArray
from fewbench.algorithms.option_probabilities import probabilities_of, right_options
from fewbench.errors import MethodError
from fewbench.methods.needs import Need
from fewbench.scores import Scores, Sources

Proxy = Literal["scores", "probabilities"]
PROBABILITIES = Need("probabilities", 1, "the scores have no option probabilities", required=True)


def difficulty_index(scores: Sources, proxy: Proxy = "scores") -> FloatArray:
    """Return how easy each item is for the sources, in [0, 1], shape (items,).

    `proxy` is "scores", the mean filled score over the sources, or "probabilities", the mean
    probability of the right option. The sources decide which option is right
    (`fewbench.algorithms.option_probabilities`); a source with a score and no probabilities counts
    by its score. Raises MethodError if the scores have no probabilities.

    >>> from fewbench.scores import from_arrays
    >>> difficulty_index(from_arrays([[1, 0, 1], [1, 0, 0]], models=["a", "b"])).tolist()
    [1.0, 0.0, 0.5]
    """
    if proxy == "scores":  # rounded: ties despite rounding errors
        return scores.remember("difficulty", lambda: np.round(_means(scores.table()), 12))
    if scores.probabilities is None:
        raise MethodError("the scores have no option probabilities", hint="use the scores instead")
    n_options = scores.items["n_options"].to_numpy(np.intp)
    check_fits(
        24.0 * scores.n_models * scores.n_items,
        f"probabilities of right options of {counted(scores.n_models, 'model')} on "
        f"{counted(scores.n_items, 'item')}",
    )
    table = scores.table()
    believed = np.empty((scores.n_models, scores.n_items))
    for items, options in scores.probabilities.by_items():
        values = table.cells[:, items]
        right = right_options(options, values, n_options[items])
        found = probabilities_of(options, right)
        found = np.where(np.isnan(found), values, found)
        believed[:, items] = np.where(np.isnan(values), np.nan, np.clip(found, 0.0, 1.0))
    filled = replace(table, values=believed, probabilities=None).filled
    return np.asarray(np.round(filled.mean(axis=0), 12))


def _means(scores: Scores) -> FloatArray:
    found: FloatArray = by_columns(scores.filled_cells, lambda part: part.mean(axis=0))
    return found
