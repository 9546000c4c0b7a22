"""The right option told from what is believed by those that are right."""

import numpy as np
import pytest

from fewbench.algorithms.option_probabilities import probabilities_of, right_options


def believed(seed, n_models=20, n_items=200, n_options=4):
    """Beliefs with a key: models are right where they believe most in the right option."""
    rng = np.random.default_rng(seed)
    key = rng.integers(n_options, size=n_items)
    lure = (key + 1) % n_options  # a wrong option that many fall for
    logits = rng.normal(size=(n_models, n_items, n_options))
    logits[:, np.arange(n_items), lure] += rng.normal(0.5, 1.0, n_items)
    logits[:, np.arange(n_items), key] += rng.normal(0.5, 1.0, n_items)
    p = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    return p, (p.argmax(axis=2) == key).astype(float), key


@pytest.mark.parametrize("seed", range(3))
def test_the_key_is_found_where_any_model_knows_it(seed):
    p, values, key = believed(seed)
    found = right_options(p, values, np.full(200, 4))
    known = values.any(axis=0)
    assert (found == key)[known].mean() > 0.98
    popular = p.mean(axis=0).argmax(axis=1)
    assert (popular == key)[known].mean() < 0.9  # what most believe will not do


def test_a_popular_wrong_option_is_not_taken_for_the_right_one():
    p = np.array([[[0.8, 0.1, 0.1]]] + [[[0.1, 0.85, 0.05]]] * 9)
    assert right_options(p, np.array([[1.0]] + [[0.0]] * 9), np.array([3])).tolist() == [0]


def test_cells_not_run_say_nothing_and_absent_options_are_never_right():
    p = np.array([[[0.6, 0.4, 0.0]], [[np.nan] * 3], [[0.3, 0.7, 0.0]]])
    values = np.array([[0.0], [1.0], [np.nan]])
    assert right_options(p, values, np.array([2])).tolist() == [1]
    found = probabilities_of(p, np.array([1]))
    np.testing.assert_allclose(found, [[0.4], [np.nan], [0.7]])


def test_items_that_all_or_none_get_right():
    p = np.array([[[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]]])
    found = right_options(p, np.array([[1.0, 0.0]]), np.array([3, 3]))
    assert found.tolist() == [0, 2]
