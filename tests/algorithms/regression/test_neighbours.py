import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from fewbench.algorithms.regression.neighbours import nearest

METRICS = ["cosine", "euclidean"]


@pytest.mark.parametrize("metric", METRICS)
@given(st.integers(0, 999), st.integers(1, 20), st.integers(1, 30), st.integers(1, 20))
def test_those_of_scikit_learn(metric, seed, n, features, k):
    rng = np.random.default_rng(seed)
    among, rows = rng.normal(size=(n, features)), rng.normal(size=(5, features))
    if metric == "cosine" and features == 1:
        return  # all are tied
    k = min(k, n)
    fitted = NearestNeighbors(n_neighbors=k, metric=metric, algorithm="brute").fit(among)
    assert np.array_equal(nearest(rows, among, k, metric), fitted.kneighbors(rows)[1])


@pytest.mark.parametrize("metric", METRICS)
def test_ties_go_to_the_lowest_index(metric):
    among = np.array([[0.3, 0.1], [0.1, 0.7], [0.3, 0.1], [0.3, 0.1]])
    rows = among[[2, 1]]
    assert nearest(rows, among, 2, metric).tolist() == [[0, 2], [1, 0]]
    assert nearest(rows, among, 4, metric).shape == (2, 4)
    with pytest.raises(ValueError, match="5 nearest are asked for, there are 4"):
        nearest(rows, among, 5, metric)


@given(st.integers(0, 999), st.integers(0, 30))
def test_copies_tie_wherever_they_stand(seed, place):
    """However a sum is rounded in its row of the matrix product."""
    rng = np.random.default_rng(seed)
    among = rng.random((31, 37))
    among[place] = among[30]
    row = among[30:] + 0.01
    for metric in METRICS:
        assert nearest(row, among, 1, metric)[0, 0] == place


def test_rows_of_zeros():
    assert nearest(np.zeros((1, 3)), np.eye(3), 1, "cosine").tolist() == [[0]]
    assert nearest(np.eye(3)[[1]], np.zeros((2, 3)), 2, "cosine").tolist() == [[0, 1]]
