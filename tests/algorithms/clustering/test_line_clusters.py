"""k-means on a line, against every way to cut it and against scikit-learn."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.algorithms.clustering.line_clusters import line_clusters

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


def test_at_least_as_good_as_random_starts():
    from sklearn.cluster import KMeans

    points = np.random.default_rng(0).beta(0.5, 1.5, 3000)
    labels = line_clusters(points, 10)
    fitted = KMeans(10, n_init=3, random_state=0).fit(points[:, None])
    assert spread(points, labels) <= fitted.inertia_ + 1e-9
    assert spread(points, labels) > 0.9 * fitted.inertia_
