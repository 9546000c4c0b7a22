"""Disagreement and the right option, from option probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.algorithms.option_probabilities import (
    jensen_shannon,
    predictive_diversity,
    probabilities_of,
    right_options,
    two_class,
)
from fewbench.testing import simulate


def table(seed=0, models=7, items=50, options=5, missing=0.0):
    scores = simulate(models, items, seed=seed, options=options, missing=missing)
    p = scores.probabilities.of_items(np.arange(items))
    return p, scores.items["n_options"].to_numpy()


def entropy(p, axis):
    return -np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0).sum(axis=axis)


def mutual_information(p):
    """Of the model's identity (uniform) and its prediction, from the joint distribution."""
    joint = p / len(p)
    independent = joint.sum(axis=1)[:, None] * joint.sum(axis=0)[None]
    ratio = np.where(joint > 0, joint / np.where(independent > 0, independent, 1.0), 1.0)
    return (joint * np.log(ratio)).sum(axis=(0, 1))


@given(st.integers(0, 1000), st.integers(2, 9), st.integers(2, 6), st.sampled_from([0.0, 0.3]))
def test_pds_is_equation_1(seed, models, options, missing):
    p, n_options = table(seed, models, 12, options, missing)
    expected = np.nanmax(p, axis=0).sum(axis=1) / n_options
    np.testing.assert_allclose(predictive_diversity(p, n_options), expected, atol=1e-5)


@given(st.integers(0, 1000), st.integers(2, 9), st.integers(2, 6))
def test_jsd_is_entropy_of_the_mean_minus_mean_entropy_and_the_mutual_information(
    seed, models, options
):
    p, n_options = table(seed, models, 12, options)
    said = jensen_shannon(p)
    np.testing.assert_allclose(
        said, entropy(p.mean(axis=0), 1) - entropy(p, 2).mean(axis=0), atol=1e-5
    )
    for item in range(12):
        assert said[item] == pytest.approx(mutual_information(p[:, item]), abs=1e-5)
    assert (said >= 0).all()
    assert (said <= np.log(np.minimum(n_options, models)) + 1e-6).all()


def test_jsd_leaves_missing_cells_out():
    p, _ = table(3, missing=0.4)
    expected = []
    for item in range(p.shape[1]):
        run = p[~np.isnan(p[:, item, 0]), item]
        expected.append(entropy(run.mean(axis=0), 0) - entropy(run, 1).mean())
    np.testing.assert_allclose(jensen_shannon(p), expected, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_larger_than_a_block_and_of_every_float_type(dtype):
    p, counts = table(1, models=3, items=9000)
    rows = [row.astype(dtype) for row in p]
    before = [row.copy() for row in rows]
    said = predictive_diversity(iter(rows), counts), jensen_shannon(iter(rows))
    np.testing.assert_allclose(said[0], p.max(axis=0).sum(axis=1) / counts, atol=2e-3)
    expected = entropy(p.mean(axis=0), 1) - entropy(p, 2).mean(axis=0)
    np.testing.assert_allclose(said[1], expected, atol=3e-3)
    assert all(np.array_equal(row, old) for row, old in zip(rows, before, strict=True))


def test_no_models_is_an_error():
    with pytest.raises(ValueError, match="no models"):
        jensen_shannon([])


def test_an_item_that_nobody_was_run_on_has_no_disagreement():
    values = np.array([[1.0, np.nan, 0.0], [0.0, np.nan, 0.0]])
    assert jensen_shannon(two_class(values)).round(4).tolist() == [0.6931, 0, 0]
    assert predictive_diversity(two_class(values), np.full(3, 2)).tolist() == [1, 0, 0.5]


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
