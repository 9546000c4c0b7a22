"""Which of many tests to believe: the false discovery rate."""

import numpy as np
from numpy.typing import NDArray


def benjamini_hochberg(p: NDArray[np.float64], level: float) -> NDArray[np.bool_]:
    """Whether each hypothesis is rejected, so that on average at most `level` are so wrongly.

    Benjamini & Hochberg 1995, the share of wrong rejections among all.

    Parameters
    ----------
    p : ndarray, shape (tests,)
        p-values; NaN where there was nothing to test.
    level : float

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.001, 0.8, 0.03, np.nan]), 0.05).tolist()
    [True, False, True, False]
    """
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    below = np.flatnonzero(p[order] <= level * np.arange(1, len(order) + 1) / max(len(order), 1))
    rejected = np.zeros(len(p), dtype=np.bool_)
    if len(below):
        rejected[tested] = p[tested] <= p[order[below[-1]]]  # ties together, whatever the order
    return rejected
