"""The number of abilities."""

import numpy as np
import pytest

from fewbench.algorithms.irt import choose_dimensions


def chosen(values, seed=0, **settings):
    return choose_dimensions(values, np.random.default_rng(seed), **settings)


@pytest.mark.parametrize("dimensions", [1, 2, 5])
def test_it_is_found_again(simulated, dimensions):
    values = simulated(20, 250, 400, dimensions, missing=0.1).values
    assert chosen(values) == dimensions


def test_the_same_seed_gives_the_same_number(simulated):
    values = simulated(22, 60, 120, 3).values
    assert chosen(values, 5) == chosen(values, 5)


def test_answers_at_random_have_one_ability():
    values = (np.random.default_rng(0).random((80, 150)) < 0.6).astype(float)
    assert chosen(values) == 1


def test_of_many_items_a_thousand_are_enough(simulated):
    assert chosen(simulated(23, 120, 1500, 2).values) == 2


@pytest.mark.parametrize("shape", [(1, 9), (2, 30), (30, 1), (2, 2)])
def test_there_are_fewer_abilities_than_models_and_than_items(shape):
    values = (np.random.default_rng(1).random(shape) < 0.5).astype(float)
    assert chosen(values) == 1


def test_only_candidates_are_chosen_and_those_too_many_are_left_out(simulated):
    values = simulated(24, 250, 200, 2).values
    assert chosen(values, candidates=(3, 400)) == 3
    assert chosen(values, candidates=(1, 4)) == 4


def test_rows_without_answers_are_survived(simulated):
    values = simulated(25, 60, 80).values
    values[3], values[:, 4] = np.nan, np.nan
    assert chosen(values) == 1
    assert chosen(np.full((5, 6), np.nan)) == 1
