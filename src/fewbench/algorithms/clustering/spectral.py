"""Laplacian eigenmaps and spectral clusters of a similarity matrix (BenTo, Eq. 4 and 6)."""

import numpy as np
from numpy.typing import ArrayLike

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.clustering.kmeans import representatives

__all__ = ["eigenmaps", "row_cosines", "spectral_clusters"]

RESTARTS = 20  # of k-means: an embedding is small


def eigenmaps(similarity: ArrayLike, components: int, *, self_loops: bool = False) -> FloatArray:
    """Embed rows by the first eigenvectors of L = I - D^-1/2 S D^-1/2, D = diag(S 1).

    Parameters
    ----------
    similarity : array, shape (n, n)
        Symmetric, without negative entries.
    components : int
        Eigenvectors kept, from 1 to n - 1. All n would be an orthogonal matrix: every row at a
        right angle to every other, whatever the similarity.
    self_loops : bool
        Whether the diagonal counts, as the equation is printed. Without it, as in scipy's
        Laplacian, which the authors used, what a row is to itself plays no part.

    Returns
    -------
    ndarray, shape (n, components)
        Each eigenvector's largest entry (the first of them) is positive.

    Raises
    ------
    ValueError
        If the number of components does not fit, or the similarity cannot be used.

    Examples
    --------
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
    largest = np.argmax(np.round(np.abs(vectors), 9), axis=0)
    return np.asarray(vectors * np.sign(vectors[largest, np.arange(components)]))


def row_cosines(rows: ArrayLike) -> FloatArray:
    """Cosines between rows, shape (n, n); a row of zeros is like itself only."""
    x = np.asarray(rows, dtype=np.float64)
    length = np.linalg.norm(x, axis=1, keepdims=True)
    unit = x / np.where(length > 0, length, 1.0)
    cosines = np.clip(unit @ unit.T, -1.0, 1.0)
    np.fill_diagonal(cosines, 1.0)
    return (cosines + cosines.T) / 2


def spectral_clusters(embedding: ArrayLike, clusters: int, seed: int) -> IntArray:
    """Cluster the rows of an embedding by k-means.

    Parameters
    ----------
    embedding : array, shape (n, components)
    clusters : int
        From 1 to n.
    seed : int

    Returns
    -------
    ndarray of int, shape (n,)
        Clusters by size, the largest 0; of equally large ones that with the first row.
    """
    labels = representatives(np.asarray(embedding, dtype=np.float64), clusters, seed, RESTARTS)[1]
    first = [int(np.argmax(labels == cluster)) for cluster in range(clusters)]
    order = np.lexsort((np.array(first), -np.bincount(labels, minlength=clusters)))
    place = np.empty(clusters, dtype=np.intp)
    place[order] = np.arange(clusters)
    return place[labels]
