"""How much easier or harder chosen tasks are than all."""

import numpy as np
import pytest

from fewbench.errors import MethodError
from fewbench_papers.bento import TaskMatrix
from fewbench_papers.bento.choosers import mismatch


def test_mismatch_is_a_share_of_the_mean_by_questions_or_tasks():
    names, sizes, ease = ("a", "b", "c"), np.array([10, 30, 60]), np.array([0.9, 0.5, 0.2])
    by_questions = TaskMatrix(np.eye(3), names, sizes, ease, "x")
    mean = (9 + 15 + 12) / 100
    found = mismatch(by_questions, np.array([0, 1]))
    assert found == pytest.approx((24 / 40 - mean) / mean)
    by_tasks = TaskMatrix(np.eye(3), names, sizes, ease, "x", True)
    assert mismatch(by_tasks, np.array([0, 1])) == pytest.approx((0.7 - 1.6 / 3) / (1.6 / 3))
    losses = TaskMatrix(np.eye(3), names, sizes, -ease, "x")
    assert mismatch(losses, np.array([2])) == pytest.approx((-0.2 + mean) / mean)
    nothing = TaskMatrix(np.eye(3), names, sizes, np.zeros(3), "x")
    assert mismatch(nothing, np.array([1])) == 0


def test_without_known_ease_there_is_no_mismatch():
    matrix = TaskMatrix(np.eye(4), tuple("abcd"), np.ones(4, dtype=int), None, "x")
    with pytest.raises(MethodError, check=lambda error: error.kind == "missing"):
        mismatch(matrix, np.array([1]))
