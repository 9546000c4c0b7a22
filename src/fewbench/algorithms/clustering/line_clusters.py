"""k-means of points on a line, solved exactly.

On a line clusters are intervals, so that the least sum of squares is found by dynamic programming
over where they end (Wang & Song 2011, "Ckmeans.1d.dp"), in order of n log n steps a cluster as the
best last end only moves right: no random starts.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def line_clusters(points: FloatArray, k: int) -> IntArray:
    """Return each point's cluster of the `k` with the least sum of squares.

    Parameters
    ----------
    points : ndarray, shape (n,)
    k : int
        Number of clusters; fewer are made where there are fewer distinct points.

    Returns
    -------
    ndarray of int, shape (n,)
        Clusters numbered from the lowest points to the highest.

    Examples
    --------
    >>> line_clusters(np.array([0.9, 0.1, 0.2, 1.0, 0.5]), 3).tolist()
    [2, 0, 0, 2, 1]
    """
    x, which, count = np.unique(points, return_inverse=True, return_counts=True)
    n = len(x)
    if k >= n:
        return which.astype(np.intp)
    x = x - x.mean()
    mass, first, second = (
        np.concatenate([[0.0], np.cumsum(count * x**power)]) for power in range(3)
    )

    def spread(starts: IntArray, end: int) -> FloatArray:
        """Sums of squares of the points from each start to before the end."""
        total = first[end] - first[starts]
        return np.asarray(second[end] - second[starts] - total**2 / (mass[end] - mass[starts]))

    least = np.append(0.0, [spread(np.array([0]), end)[0] for end in range(1, n + 1)])
    begins = np.zeros((k, n + 1), dtype=np.intp)
    for clusters in range(1, k):
        next_least = np.full(n + 1, np.inf)
        # ends from..to, whose best last cluster begins within low..high
        todo = [(clusters + 1, n, clusters, n - 1)]
        while todo:
            low_end, high_end, low, high = todo.pop()
            if low_end > high_end:
                continue
            end = (low_end + high_end) // 2
            starts = np.arange(low, min(high, end - 1) + 1)
            sums = least[starts] + spread(starts, end)
            best = int(sums.argmin())
            next_least[end], begins[clusters, end] = sums[best], starts[best]
            todo += [
                (low_end, end - 1, low, int(starts[best])),
                (end + 1, high_end, int(starts[best]), high),
            ]
        least = next_least
    labels = np.empty(n, dtype=np.intp)
    end = n
    for cluster in range(k - 1, -1, -1):
        begin = int(begins[cluster, end])
        labels[begin:end] = cluster
        end = begin
    return labels[which]
