"""k-means with the point nearest each centre: what stands for a cluster is one of its own."""

import warnings

import numpy as np
from numpy.typing import NDArray

from fewbench._threads import one_thread

IntArray = NDArray[np.intp]


def representatives(
    points: NDArray[np.float64], k: int, seed: int, restarts: int = 1
) -> tuple[IntArray, IntArray]:
    """Find k distinct points nearest the k-means centres, and every point's cluster.

    Parameters
    ----------
    points : ndarray, shape (n, dimensions)
        Finite; n of at least k.
    k : int
        At least 1.
    seed : int
    restarts : int
        Random starts of k-means; the best is kept.

    Returns
    -------
    chosen : ndarray of int, shape (k,)
        Positions in `points`, one of each cluster.
    labels : ndarray of int, shape (n,)
        Each point's cluster as a position in `chosen`.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0], [13.0]])
    >>> chosen, labels = representatives(points, 2, seed=0)
    >>> sorted(chosen.tolist()), np.bincount(labels).tolist()
    ([1, 4], [4, 3])
    """
    if k == len(points):
        return np.arange(k), np.arange(k)
    distinct = len(np.unique(points, axis=0))
    if distinct <= k:  # k-means cannot make more clusters than there are distinct points
        _, first, labels = np.unique(points, axis=0, return_index=True, return_inverse=True)
        more = np.setdiff1d(np.arange(len(points)), first)[: k - distinct]
        labels[more] = distinct + np.arange(len(more))
        return np.concatenate([first, more]), labels
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    # One thread: sums in another order could turn ties.
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the clusters that are filled here
        fitted = KMeans(k, n_init=restarts, random_state=seed).fit(points)
    centres, labels = fitted.cluster_centers_, fitted.labels_.astype(np.intp)
    _fill_empty(points, centres, labels)
    squared = (points**2).sum(axis=1)[:, None] - 2 * points @ centres.T
    squared += (centres**2).sum(axis=1)
    squared[labels[:, None] != np.arange(k)] = np.inf  # only a cluster's own members
    return squared.argmin(axis=0), labels


def _fill_empty(
    points: NDArray[np.float64], centres: NDArray[np.float64], labels: IntArray
) -> None:
    """Give clusters that have no point one of the largest; in place.

    Points may differ by less than their squared distances can show; then k-means leaves some out.
    """
    for cluster in np.setdiff1d(np.arange(len(centres)), labels):
        point = np.flatnonzero(labels == np.bincount(labels).argmax())[-1]
        labels[point], centres[cluster] = cluster, points[point]
