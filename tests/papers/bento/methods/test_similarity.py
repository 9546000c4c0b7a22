"""Similarities of tasks, against scipy and the equations."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from fewbench.errors import MethodError
from fewbench_papers.bento import Similarity
from fewbench_papers.bento.matrix import default_components, is_near_identity

SCALINGS = ("centre", "sum", "z-score")


def matrix(n=7, m=7, seed=0):
    return np.random.default_rng(seed).random((n, m)) + 0.1


def scaled(a, scaling):
    """By the words of the page, column by column."""
    columns = []
    for column in a.T:
        if scaling == "sum":
            column = column / sum(column)
        else:
            column = column - sum(column) / len(column)
            if scaling == "z-score":
                column = column / np.sqrt(sum(column**2) / len(column))
        columns.append(column)
    return np.array(columns).T


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("columns", [2, 7])
def test_distances_are_scipy_s_of_the_scaled_rows(scaling, columns):
    a = matrix(7, columns)
    expected = squareform(pdist(scaled(a, scaling)))
    np.testing.assert_allclose(Similarity(scaling).distances(a), expected, atol=1e-12)


@pytest.mark.parametrize(("settings", "t"), [({}, 1.5), ({"t": 1.01}, 1.01), ({"t": 40}, 40)])
def test_similarity_is_t_times_the_largest_distance_less_each(settings, t):
    settings = Similarity(**settings)
    e, s = settings.distances(matrix()), settings.sim(matrix())
    np.testing.assert_allclose(s, t * e.max() - e)
    assert s.min() > 0
    assert np.array_equal(s, s.T)


@pytest.mark.parametrize("t", [1.0, 0.5, -3, 1001, float("nan")])
def test_t_that_leaves_no_similarity_or_no_digits_is_refused(t):
    with pytest.raises(MethodError, match=r"t is .*1\.01 to 1000"):
        Similarity(t=t)


def test_a_target_that_is_0_for_all_has_no_share():
    a = matrix()
    a[:, 2] = 0.0
    with pytest.raises(MethodError, match=r"0.*scaling=centre"):
        Similarity("sum").distances(a)
    for scaling in ("centre", "z-score"):
        assert np.isfinite(Similarity(scaling).sim(a)).all()


def test_tasks_that_are_all_the_same():
    a = np.tile(matrix(1, 5), (6, 1))
    for scaling in SCALINGS:
        settings = Similarity(scaling, components=2)
        assert np.allclose(settings.sim(a), settings.sim(a)[0, 0], atol=1e-7)
        assert np.isfinite(settings.le(a)).all()
    assert Similarity().clusters(a, 0).shape == (6,)


@pytest.mark.parametrize("components", [1, 7, 8, 100])
def test_as_many_eigenvectors_as_tasks_are_refused_and_fewer_than_two(components):
    with pytest.raises(MethodError, match=rf"{components} eigenvectors of 7.*from 2 to 6"):
        Similarity(components=components).le(matrix())


def test_all_eigenvectors_would_say_nothing():
    """What is refused: their cosines are those of an orthogonal matrix."""
    vectors = np.linalg.eigh(Similarity().sim(matrix()))[1]
    assert is_near_identity(vectors @ vectors.T)
    assert not is_near_identity(Similarity(components=6).le(matrix()))
    assert not is_near_identity(Similarity().le(matrix()))
    a = matrix(30, 30)
    assert [is_near_identity(Similarity(components=k).le(a)) for k in (26, 29)] == [False, True]


@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 2), (6, 2), (9, 3), (29, 9), (30, 10), (90, 10)])
def test_components_by_default(n, k):
    assert default_components(n) == k
    assert Similarity().embedding(matrix(n)).shape == (n, k)
