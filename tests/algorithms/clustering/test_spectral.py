"""Laplacian eigenmaps against scipy and against the equation, and the clusters they show."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import subspace_angles
from scipy.sparse.csgraph import laplacian

from fewbench.algorithms.clustering.kmeans import eigenmaps, row_cosines, spectral_clusters


def similarity(n, seed):
    s = np.random.default_rng(seed).random((n, n))
    return (s + s.T) / 2


def planted(sizes, seed=0, within=1.0, between=0.1):
    """Blocks of like rows in a shuffled order, and each row's block."""
    rng = np.random.default_rng(seed)
    block = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    noise = rng.random((len(block), len(block))) * 0.05
    return np.where(np.equal.outer(block, block), within, between) + noise + noise.T, block


@given(st.integers(2, 15), st.integers(0, 1000), st.booleans(), st.data())
def test_are_the_first_eigenvectors(n, seed, self_loops, data):
    s = similarity(n, seed)
    if self_loops:  # as Eq. 4 is printed
        d = np.diag(s.sum(axis=1) ** -0.5)
        whole = np.eye(n) - d @ s @ d
    else:
        whole = laplacian(s, normed=True)  # drops the diagonal
    k = data.draw(st.integers(1, n - 1))
    values, vectors = np.linalg.eigh(whole)
    found = eigenmaps(s, k, self_loops=self_loops)
    assert found.shape == (n, k)
    np.testing.assert_allclose(found.T @ found, np.eye(k), atol=1e-8)
    np.testing.assert_allclose(whole @ found, found * values[:k], atol=1e-8)
    if values[k] - values[k - 1] > 1e-3:
        assert subspace_angles(found, vectors[:, :k]).max() < 1e-6


def test_self_loops_make_a_difference():
    s = similarity(8, 1) + np.diag(np.arange(8.0))
    assert not np.allclose(abs(eigenmaps(s, 3)), abs(eigenmaps(s, 3, self_loops=True)), atol=0.01)
    without = s - np.diag(np.diag(s))
    np.testing.assert_allclose(eigenmaps(s, 3), eigenmaps(without, 3), atol=1e-9)


@pytest.mark.parametrize("components", [-1, 0, 6, 7])
def test_all_eigenvectors_are_refused(components):
    with pytest.raises(ValueError, match="from 1 to 5"):
        eigenmaps(similarity(6, 0), components)


@pytest.mark.parametrize(
    ("s", "said"),
    [
        ([[1.0, -0.1], [-0.1, 1.0]], "symmetric"),
        ([[1.0, 0.5], [0.2, 1.0]], "symmetric"),
        ([[1.0, np.nan], [np.nan, 1.0]], "symmetric"),
        ([[1.0, 0.5, 0.5], [0.5, 1.0, 0.5]], "symmetric"),
        (1.0, "symmetric"),
        ([[1.0, 0.0], [0.0, 1.0]], "like no other"),
    ],
)
def test_similarities_that_cannot_be_used(s, said):
    with pytest.raises(ValueError, match=said):
        eigenmaps(s, 1)


@given(st.integers(3, 12), st.integers(0, 1000))
def test_the_largest_entry_is_positive(n, seed):
    found = eigenmaps(similarity(n, seed), n - 1)
    largest = np.abs(found).max(axis=0)
    assert (found.max(axis=0) >= largest - 1e-8).all()


def test_the_first_of_equally_large_entries_is_positive():
    s = np.kron(np.eye(2), np.ones((3, 3))) + 0.1
    assert (eigenmaps(s, 2)[0] > 0).all()
    order = [5, 4, 3, 2, 1, 0]
    assert (eigenmaps(s[np.ix_(order, order)], 2)[0] > 0).all()


def test_row_cosines():
    rows = np.array([[3.0, 4.0], [-6.0, -8.0], [4.0, -3.0], [0.0, 0.0], [6e-9, 8e-9]])
    expected = np.eye(5)
    expected[0, 1] = expected[1, 0] = expected[1, 4] = expected[4, 1] = -1.0
    expected[0, 4] = expected[4, 0] = 1.0
    np.testing.assert_allclose(row_cosines(rows), expected, atol=1e-12)
    many = row_cosines(np.random.default_rng(0).normal(size=(30, 3)))
    assert np.array_equal(many, many.T)
    assert (np.diag(many) == 1).all()
    assert np.abs(many).max() <= 1


@pytest.mark.parametrize("seed", range(4))
def test_planted_blocks_are_found_by_size(seed):
    s, block = planted((4, 12, 7), seed)
    found = spectral_clusters(eigenmaps(s, 3), 3, seed)
    assert np.array_equal(found, np.array([2, 0, 1])[block])
    assert np.array_equal(found, spectral_clusters(eigenmaps(s, 3), 3, seed))


def test_of_equal_clusters_that_with_the_first_row_is_first():
    points = np.array([[5.0], [0.0], [5.1], [0.1], [9.0], [9.1]])
    assert spectral_clusters(points, 3, 0).tolist() == [0, 1, 0, 1, 2, 2]


@pytest.mark.parametrize("clusters", [1, 5])
def test_one_cluster_or_each_its_own(clusters):
    found = spectral_clusters(np.arange(5.0)[:, None], clusters, 0)
    assert found.tolist() == ([0] * 5 if clusters == 1 else list(range(5)))
