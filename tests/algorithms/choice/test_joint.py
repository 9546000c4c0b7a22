"""Joint choice of columns and weights, and the projection it needs."""

import numpy as np
import pytest

from fewbench.algorithms.choice.linear_choice import (
    Adam,
    choose_jointly,
    onto_simplex,
    weights_by_steps,
)


@pytest.mark.parametrize("total", [1.0, 3.0, 7.0])
def test_the_projection_is_the_nearest_point(total):
    rng = np.random.default_rng(0)
    values = rng.normal(0.5, 1.0, 7)
    made = onto_simplex(values, total)
    assert made.sum() == pytest.approx(total)
    assert made.min() >= 0
    assert made.max() <= 1
    distance = ((made - values) ** 2).sum()
    for _ in range(300):  # no other such point is nearer
        other = onto_simplex(rng.normal(0.5, 1.0, 7), total)
        assert ((other - values) ** 2).sum() >= distance - 1e-9


def test_adam_takes_steps_of_its_rate():
    step = Adam(0.1)
    assert step(np.array([4.0, -0.01])).tolist() == pytest.approx([0.1, -0.1], rel=1e-4)
    step(np.array([4.0, 0.01]))
    assert abs(step(np.array([4.0, -0.01]))[1]) < 0.1


def test_weights_come_near_least_squares_through_the_origin():
    rng = np.random.default_rng(1)
    x = rng.random((200, 4))
    y = x @ np.array([[0.4, 0.1], [0.2, 0.1], [0.1, 0.7], [0.3, 0.1]])
    weights = weights_by_steps(x, y, rng)
    assert np.abs(x @ weights - y).mean() < 0.02
    alone = weights_by_steps(x, y[:, :1], np.random.default_rng(5))
    both = weights_by_steps(x, y, np.random.default_rng(5))
    np.testing.assert_allclose(both[:, 0], alone[:, 0])


def test_columns_that_make_the_outcome_are_preferred():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2, (80, 30)).astype(float)
    y = x[:, :5].mean(axis=1)
    hits = [
        len(set(choose_jointly(x, y, 5, np.random.default_rng(s))) & set(range(5)))
        for s in range(5)
    ]
    assert np.mean(hits) > 2.5  # by chance 0.8


def test_a_table_of_one_row_gives_columns_too():
    assert len(choose_jointly(np.ones((1, 6)), np.ones(1), 3, np.random.default_rng(0))) == 3
