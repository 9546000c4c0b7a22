"""Samples without replacement whose inclusion probabilities are known exactly."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def draw(n: int, sizes: FloatArray, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Draw `n` units with probabilities in proportion to their sizes.

    Units whose share is 1 or more are sure; the others are drawn by one systematic draw in random
    order. With equal sizes this is simple random sampling.

    Parameters
    ----------
    n : int
        At most the number of units.
    sizes : ndarray, shape (units,)
        Positive.

    Returns
    -------
    chosen : ndarray of int, shape (n,), increasing
    probabilities : ndarray, shape (units,)
        Each unit's probability to be chosen, of sum `n`.

    Examples
    --------
    >>> chosen, probabilities = draw(2, np.array([6.0, 1, 1, 1]), np.random.default_rng(0))
    >>> probabilities.round(3).tolist()
    [1.0, 0.333, 0.333, 0.333]
    """
    sure = np.zeros(len(sizes), dtype=np.bool_)
    while True:
        left = n - int(sure.sum())
        rest = np.where(sure, 0.0, sizes)
        share = left * rest / rest.sum() if left else np.zeros(len(sizes))
        more = ~sure & (share >= 1.0 - 1e-12)
        if not more.any():
            break
        sure |= more
    others = rng.permutation(np.flatnonzero(~sure))
    ends = np.cumsum(share[others])
    if len(ends):
        ends[-1] = left  # not a hair less, by rounding of the sum
    drawn = others[np.diff(np.floor(ends - rng.random()) + 1.0, prepend=0.0) > 0]
    chosen = np.sort(np.concatenate([np.flatnonzero(sure), drawn]))
    return chosen.astype(np.intp), np.where(sure, 1.0, share)
