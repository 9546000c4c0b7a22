"""Abilities from items of one's own, and the items that tell most of them."""

import numpy as np
import pytest
from scipy.special import expit

from fewbench_papers.algorithms.irt import IrtAbilities, ItemResponse
from fewbench_papers.algorithms.irt.abilities import (
    ability_grid,
    informative_on_a_grid,
    most_informative,
    most_likely_abilities,
    standard_errors,
)

NOBODY = IrtAbilities(np.zeros((0, 1)), np.zeros((0, 1, 1)))


def made(n=60, seed=0, steep=1.0):
    rng = np.random.default_rng(seed)
    a = steep * rng.normal(1.0, 0.6, (n, 1))  # some are negative
    return ItemResponse(a, rng.normal(0, 1.5, n), NOBODY)


def answered(model, n_models=7, n=12, seed=1):
    rng = np.random.default_rng(seed)
    items = np.stack([rng.permutation(len(model.intercept))[:n] for _ in range(n_models)])
    theta = rng.normal(0, 1.5, n_models)
    logits = theta[:, None] * model.discrimination[items, 0] + model.intercept[items]
    return items, (rng.random(items.shape) < expit(logits)).astype(float)


def log_posterior(theta, model, items, right):
    chance = model.expected(np.array([[theta]]), items)[0]
    return float((right * np.log(chance) + (1 - right) * np.log(1 - chance)).sum() - theta**2 / 2)


def test_as_the_engine_has_it():
    model = made()
    items, right = answered(model)
    found = most_likely_abilities(model, items, right)
    for row, theta in enumerate(found):
        engine = model.abilities(items[row], right[[row]])
        assert theta == pytest.approx(engine.means[0, 0], abs=1e-4)
        error = standard_errors(model, items[[row]], found[[row]])[0]
        assert error == pytest.approx(engine.standard_errors[0, 0], abs=1e-4)


@pytest.mark.parametrize("n", [1, 5, 40])
def test_in_company_as_alone_to_the_last_bit(n):
    model = made()
    items, right = answered(model, n=n)
    together = most_likely_abilities(model, items, right)
    alone = [most_likely_abilities(model, items[[row]], right[[row]])[0] for row in range(7)]
    assert together.tolist() == alone
    errors = standard_errors(model, items, together)
    assert errors.tolist() == [
        standard_errors(model, items[[row]], together[[row]])[0] for row in range(7)
    ]


def test_steep_items_past_which_plain_newton_would_jump():
    """Thresholds near 0.5: there the log posterior bends sharply, elsewhere it is straight."""
    n = 40
    model = ItemResponse(np.full((n, 1), 8.0), np.linspace(-4.4, -3.6, n), NOBODY)
    right = (np.arange(n) % 5 > 1).astype(float)
    (theta,) = most_likely_abilities(model, np.arange(n)[None], right[None])
    best = log_posterior(theta, model, np.arange(n), right)
    assert 0.4 < theta < 0.7
    assert best >= max(
        log_posterior(x, model, np.arange(n), right) for x in np.linspace(-3, 3, 601)
    )


def test_no_answers_is_the_prior():
    none = np.empty((2, 0), dtype=np.intp)
    assert most_likely_abilities(made(), none, np.empty((2, 0))).tolist() == [0.0, 0.0]
    assert standard_errors(made(), none, np.zeros(2)).tolist() == [1.0, 1.0]


def test_of_equal_items_the_first_and_none_twice():
    model = ItemResponse(np.zeros((5, 1)), np.zeros(5), NOBODY)
    run = np.array([[True, False, True, False, False]])
    assert most_informative(model, np.zeros(1), run, 1).tolist() == [[1]]
    assert most_informative(model, np.zeros(1), run, 3).tolist() == [[1, 3, 4]]


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


@pytest.mark.parametrize("count", [1, 7, 40])
def test_the_grid_is_increasing_and_within_the_abilities(count):
    abilities = np.random.default_rng(1).normal(size=12) ** 3
    found = ability_grid(abilities, count)
    assert found.shape == (count,)
    assert (np.diff(found) >= 0).all()
    assert abilities.min() <= found[0] <= found[-1] <= abilities.max()
