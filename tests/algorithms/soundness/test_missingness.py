"""Random gaps are not called patterned, patterned ones are."""

import numpy as np
import pytest

from fewbench.algorithms.soundness.missingness import missingness

TASKS = np.repeat(np.arange(6), 50)


def rows(seed, models=20):
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-(rng.normal(0, 1, (models, 1)) - rng.normal(0, 1, 300))))
    return (rng.random(p.shape) < p).astype(float), rng


def small(found):
    """The three probabilities, that of difficulty for the least over models."""
    p = found.p_easier[~np.isnan(found.p_easier)]
    return np.array([found.p_task, found.p_item, min(1.0, p.min() * len(p))])


@pytest.mark.parametrize("rate", [0.01])
def test_random_gaps_look_random(rate):
    """Models lack different shares, which is no pattern."""
    seen = []
    for seed in range(50):
        values, rng = rows(seed)
        values[rng.random(values.shape) < rate * rng.random((len(values), 1)) * 2] = np.nan
        seen.append(small(missingness(values, TASKS)))
    assert (np.mean(np.array(seen) <= 0.05, axis=0) <= 0.05 + 0.05).all()
    assert (np.mean(np.array(seen) <= 0.01, axis=0) <= 0.03).all()


def test_patterns_are_seen_each_by_its_own_test():
    for seed in range(8):
        values, rng = rows(seed)
        by_task = values.copy()
        by_task[3, np.flatnonzero(TASKS == 2)[:20]] = np.nan
        assert missingness(by_task, TASKS).p_task <= 0.001  # the least that the draws give
        by_item = values.copy()
        by_item[:10, rng.permutation(300)[:15]] = np.nan
        assert missingness(by_item, TASKS).p_item <= 0.001
        hard = values.copy()
        hard[0, np.argsort(values[1:].mean(axis=0))[:40]] = np.nan
        found = missingness(hard, TASKS)
        assert found.p_easier[0] < 1e-4
        assert found.easier[0] < -0.2
        assert np.isnan(found.p_easier[1:]).all()


@pytest.mark.parametrize(
    ("models", "items", "tasks", "most", "easy"),
    [(20, 300, 3, 3, 3.0), (30, 600, 57, 2, 0.0)],
)
def test_a_few_gaps_are_no_pattern(models, items, tasks, most, easy):
    """One to three cells of a thousand, on benchmarks where few items are not right from all."""
    seen = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        p = 1 / (1 + np.exp(-(rng.normal(easy, 1, (models, 1)) - rng.normal(0, 1, items))))
        values = (rng.random(p.shape) < p).astype(float)
        for row in values:
            row[rng.choice(items, rng.integers(1, most + 1), replace=False)] = np.nan
        seen.append(small(missingness(values, np.arange(items) * tasks // items)))
    assert (np.mean(np.array(seen) <= 0.01 / 3, axis=0) <= 0.02).all()


def test_many_gaps_in_many_models_are_judged_without_draws():
    """Beyond the number of cells that are drawn; so uneven sizes of tasks do not matter."""
    from fewbench.algorithms.soundness.missingness import FEW

    seen = []
    tasks = np.repeat(np.arange(6), [10, 10, 20, 30, 80, 150])
    for seed in range(100):
        values, rng = rows(seed, 60)
        values[rng.random(values.shape) < 0.4 * rng.random((60, 1)) + 0.2] = np.nan
        assert np.isnan(values).sum() > FEW
        seen.append(small(missingness(values, tasks)))
    assert (np.mean(np.array(seen) <= 0.05, axis=0) <= 0.1).all()
    values[:30, :10] = np.nan
    assert missingness(values, tasks).p_task < 1e-4
    assert missingness(values, tasks).p_item < 1e-4


def test_how_unlikely_a_difference_is():
    """The bound is above the share of draws that are as far off, and not by much."""
    values, rng = rows(2, 12)
    mean = values[1:].mean(axis=0)
    for k in (3, 30, 150):
        gone = values.copy()
        gone[0, np.argsort(mean + rng.normal(0, 0.6, 300))[:k]] = np.nan
        found = missingness(gone, TASKS)
        drawn = [
            np.abs((pick := rng.permutation(mean))[:k].mean() - pick[k:].mean())
            for _ in range(4000)
        ]
        p = np.mean(np.array(drawn) >= abs(found.easier[0]) - 1e-12)
        assert p <= found.p_easier[0]
        assert found.p_easier[0] <= 12 * p + 0.05


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
