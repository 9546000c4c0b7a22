"""Errors against the number of tasks."""

import numpy as np
import pytest

from fewbench.methods.tasks import TaskMatrix, read_chooser
from fewbench.study.tasks.curves import curves, differences, sets_of
from fewbench.study.tasks.judgement import nrmse, random_tasks


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
