"""k-means and spectral clusters against peers."""

import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import subspace_angles
from scipy.sparse.csgraph import laplacian

from fewbench_papers.algorithms.clustering.kmeans import (
    eigenmaps,
    line_clusters,
    representatives,
    row_cosines,
    spectral_clusters,
)


def blobs(n, k, dimensions=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 20, (k, dimensions))[np.arange(n) % k] + rng.normal(0, 1, (n, dimensions))


@pytest.mark.parametrize("seed", range(4))
def test_far_groups_are_found_and_the_member_nearest_each_mean_chosen(seed):
    points = blobs(60, 5, seed=seed)
    chosen, labels = representatives(points, 5, seed, restarts=10)
    groups = np.arange(60) % 5
    assert len(set(zip(groups, labels, strict=True))) == 5
    for cluster, point in enumerate(chosen):
        members = np.flatnonzero(labels == cluster)
        gap = ((points[members] - points[members].mean(axis=0)) ** 2).sum(axis=1)
        assert point == members[gap.argmin()]


@given(st.integers(1, 30), st.integers(1, 4), st.integers(1, 6), st.integers(0, 99))
def test_every_cluster_has_a_member_of_its_own(n, dimensions, levels, seed):
    """Few levels: many points coincide, and there may be fewer distinct ones than clusters."""
    points = np.random.default_rng(seed).integers(0, levels, (n, dimensions)).astype(float)
    for k in {1, (n + 1) // 2, n}:
        chosen, labels = representatives(points, k, seed)
        assert len(set(chosen.tolist())) == k
        assert labels[chosen].tolist() == list(range(k))
        assert sorted(set(labels.tolist())) == list(range(k))


@pytest.mark.parametrize("gap", [1e-9, 1e-15, 1e-200])
def test_points_that_differ_by_less_than_k_means_can_tell(gap):
    points = np.zeros((40, 3))
    points[:, 0] = gap * np.arange(40)
    points[20:, 1] = 1.0
    chosen, labels = representatives(points, 12, 0)
    assert len(set(chosen.tolist())) == 12
    assert labels[chosen].tolist() == list(range(12))


@pytest.mark.parametrize("k", [5, 33, 150])
def test_the_chosen_are_those_of_a_table_of_all_points_and_centres(k):
    """In groups of three no two members are as near their mean, but for some."""
    points = np.random.default_rng(k).normal(size=(3 * k, 4))
    chosen, labels = representatives(points, k, 0)
    centres = np.array([points[labels == cluster].mean(axis=0) for cluster in range(k)])
    squared = ((points[:, None] - centres) ** 2).sum(axis=2)
    squared[labels[:, None] != np.arange(k)] = np.inf
    np.testing.assert_allclose(squared[chosen, np.arange(k)], squared.min(axis=0), rtol=1e-9)


def test_of_members_as_near_the_first_is_chosen():
    points = np.array([[0.0, 0], [2, 0], [0, 50], [1, 50], [2, 50], [1, 50]])
    chosen, _ = representatives(points, 2, 0)
    assert sorted(chosen.tolist()) == [0, 3]


def test_it_takes_no_table_of_all_points_and_centres():
    points = np.random.default_rng(0).normal(size=(2400, 3))
    representatives(points[:100], 40, 0)  # imports what it needs
    tracemalloc.start()
    representatives(points, 1200, 0)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2400 * 1200 * 8 / 2


def test_weights_draw_the_centre():
    points = np.array([[0.0], [1.0], [4.0], [100.0], [101.0], [105.0]])
    plain, _ = representatives(points, 2, 0)
    assert sorted(plain.tolist()) == [1, 4]
    weights = np.array([1.0, 1.0, 50.0, 50.0, 1.0, 1.0])
    drawn, _ = representatives(points, 2, 0, weights=weights)
    assert sorted(drawn.tolist()) == [2, 3]
    same = representatives(points, 2, 0, weights=np.ones(6))
    assert np.array_equal(same[0], plain)


coarse = st.lists(st.integers(0, 20).map(lambda whole: whole / 20), min_size=1, max_size=9)


def spread(points, labels):
    return sum(
        ((points[labels == at] - points[labels == at].mean()) ** 2).sum()
        for at in set(labels.tolist())
    )


@given(coarse, st.integers(1, 6))
def test_no_way_to_cut_the_line_is_better(points, k):
    points = np.array(points)
    distinct = np.unique(points)
    labels = line_clusters(points, k)
    assert labels.max() + 1 == len(set(labels.tolist())) == min(k, len(distinct))
    cuts = combinations(distinct[1:], min(k, len(distinct)) - 1)
    least = min(
        spread(points, np.searchsorted(np.array(cut), points, side="right")) for cut in cuts
    )
    assert spread(points, labels) == pytest.approx(least, abs=1e-12)


@given(coarse, st.integers(1, 6), st.integers(0, 10**6))
def test_clusters_are_numbered_upwards_and_the_order_of_points_is_no_matter(points, k, seed):
    points = np.array(points)
    labels = line_clusters(points, k)
    assert (np.diff(labels[np.argsort(points)]) >= 0).all()
    order = np.random.default_rng(seed).permutation(len(points))
    assert np.array_equal(line_clusters(points[order], k), labels[order])


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
