"""k-medoids by alternation: every item to its nearest medoid, every medoid to its cluster's centre.

Quick and easily caught in a poor optimum; `kmedoids` finds cheaper clusterings. It is what
TailoredBench prints (Eq. 6-7), with medoids that never move ("anchors").
"""

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.intp]


def alternating_kmedoids(
    distances: NDArray[np.float32],
    k: int,
    rng: np.random.Generator,
    *,
    anchors: IntArray | None = None,
    max_rounds: int = 100,
) -> IntArray:
    """Choose `k` medoids beside the anchors.

    Parameters
    ----------
    distances : ndarray, shape (items, items)
        Symmetric.
    k : int
        Number of medoids that move; they begin at random items that are no anchors.
    anchors : ndarray of int, optional
        Items that are medoids and stay so.
    max_rounds : int
        Most rounds of assignment and refinement.

    Returns
    -------
    ndarray of int, shape (k,)

    Examples
    --------
    >>> x = np.array([0.0, 1, 2, 10, 11, 12], dtype=np.float32)
    >>> alternating_kmedoids(abs(x[:, None] - x), 1, np.random.default_rng(0),
    ...                      anchors=np.array([0])).tolist()
    [4]
    """
    fixed = np.empty(0, dtype=np.intp) if anchors is None else anchors
    free = np.setdiff1d(np.arange(len(distances)), fixed)
    medoids = np.concatenate([fixed, rng.choice(free, k, replace=False)])
    for _ in range(max_rounds):
        labels = distances[:, medoids].argmin(axis=1)
        labels[medoids] = np.arange(len(medoids))  # a medoid stays in its own cluster
        moved = medoids.copy()
        for cluster in range(len(fixed), len(medoids)):
            members = np.flatnonzero(labels == cluster)
            totals = distances[np.ix_(members, members)].sum(axis=1, dtype=np.float64)
            moved[cluster] = members[totals.argmin()]
        if np.array_equal(moved, medoids):
            break
        medoids = moved
    return medoids[len(fixed) :]
