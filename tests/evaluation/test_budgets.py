"""Budgets: numbers of items, and shares of each task's items."""

import numpy as np
import pytest

from fewbench import Evaluation
from fewbench.errors import MethodError
from fewbench.evaluation.opening import count_items, share_note
from fewbench.testing import simulate

SIZES = [37, 81, 121, 161]
PARTS = [20, 20, 24, 32]  # a fifth


@pytest.fixture(scope="module")
def scores():
    made = simulate(n_models=30, n_items=400, n_tasks=4, seed=3)
    assert np.bincount(made.task_of).tolist() == SIZES
    return made


def test_a_share_is_of_each_task_with_at_least_twenty_items(scores):
    assert count_items("20%", scores) == sum(PARTS)
    assert count_items("0.1 %", scores) == 80
    assert count_items("100%", scores) == 400
    assert count_items(" 50 ", scores) == count_items(50, scores) == 50
    assert type(count_items(np.int64(50), scores)) is int


@pytest.mark.parametrize("text", ["", "%", "ten", "0%", "101%", "-5%", "nan%", "0.1", 10.5])
def test_other_words_are_refused(scores, text):
    with pytest.raises(MethodError, check=lambda error: error.kind == "range"):
        count_items(text, scores)


def test_a_share_reaches_the_tasks(scores):
    evaluation = Evaluation(scores, "stratified(minimum=20)+mean", "20%", ["new"])
    while asked := evaluation.ask():
        evaluation.tell("new", dict.fromkeys(asked["new"], 1.0))
    run = evaluation.record.answered("new")
    assert np.bincount(scores.task_of[run]).tolist() == PARTS


def test_a_share_says_why_it_is_not_that_share_of_all(scores):
    assert share_note("20%", scores) == "96 items: 20% of each task's items, at least 20 of each"
    assert share_note("50", scores) is share_note(50, scores) is None
