"""Similarities by cluster and the strongest transfers."""

import numpy as np
import pytest

from fewbench.methods.tasks import Similarity, TaskMatrix
from fewbench.study.tasks.maps import cluster_order, similarity_maps, strongest_transfers

NAMES = ("a", "b", "c", "d", "e", "f")
CLUSTERS = {"a": 1, "b": 0, "c": 1, "d": 2, "e": 0, "f": 0}


def matrix(seed=0):
    rows = np.random.default_rng(seed).random((6, 6))
    return TaskMatrix(rows, NAMES, np.ones(6, dtype=int), rows.mean(axis=0), "x")


def test_tasks_go_cluster_by_cluster_in_their_own_order():
    order = cluster_order(NAMES, CLUSTERS)
    assert [NAMES[task] for task in order] == ["b", "e", "f", "a", "c", "d"]


def test_maps_are_the_similarities_in_that_order():
    given, settings = matrix(), Similarity(components=3)
    found = similarity_maps(given, settings, CLUSTERS)
    assert found["tasks"] == ["b", "e", "f", "a", "c", "d"]
    assert found["clusters"] == [0, 0, 0, 1, 1, 2]
    sim, le = settings.sim(given.rows), settings.le(given.rows)
    for i, one in enumerate(found["tasks"]):
        for j, other in enumerate(found["tasks"]):
            at = NAMES.index(one), NAMES.index(other)
            assert (found["sim"][i][j], found["le"][i][j]) == (sim[at], le[at])


@pytest.mark.parametrize(("share", "number"), [(0.07, 2), (0.5, 15), (1.0, 30), (0.001, 1)])
def test_the_strongest_share_of_the_transfers(share, number):
    given = matrix()
    found = strongest_transfers(given, CLUSTERS, share)
    above = given.rows - given.rows.mean(axis=0)
    expected = {(NAMES[i], NAMES[j]): above[i, j] for i in range(6) for j in range(6) if i != j}
    best = sorted(expected, key=expected.get, reverse=True)[:number]
    arcs = [(found["tasks"][i], found["tasks"][j]) for i, j, _ in found["arcs"]]
    assert arcs == best
    np.testing.assert_allclose([value for *_, value in found["arcs"]], [expected[p] for p in best])
    assert found["share"] == share


def test_easy_targets_do_not_draw_all_arcs():
    given = matrix()
    rows = given.rows + np.array([0, 0, 5, 0, 0, 0])
    easier = TaskMatrix(rows, NAMES, given.sizes, None, "x")
    one, other = strongest_transfers(given, CLUSTERS), strongest_transfers(easier, CLUSTERS)
    assert [arc[:2] for arc in one["arcs"]] == [arc[:2] for arc in other["arcs"]]
