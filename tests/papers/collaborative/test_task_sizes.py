"""How a budget is shared among tasks and rounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.algorithms.sampling import items_of_share, task_sizes
from fewbench_papers.collaborative.collaborative import in_rounds


@st.composite
def shared(draw):
    sizes = np.array(draw(st.lists(st.integers(1, 400), min_size=1, max_size=30)))
    budget = draw(st.integers(1, int(sizes.sum())))
    return budget, sizes, draw(st.integers(0, 40))


@given(shared())
def test_the_budget_is_spent_minimum_first_and_then_in_one_ratio(given_):
    budget, sizes, minimum = given_
    found, least = task_sizes(budget, sizes, minimum), np.minimum(sizes, minimum)
    assert found.sum() == budget
    assert ((found >= 0) & (found <= sizes)).all()
    if budget < least.sum():
        assert (found <= least).all()
        # As level as can be: who has less than another has one less at most, or is whole.
        assert (found[found < sizes] >= found.max() - 1).all()
        return
    assert (found >= least).all()
    if (above := found > least).any():  # some ratio explains all: each is within one item of it
        assert ((found - 1) / sizes)[above].max() < ((found + 1) / sizes).min() + 1e-9


def test_small_tasks_are_taken_whole_and_the_paper_s_ratio_is_kept():
    sizes = np.array([15, 100, 199, 300, 1000])
    found = task_sizes(15 + 20 + 20 + 30 + 100, sizes, 20)
    assert found.tolist() == [15, 20, 20, 30, 100]


def test_fewer_items_than_tasks_go_to_the_largest():
    assert task_sizes(2, np.array([5, 30, 10, 40]), 20).tolist() == [0, 1, 0, 1]


@given(st.lists(st.integers(0, 200), min_size=1, max_size=20).filter(any), st.integers(1, 12))
def test_rounds_add_up_and_none_is_empty(sizes, rounds):
    each = in_rounds(np.array(sizes), rounds)
    assert each.sum(axis=0).tolist() == sizes
    assert (each.sum(axis=1) > 0).all()
    assert 1 <= len(each) <= rounds
    assert (each >= 0).all()
    for task in each.T:
        assert task.max() - task.min() <= 1


@pytest.mark.parametrize("rounds", [1, 3])
def test_the_first_round_has_an_item_of_every_task_that_gets_one(rounds):
    assert (in_rounds(np.array([1, 2, 30]), rounds)[0] > 0).all()


MATH_AND_MUSR = np.array([132, 280, 154, 193, 135, 250, 256, 250])


def test_a_share_counts_at_least_twenty_items_a_task():
    assert items_of_share(0.1, MATH_AND_MUSR) == 184
    assert task_sizes(184, MATH_AND_MUSR, 20).tolist() == [20, 28, 20, 20, 20, 25, 26, 25]
    assert items_of_share(0.1, np.array([3, 19, 21, 500])) == 3 + 19 + 20 + 50
    assert items_of_share(1.0, MATH_AND_MUSR) == MATH_AND_MUSR.sum()


@given(shared(), st.floats(0.001, 1))
def test_the_items_of_a_share_are_that_share_of_each_task(given_, share):
    sizes = given_[1]
    found = task_sizes(items_of_share(share, sizes) or 1, sizes, 20)
    wanted = np.minimum(np.maximum(share * sizes, 20), sizes)
    assert (np.abs(found - wanted) <= 1 + np.abs(found.sum() - wanted.sum())).all()
