"""Random gaps are not called patterned, patterned ones are."""

import numpy as np
import pytest

from fewbench.algorithms.missingness import missingness

TASKS = np.repeat(np.arange(6), 50)


def rows(seed, models=20):
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-(rng.normal(0, 1, (models, 1)) - rng.normal(0, 1, 300))))
    return (rng.random(p.shape) < p).astype(float), rng


def small(found):
    """The three probabilities, that of difficulty for the least over models."""
    p = found.p_easier[~np.isnan(found.p_easier)]
    return np.array([found.p_task, found.p_item, min(1.0, p.min() * len(p))])


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
def test_random_gaps_look_random(rate):
    """Models lack different shares, which is no pattern."""
    seen = []
    for seed in range(200):
        values, rng = rows(seed)
        values[rng.random(values.shape) < rate * rng.random((len(values), 1)) * 2] = np.nan
        seen.append(small(missingness(values, TASKS)))
    assert (np.mean(np.array(seen) <= 0.05, axis=0) <= 0.05 + 0.04).all()
    assert (np.mean(np.array(seen) <= 0.01, axis=0) <= 0.03).all()


def test_patterns_are_seen_each_by_its_own_test():
    for seed in range(20):
        values, rng = rows(seed)
        by_task = values.copy()
        by_task[3, np.flatnonzero(TASKS == 2)[:20]] = np.nan
        assert missingness(by_task, TASKS).p_task < 1e-4
        by_item = values.copy()
        by_item[:10, rng.permutation(300)[:15]] = np.nan
        assert missingness(by_item, TASKS).p_item < 1e-4
        hard = values.copy()
        hard[0, np.argsort(values[1:].mean(axis=0))[:40]] = np.nan
        found = missingness(hard, TASKS)
        assert found.p_easier[0] < 1e-4
        assert found.easier[0] < -0.2
        assert np.isnan(found.p_easier[1:]).all()


def test_shares():
    values, _ = rows(1, 3)
    values[1, :25] = np.nan
    found = missingness(values, TASKS)
    assert found.by_model.tolist() == [0.0, 25 / 300, 0.0]
    assert found.by_task[1].tolist() == [0.5, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "values",
    [
        [[1.0, np.nan]],
        [[np.nan], [1.0]],
        [[np.nan, 1.0], [1.0, np.nan]],
        [[1.0, 1.0], [1.0, np.nan]],
    ],
)
def test_tiny_tables(values):
    found = missingness(np.array(values), np.zeros(len(values[0]), dtype=np.intp))
    assert 0 <= found.p_task <= 1
    assert 0 <= found.p_item <= 1
