"""k-means with the point nearest each center, exactly for points on a line, or on a Laplacian.

On a line clusters are intervals, so dynamic programming over their ends finds the least sum of
squares (Wang & Song 2011, "Ckmeans.1d.dp") in about n log n steps per cluster, as the best last
end only moves right. It needs no random starts.

Laplacian eigenmaps and spectral clusters of a similarity matrix are those of BenTo, Eq. 4 and 6.
"""

import warnings

import numpy as np
from numpy.typing import ArrayLike

from fewbench.algorithms import ties
from fewbench.support import FloatArray, IntArray, one_thread

BLOCK = 32
"""Clusters whose members are compared at a time: a table of all points and clusters is large."""


def representatives(
    points: FloatArray,
    k: int,
    seed: int,
    restarts: int = 1,
    weights: FloatArray | None = None,
) -> tuple[IntArray, IntArray]:
    """Find k distinct points nearest the k-means centers, and each point's cluster.

    - `points`, shape (n, dimensions): Finite, at least k of them.
    - `k`: At least 1.
    - `restarts`: Random starts of k-means; the best is kept.
    - `weights`, shape (n,): Positive weights of the points in k-means; by default equal. They do
      not affect which point of a cluster is nearest its center.

    Returned arrays:

    - `chosen`, shape (k,): Positions in `points`, one per cluster.
    - `labels`, shape (n,): Each point's cluster as a position in `chosen`.

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

    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the clusters that are filled here
        # A point as near to one center as to another goes to the same everywhere.
        means = KMeans(k, n_init=restarts, random_state=seed)
        fitted = means.fit(ties.shaken(points), sample_weight=weights)
    labels = fitted.labels_.astype(np.intp)
    _fill_empty(labels, k)
    return _nearest(points, _centres(points, labels, weights), labels), labels


def _centres(points: FloatArray, labels: IntArray, weights: FloatArray | None) -> FloatArray:
    """Return the mean of each cluster's points, shape (k, dimensions)."""
    from scipy.sparse import csr_array

    mass = np.ones(len(labels)) if weights is None else weights
    sums = np.asarray(csr_array((mass, (labels, np.arange(len(labels))))) @ points)
    return np.asarray(sums / np.bincount(labels, mass)[:, None])


def _nearest(points: FloatArray, centres: FloatArray, labels: IntArray) -> IntArray:
    """Return each cluster's member nearest its center, the first of equally near ones."""
    members = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[members], np.arange(len(centres) + 1))
    of_points, of_centres = (points**2).sum(axis=1), (centres**2).sum(axis=1)
    nearest = np.empty(len(centres), dtype=np.intp)
    for first in range(0, len(centres), BLOCK):
        last = min(first + BLOCK, len(centres))
        here = members[ends[first] : ends[last]]
        squared = of_points[here, None] - 2 * points[here] @ centres[first:last].T
        squared += of_centres[first:last]
        squared[labels[here, None] != np.arange(first, last)] = np.inf  # only its own members
        # Squared distances are differences of numbers of the size of squares.
        size = 1e-3 * float(of_points.max(initial=0.0))
        nearest[first:last] = here[ties.argmin(squared, axis=0, scale=size)]
    return nearest


def _fill_empty(labels: IntArray, k: int) -> None:
    """Give each empty cluster a point of a largest one, in place.

    k-means leaves clusters empty where points differ by less than squared distances can show.
    """
    for cluster in np.setdiff1d(np.arange(k), labels):
        labels[np.flatnonzero(labels == np.bincount(labels).argmax())[-1]] = cluster


def line_clusters(points: FloatArray, k: int) -> IntArray:
    """Return the cluster of each point, shape (n,), of the `k` with the least squares.

    Clusters are numbered from the lowest points to the highest. There are at most as many clusters
    as distinct points.

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
            best = int(ties.argmin(sums, scale=1e-3 * second[-1]))
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


RESTARTS = 20  # of k-means: an embedding is small


def eigenmaps(similarity: ArrayLike, components: int, *, self_loops: bool = False) -> FloatArray:
    """Embed rows by the first eigenvectors of L = I - D^-1/2 S D^-1/2, D = diag(S 1).

    - `similarity`, shape (n, n): Symmetric, without negative entries.
    - `components`: Eigenvectors kept, from 1 to n - 1. With all n, every row is at a right angle to
      every other, whatever the similarity.
    - `self_loops`: Whether the diagonal counts, as the equation is printed. The default ignores the
      diagonal, as scipy's Laplacian, which the authors used, does.

    Returns an array of shape (n, components). Each eigenvector's first largest entry is positive.

    Raises ValueError if `components` is out of range, or the similarity cannot be used.

    >>> import numpy as np
    >>> S = np.kron(np.eye(2), np.ones((2, 2))) + 0.1
    >>> np.round(eigenmaps(S, 2)[:, 1], 3).tolist()
    [0.5, 0.5, -0.5, -0.5]
    """
    s = np.array(similarity, dtype=np.float64)
    n = len(s) if s.ndim else 0
    if s.shape != (n, n) or not np.isfinite(s).all() or (s < 0).any() or not np.allclose(s, s.T):
        raise ValueError("the similarity is not a symmetric matrix without negative entries")
    if not 1 <= components < n:
        raise ValueError(f"{components} components of {n} rows: from 1 to {n - 1}")
    if not self_loops:
        np.fill_diagonal(s, 0.0)
    degree = s.sum(axis=1)
    if (degree <= 0).any():
        raise ValueError("a row is like no other")
    scale = 1 / np.sqrt(degree)
    laplacian = np.eye(n) - s * np.outer(scale, scale)
    vectors = np.linalg.eigh((laplacian + laplacian.T) / 2)[1][:, :components]
    # The sign of an eigenvector is arbitrary. It is fixed, so that k-means starts from the same
    # rows on every build of LAPACK.
    largest = ties.argmax(np.abs(vectors), axis=0)
    return np.asarray(vectors * np.sign(vectors[largest, np.arange(components)]))


def row_cosines(rows: ArrayLike) -> FloatArray:
    """Cosines between rows, shape (n, n); a row of zeros resembles only itself."""
    x = np.asarray(rows, dtype=np.float64)
    length = np.linalg.norm(x, axis=1, keepdims=True)
    unit = x / np.where(length > 0, length, 1.0)
    cosines = np.clip(unit @ unit.T, -1.0, 1.0)
    np.fill_diagonal(cosines, 1.0)
    return (cosines + cosines.T) / 2


def spectral_clusters(embedding: ArrayLike, clusters: int, seed: int) -> IntArray:
    """Cluster the rows of an embedding by k-means; return labels, shape (n,).

    The largest cluster is 0; of equally large clusters, the one with the first row comes first.
    """
    labels = representatives(np.asarray(embedding, dtype=np.float64), clusters, seed, RESTARTS)[1]
    first = [int(np.argmax(labels == cluster)) for cluster in range(clusters)]
    order = np.lexsort((np.array(first), -np.bincount(labels, minlength=clusters)))
    place = np.empty(clusters, dtype=np.intp)
    place[order] = np.arange(clusters)
    return place[labels]
