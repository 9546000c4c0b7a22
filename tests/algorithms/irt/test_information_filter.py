"""The information filter, against going through the abilities by hand."""

import numpy as np
import pytest

from fewbench.algorithms.irt.information_filter import ability_grid, informative_on_a_grid


def test_for_each_ability_the_best_item_that_is_left():
    information = np.random.default_rng(0).random((6, 9))
    taken: list[int] = []
    for row in information:
        taken.append(max((at for at in range(9) if at not in taken), key=lambda at: row[at]))
    assert informative_on_a_grid(information).tolist() == taken


def test_rounding_does_not_part_items_that_tell_as_much():
    information = np.array([[0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2]])[:, ::-1]
    assert information[0, 0] < information[0, 1]  # by the last bit
    assert informative_on_a_grid(information).tolist() == [0, 1]


def test_all_items_when_there_are_as_many_abilities():
    information = np.ones((5, 5))
    assert sorted(informative_on_a_grid(information).tolist()) == [0, 1, 2, 3, 4]
    assert (information == 1).all()  # left as it was


@pytest.mark.parametrize("grid", ["quantiles", "range"])
@pytest.mark.parametrize("count", [1, 7, 40])
def test_the_grid_is_increasing_and_within_the_abilities(grid, count):
    abilities = np.random.default_rng(1).normal(size=12) ** 3
    found = ability_grid(abilities, count, grid)
    assert found.shape == (count,)
    assert (np.diff(found) >= 0).all()
    assert abilities.min() <= found[0] <= found[-1] <= abilities.max()


def test_quantiles_follow_the_models_and_the_range_does_not():
    abilities = np.append(np.linspace(0, 1, 99), 100.0)
    assert (ability_grid(abilities, 10, "quantiles") < 1).sum() == 10
    assert (ability_grid(abilities, 10, "range") < 1).sum() == 0
