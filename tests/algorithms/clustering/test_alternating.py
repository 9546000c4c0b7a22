"""Alternating k-medoids by what defines it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbench.algorithms.clustering.alternating import alternating_kmedoids
from fewbench.algorithms.clustering.distances import item_distances


@given(st.integers(4, 30), st.integers(1, 4), st.integers(0, 3), st.integers(0, 999))
@settings(max_examples=60, deadline=None)
def test_no_free_medoid_would_move(n, k, n_anchors, seed):
    """In the end every free medoid is a member of least total distance in its cluster."""
    k, n_anchors = min(k, n - 3), min(n_anchors, 3)
    rng = np.random.default_rng(seed)
    distances = item_distances(rng.random((n, 5)))
    anchors = rng.choice(n, n_anchors, replace=False)
    found = alternating_kmedoids(distances, k, rng, anchors=anchors)
    assert len({*found, *anchors}) == k + n_anchors
    medoids = np.concatenate([anchors, found]).astype(int)
    labels = distances[:, medoids].argmin(axis=1)
    for cluster in range(n_anchors, len(medoids)):
        members = np.flatnonzero(labels == cluster)
        totals = distances[np.ix_(members, members)].sum(axis=1)
        assert totals[members == medoids[cluster]][0] == pytest.approx(totals.min(), rel=1e-5)


def test_items_that_are_all_the_same():
    found = alternating_kmedoids(np.zeros((6, 6), np.float32), 3, np.random.default_rng(0))
    assert len(set(found)) == 3


def test_rounds_are_bounded():
    distances = item_distances(np.random.default_rng(0).random((300, 4)))

    def cost(rounds):
        found = alternating_kmedoids(distances, 8, np.random.default_rng(1), max_rounds=rounds)
        return distances[:, found].min(axis=1).sum()

    assert cost(100) < cost(1)
