"""Items that go the wrong way: planted ones are found, few others are."""

import numpy as np
import pytest

from fewbench.algorithms.soundness.discrimination import discrimination
from fewbench.algorithms.soundness.likeness import identical, independent_weights, likeness


def rows(seed, models, items, idle=0):
    """Rasch-like items, the last `idle` of which do not go with ability at all."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, 1.3, (models, 1))
    slope = np.where(np.arange(items) < items - idle, 1.0, 0.0)
    p = 1 / (1 + np.exp(-(slope * ability - rng.normal(0, 1, items))))
    return (rng.random(p.shape) < p).astype(float)


def test_the_false_discovery_rate_holds_with_items_that_tell_nothing():
    """A third of the items has no relation to ability: the hardest case of the null."""
    rates, power = [], []
    for seed in range(60):
        values = rows(seed, 100, 120, idle=40)
        values[:, :8] = 1 - values[:, :8]
        found = discrimination(values, np.ones(100)).wrong_way(0.05)
        rates.append(found[8:].sum() / max(found.sum(), 1))
        power.append(found[:8].mean())
    assert np.mean(rates) < 0.05 + 2 * np.std(rates) / np.sqrt(60)
    assert np.mean(power) > 0.8


def test_items_without_a_p_do_not_go_the_wrong_way():
    found = discrimination(np.ones((30, 4)), np.ones(30))
    assert np.isnan(found.p).all()
    assert not found.wrong_way().any()


def test_p_is_uniform_where_an_item_tells_nothing():
    p = np.concatenate([discrimination(rows(s, 60, 40, 30), np.ones(60)).p[10:] for s in range(60)])
    for level in (0.01, 0.05, 0.5):
        assert np.nanmean(p <= level) == pytest.approx(level, abs=0.012 + 0.1 * level)


def test_one_model_that_is_right_alone_proves_nothing():
    """A single right answer of the weakest of 30 is 1 in 30, however far it is behind."""
    values = rows(1, 30, 60)
    values[0] = 0.0
    values[:, 0] = 0.0
    values[0, 0] = 1.0
    assert discrimination(values, np.ones(30)).p[0] > 0.02


def test_ten_copies_prove_no_more_than_one():
    odd = []
    for seed in range(30):
        values = rows(seed, 12, 200, idle=100)
        many = np.vstack([values] * 10)
        weights = independent_weights(likeness(many), identical(many))
        assert weights.sum() == pytest.approx(12, abs=3)
        odd.append(discrimination(many, weights).wrong_way().sum())
        assert np.nanmin(discrimination(many, np.ones(120)).p[100:]) < 0.001
    assert np.mean(odd) < 0.5


def lineages(seed, count, size, shared, items=400):
    """Lineages of models alike in ability and in quirks; half the items do not go with ability."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, 1.2, (count, 1)).repeat(size, 0) + rng.normal(0, 0.2, (count * size, 1))
    quirk = rng.normal(0, shared, (count, items)).repeat(size, 0)
    slope = np.where(np.arange(items) < items // 2, 0.0, 1.0)
    p = 1 / (1 + np.exp(-(slope * ability + quirk - rng.normal(0, 1, items))))
    return (rng.random(p.shape) < p).astype(float)


@pytest.mark.parametrize(("count", "size", "shared"), [(20, 10, 2.0), (10, 20, 1.2)])
def test_a_lineage_s_quirks_are_no_wrong_keys(count, size, shared):
    """Models of one lineage correlate at 0.2 to 0.4, and lean the same way all at once."""
    found = least = 0
    for seed in range(20):
        values = lineages(seed, count, size, shared)
        alike = likeness(values)
        assert 0.15 < np.mean([alike.r[g * size, g * size + 1] for g in range(count)]) < 0.5
        weights = independent_weights(alike, identical(values))
        assert weights.sum() < 0.75 * len(values)
        found += discrimination(values, weights).wrong_way().any()
        least += discrimination(values, np.ones(len(values))).wrong_way().any()
    assert found <= 2
    assert least >= 5  # which is what the weights are for


def test_missing_cells_are_left_out():
    values = rows(3, 80, 100)
    values[:, 5] = 1 - values[:, 5]
    values[np.random.default_rng(0).random(values.shape) < 0.2] = np.nan
    found = discrimination(values, np.ones(80))
    assert found.p[5] < 1e-4
    assert found.r[5] == np.nanmin(found.r)


def test_what_cannot_be_tested_is_nan():
    values = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    found = discrimination(values, np.ones(3))
    assert np.isnan(found.r[0])
    assert np.isnan(found.p[0])
    for tiny in (np.ones((1, 5)), np.ones((5, 1)), np.array([[0.0], [1.0], [0.5]])):
        assert not discrimination(tiny, np.ones(len(tiny))).wrong_way().any()


def test_many_items_are_done_in_parts_alike():
    from scipy.stats import rankdata

    values = rows(4, 10, 2100)
    whole = discrimination(values, np.ones(10)).r
    total = values.sum(axis=1)
    for item in (0, 2047, 2048, 2099):
        rest = rankdata(total - values[:, item])
        known = np.ptp(values[:, item]) > 0
        expected = np.corrcoef(values[:, item], rest)[0, 1] if known else np.nan
        np.testing.assert_allclose(whole[item], expected, atol=1e-9)
