"""Several hypotheses at once: p values adjusted for their number."""

from typing import Literal

import numpy as np

from fewbench._types import FloatArray

Adjust = Literal["holm", "bh"]
ADJUSTS = {"holm": "Holm", "bh": "Benjamini-Hochberg"}


def adjusted_p_values(p_values: FloatArray, adjust: Adjust = "holm") -> FloatArray:
    """Return p values adjusted for their number, by Holm's or Benjamini and Hochberg's rule.

    >>> adjusted_p_values(np.array([0.01, 0.04, 0.3])).tolist()
    [0.03, 0.08, 0.3]
    """
    if adjust == "bh":
        from scipy.stats import false_discovery_control

        return np.asarray(false_discovery_control(p_values))
    order = np.argsort(p_values, kind="stable")
    left = len(p_values) - np.arange(len(p_values))
    # Holm 1979: the smallest p value counts for all hypotheses, the next for one fewer, and none
    # may fall below one that is smaller.
    raised = np.maximum.accumulate(np.minimum(1.0, left * p_values[order]))
    return np.asarray(raised[np.argsort(order, kind="stable")])
