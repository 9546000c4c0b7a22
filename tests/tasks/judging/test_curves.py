"""Curves over numbers of tasks, and maps of similarities and transfers."""

import numpy as np
import pytest

from fewbench.tasks import Similarity, TaskMatrix, read_chooser
from fewbench.tasks.curves import (
    cluster_order,
    curves,
    differences,
    sets_of,
    similarity_maps,
    strongest_transfers,
)
from fewbench.tasks.judgement import nrmse, random_tasks


@pytest.mark.parametrize("method", ["bento-sim", "bento-le(components=3)", "tasks-medoids"])
def test_sets_are_what_the_method_chooses(transfer, method):
    matrix = TaskMatrix.of_transfer(transfer)
    found = sets_of(method, matrix, (1, 2, 3, 5), 2)
    assert list(found) == [1, 2, 3, 5]
    for k, tasks in found.items():
        assert np.array_equal(tasks, read_chooser(method).order(matrix, k, 2).tasks)


def test_every_method_at_every_number(known):
    own = {1: np.array([3]), 3: np.array([3, 1, 0])}
    other = {2: np.array([5, 4]), 3: np.array([5, 4, 1])}
    found = curves(known, {"own": own, "other": other}, "own", 1)
    assert found.k == [1, 2, 3]
    assert found.methods["own"][1] is None
    assert found.methods["other"][0] is None
    for name, sets in (("own", own), ("other", other)):
        for k, tasks in sets.items():
            expected = nrmse(known.reduced(tasks), known.full)
            assert found.methods[name][found.k.index(k)] == pytest.approx(float(expected))
    assert found.random_questions[1] is None
    assert found.random_questions[2] < found.random_questions[0]
    for place, k in enumerate(found.k):
        everything = random_tasks(known, k, 99, 3000)
        assert found.random_mean[place] == pytest.approx(everything.mean(), rel=0.1)
        assert found.random_low[place] < found.random_mean[place] < found.random_high[place]
    assert found.to_dict()["chosen"] == "own"
    assert curves(known, {"own": own, "other": other}, "own", 1) == found


def test_differences_are_of_the_same_models(known):
    one = {k: np.arange(k) for k in (1, 2, 3)}
    other = {k: np.arange(k)[::-1] + 1 for k in (2, 3, 4)}
    found = differences(known, one, other, 0)
    assert found.k == [2, 3]
    for place, k in enumerate(found.k):
        own = nrmse(known.reduced(one[k]), known.full) - nrmse(known.reduced(other[k]), known.full)
        assert found.sim_minus_le[place] == pytest.approx(float(own))
        assert found.low[place] <= found.sim_minus_le[place] <= found.high[place]
    none = differences(known, one, one, 0)
    assert none.sim_minus_le == none.low == none.high == [0.0, 0.0, 0.0]
    swapped = differences(known, other, one, 0)
    np.testing.assert_allclose(swapped.low, -np.array(found.high))


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
