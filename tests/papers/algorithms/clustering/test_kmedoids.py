"""k-medoids, against brute force, the kmedoids package and its own definition."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fewbench_papers.algorithms.clustering import distances as distances_module
from fewbench_papers.algorithms.clustering.distances import (
    DistancesOnDemand,
    item_distances,
    standardised_distances,
)
from fewbench_papers.algorithms.clustering.kmedoids import (
    alternating_kmedoids,
    kmedoids,
)


def rng(seed=0):
    return np.random.default_rng(seed)


def cost_of(distances, medoids):
    return distances[:, list(medoids)].min(axis=1).sum(dtype=np.float64)


def cheapest_swap(distances, medoids):
    rest = [m for m in range(distances.shape[1]) if m not in medoids]
    return min(
        (
            cost_of(distances, [*(set(medoids) - {out}), candidate])
            for out in medoids
            for candidate in rest
        ),
        default=np.inf,
    )


def matrix_of(kind, seed, n=12, n_candidates=12):
    r = rng(seed)
    if kind == "points on a line":
        x = r.integers(0, 8, n).astype(float)
        return abs(x[:, None] - x)
    if kind == "anchored":  # near to a fixed medoid whatever the candidate
        d = matrix_of("points on a line", seed, n)
        return np.minimum(d, d[:, [0]])
    if kind == "candidates apart":
        return r.random((n, n_candidates + 5))
    return r.random((n, n_candidates)).astype(np.float32)  # neither symmetric nor 0 on i = j


KINDS = ["points on a line", "anchored", "candidates apart", "asymmetric float32"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_local_optimum_not_below_the_best_of_all_subsets(kind, k):
    for seed in range(4):
        d = matrix_of(kind, seed, 9, 9)
        found = kmedoids(d, k, rng(seed))
        optimum = min(cost_of(d, m) for m in combinations(range(d.shape[1]), k))
        resolution = 1e-5 * (1 + found.cost)
        assert found.cost >= optimum - resolution
        assert cheapest_swap(d, set(found.medoids.tolist())) >= found.cost - resolution
        if k == 1:
            assert found.cost == pytest.approx(optimum)
        many = kmedoids(d, k, rng(seed), restarts=20)
        assert many.cost == pytest.approx(optimum, rel=1e-5)


@given(
    d=arrays(
        np.float64,
        st.tuples(st.integers(1, 10), st.integers(1, 10)),
        elements=st.integers(0, 4).map(float) | st.floats(0, 10, width=32),
    ),
    seed=st.integers(0, 99),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_answer_is_consistent(d, seed, data):
    k = data.draw(st.integers(1, d.shape[1]))
    found = kmedoids(d, k, rng(seed))
    assert found.medoids.shape == (k,)
    assert (np.diff(found.medoids) > 0).all()
    assert found.cost == pytest.approx(cost_of(d, found.medoids))
    assert np.array_equal(found.labels, d[:, found.medoids].argmin(axis=1))
    assert found.medoids.dtype == found.labels.dtype == np.intp
    again = kmedoids(d, k, rng(seed))
    assert np.array_equal(found.medoids, again.medoids)
    assert found.swaps == again.swaps
    # the layout of the matrix in memory is no matter
    other = kmedoids(np.asfortranarray(d), k, rng(seed))
    assert np.array_equal(found.medoids, other.medoids)


def starting_with(medoids):
    """A generator that draws these first medoids."""
    return SimpleNamespace(choice=lambda *_, **__: np.array(medoids))


def test_all_zero_distances_and_duplicates():
    for k in (1, 2, 5):
        found = kmedoids(np.zeros((5, 5)), k, rng())
        assert found.cost == 0
        assert found.labels.tolist() == [0] * 5
    # three different points, four medoids: one of them is nearest to nothing
    x = np.repeat([0.0, 5.0, 9.0], 6)
    for seed in range(10):
        assert kmedoids(abs(x[:, None] - x), 4, rng(seed)).cost == 0


def test_ties_go_to_the_lowest_index():
    assert kmedoids(np.ones((3, 4)), 1, rng()).medoids.tolist() == [0]
    assert kmedoids(np.ones((3, 4)), 2, starting_with([3, 2])).labels.tolist() == [0, 0, 0]
    d = np.array([[9.0, 1, 1, 0, 0], [9, 9, 9, 0, 0]])  # 3 and 4 would do as well
    assert kmedoids(d, 2, starting_with([1, 2])).medoids.tolist() == [1, 3]


@pytest.mark.parametrize("kind", ["models of any ability", "equal weights", "repeated items"])
@pytest.mark.parametrize("k", [1, 2, 12])
def test_rows_on_demand_give_the_clustering_of_the_matrix(kind, k, monkeypatch):
    monkeypatch.setattr(distances_module, "MANY", 100)
    for seed in range(5):
        able = 0.5 if kind == "equal weights" else rng(seed).random(25)
        columns = (rng(seed).random((700, 25)) < able).astype(float)
        if kind == "equal weights":
            columns[350:] = 1 - columns[:350]
        if kind == "repeated items":
            columns[400:] = columns[:300]
        on_demand, matrix = (
            standardised_distances(columns),
            item_distances(columns, "manhattan", True),
        )
        assert isinstance(on_demand, DistancesOnDemand)
        assert np.array_equal(on_demand[:], matrix)
        assert abs(on_demand.rough(0, 700) - matrix).max() <= on_demand.error + 1e-6
        found, expected = (kmedoids(d, k, rng(seed)) for d in (on_demand, matrix))
        assert found.medoids.tolist() == expected.medoids.tolist()
        assert (found.cost, found.swaps) == (expected.cost, expected.swaps)


def test_of_graded_scores_there_is_a_matrix(monkeypatch):
    monkeypatch.setattr(distances_module, "MANY", 10)
    assert isinstance(standardised_distances(rng().random((30, 4))), np.ndarray)


def test_restarts_keep_the_cheapest_and_an_optimum_stays():
    d = item_distances((rng(1).random((200, 15)) < 0.5).astype(float))
    r = rng(7)
    singles = [kmedoids(d, 8, r).cost for _ in range(4)]
    assert kmedoids(d, 8, rng(7), restarts=4).cost == min(singles)
    found = kmedoids(d, 8, rng(7))
    kept = kmedoids(d, 8, starting_with(found.medoids))
    assert kept.swaps == 0
    assert kept.passes == 1
    assert np.array_equal(kept.medoids, found.medoids)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k must be from 1 to the number of candidates, 4; got 0"),
        ({"k": 5}, "k must be from 1 to the number of candidates, 4; got 5"),
        ({"distances": np.full((4, 4), np.nan)}, "finite"),
        ({"distances": np.array([[0, np.inf], [1, 0]])}, "finite"),
        ({"distances": np.zeros(4)}, "matrix"),
        ({"distances": np.zeros((0, 4))}, "non-empty"),
        ({"restarts": 0}, "restarts"),
    ],
)
def test_bad_input_is_named(arguments, message):
    arguments = {"distances": 1 - np.eye(4), "k": 2, "rng": rng(), **arguments}
    with pytest.raises(ValueError, match=message):
        kmedoids(**arguments)


@pytest.mark.parametrize("k", [5, 20])
def test_as_good_as_the_kmedoids_package(k):
    package = pytest.importorskip("kmedoids")
    d = item_distances((rng(2).random((500, 30)) < rng(3).random((500, 1))).astype(float))
    theirs = [package.fasterpam(d, k, init="random", random_state=s).loss for s in range(8)]
    ours = [kmedoids(d, k, rng(s)).cost for s in range(8)]
    assert np.mean(ours) <= 1.005 * np.mean(theirs)


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


@pytest.mark.parametrize("k", [1, 3])
def test_medoids_beside_others_that_stay_are_those_of_distances_cut_at_them(k):
    points = rng(1).random((60, 3))
    d = np.abs(points[:, None] - points).sum(axis=2)
    near = d[:, [7, 30]].min(axis=1)
    beside = kmedoids(d, k, rng(2), near=near)
    cut = kmedoids(np.minimum(d, near[:, None]), k, rng(2))
    assert beside.medoids.tolist() == cut.medoids.tolist()
    assert beside.cost == cut.cost
