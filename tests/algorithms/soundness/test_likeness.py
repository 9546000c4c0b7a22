"""Kinship of models: planted copies are found, independent models are not called kin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.algorithms.soundness.likeness import (
    TWIN,
    correlations,
    distinct_weights,
    duplicate_groups,
    groups_alike,
    identical,
    likeness,
    nearest_twin,
    with_families,
)


def rows(seed, models=30, items=300, spread=1.0, guess=0.0):
    """Independent models of the two-parameter logistic model, with a chance to guess."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, spread, (models, 1))
    slope, hard = rng.lognormal(0, 0.3, items), rng.normal(0, 1, items)
    p = guess + (1 - guess) / (1 + np.exp(-slope * (ability - hard)))
    return (rng.random(p.shape) < p).astype(float)


def grouped(labels):
    return {tuple(np.flatnonzero(labels == k)) for k in set(labels) if (labels == k).sum() > 1}


@pytest.mark.parametrize(("spread", "guess"), [(1.0, 0.0), (2.5, 0.0), (1.5, 0.25)])
def test_independent_models_are_no_twins_and_hardly_ever_kin(spread, guess):
    kin = 0
    for seed in range(30):
        found = likeness(rows(seed, 40, 200, spread, guess))
        none = np.zeros((40, 40), dtype=bool)  # two that are right everywhere are no copies
        assert not grouped(groups_alike(found, none, TWIN))
        least = found.kin_threshold()
        kin += 0 if least is None else len(grouped(groups_alike(found, none, least)))
    assert kin <= 2


@pytest.mark.parametrize("changed", [0.0, 0.05])
def test_planted_twins_are_found(changed):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        values = rows(seed)
        for at, of in ((1, 0), (2, 0), (7, 6)):
            other = rng.random(values.shape[1]) < changed
            values[at] = np.where(other, 1 - values[of], values[of])
        found = grouped(groups_alike(likeness(values), identical(values), TWIN))
        assert found == {(0, 1, 2), (6, 7)}


def test_r_is_the_partial_correlation_given_easiness():
    values = rows(3, 8, 60)
    varies = np.ptp(values, axis=0) > 0
    a, b, easy = values[0, varies], values[1, varies], values[:, varies].mean(axis=0)
    ab, ae, be = (np.corrcoef(x, y)[0, 1] for x, y in ((a, b), (a, easy), (b, easy)))
    partial = (ab - ae * be) / np.sqrt((1 - ae**2) * (1 - be**2))
    assert likeness(values).r[0, 1] == pytest.approx(partial, abs=1e-6)  # in single precision


def test_only_common_items_count():
    values = rows(5, 12, 200)
    values[1] = values[0]
    values[0, :50] = np.nan
    values[1, 150:] = np.nan
    found = likeness(values)
    # The line is through all that a model ran, so that 1 is reached nearly.
    assert found.r[0, 1] > 0.97
    assert identical(values)[0, 1]
    assert not identical(values)[0, 2:].any()
    apart = values.copy()
    apart[0, 50:] = np.nan
    apart[0, :50] = 1.0
    apart[1, :50] = np.nan
    assert not identical(apart)[0, 1]
    assert likeness(apart).r[0, 1] == 0.0


@given(st.integers(0, 999))
def test_the_order_of_models_and_items_says_nothing(seed):
    rng = np.random.default_rng(seed)
    values = rows(seed, 14, 60)
    values[3] = values[9]
    values[rng.random(values.shape) < 0.1] = np.nan
    m, i = rng.permutation(14), rng.permutation(60)
    here, there = likeness(values), likeness(values[np.ix_(m, i)])
    np.testing.assert_allclose(there.r, here.r[np.ix_(m, m)], atol=1e-6)
    np.testing.assert_allclose(
        distinct_weights(there, identical(values[np.ix_(m, i)])),
        distinct_weights(here, identical(values))[m],
        atol=1e-5,
    )
    mine = groups_alike(here, identical(values), TWIN)
    yours = groups_alike(there, identical(values[np.ix_(m, i)]), TWIN)
    assert {tuple(sorted(m[list(group)])) for group in grouped(yours)} == grouped(mine)


def test_nearly_equal_scores_are_not_the_same():
    """Four cells of five thousand differ by little: a sum of squares would not see it."""
    rng = np.random.default_rng(0)
    values = rng.random((20, 5000)).round(3)
    values[1] = values[2] = values[0]
    values[1, :4] += 0.002
    values[2, 7] += 1e-12  # rounding
    values[3] = values[0]
    values[3, 9] = np.nan
    same = identical(values)
    assert {tuple(pair) for pair in np.argwhere(np.triu(same)).tolist()} == {(0, 2), (0, 3), (2, 3)}


def test_noise_is_the_variance_among_unrelated_models():
    for missing in (0.0, 0.3):
        z = []
        for seed in range(10):
            values = np.random.default_rng(seed).random((30, 300))
            values[np.random.default_rng(seed + 99).random(values.shape) < missing] = np.nan
            found = likeness(values)
            z.append((found.r / np.sqrt(found.noise))[np.triu_indices(30, 1)])
        assert np.std(z) == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize("copies", [1, 5, 20])
def test_copies_count_as_one(copies):
    values = rows(2, 25, 2000)
    more = np.vstack([values, *[values[:1]] * copies])
    alone = distinct_weights(likeness(values), identical(values)).sum()
    once = distinct_weights(likeness(more), identical(more))
    together = distinct_weights(likeness(more, once), identical(more))
    assert alone == pytest.approx(25, abs=0.5)
    assert together.sum() == pytest.approx(alone, abs=0.7)
    assert together[0] == pytest.approx(1 / (copies + 1), rel=0.05)


@pytest.mark.parametrize(
    "values",
    [
        [[1.0]],
        [[1.0], [0.0]],
        [[1.0, 0.0, 1.0]],
        [[1.0, 1.0], [1.0, 1.0]],
        [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]],
        [[np.nan, 1.0], [1.0, np.nan]],
        [[0.25, 0.5, np.nan], [0.25, 0.5, 1.0]],
    ],
)
def test_tiny_tables(values):
    table = np.array(values)
    found, same = likeness(table), identical(table)
    assert np.isfinite(found.r).all()
    assert found.kin_threshold() is None
    weights = distinct_weights(found, same)
    assert ((weights > 0) & (weights <= 1)).all()
    assert len(groups_alike(found, same, TWIN)) == len(table)
    assert not np.diag(same).any()


def twin_rows(seed=0, n=6, items=40):
    return (np.random.default_rng(seed).random((n, items)) < 0.5).astype(float)


@given(st.integers(0, 999))
def test_correlations_are_those_of_numpy(seed):
    a, b = twin_rows(seed), twin_rows(seed + 1000, 4)
    np.testing.assert_allclose(correlations(a, b), np.corrcoef(a, b)[:6, 6:], atol=1e-12)


def test_a_constant_row_is_like_its_copies_only():
    values = np.array([[1.0, 1, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]])
    assert correlations(values, values).round(9).tolist() == [
        [1, 1, 0, 0],
        [1, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    ]
    assert duplicate_groups(values).tolist() == [0, 0, 1, 2]


def test_nearest_twin():
    sources = twin_rows()
    near = sources[[4, 1]].copy()
    near[0, :2] = 1 - near[0, :2]
    r, which = nearest_twin(near, sources)
    assert which.tolist() == [4, 1]
    assert 0.8 < r[0] < r[1]
    np.testing.assert_allclose(r[1], 1.0)


def test_groups_join_copies_and_families_through_each_other():
    values = twin_rows(n=7)
    values[5] = values[0]
    values[6] = 1 - values[1]  # the opposite is no twin
    families = np.array(["", "x", "", "y", "x", "y", ""], dtype=object)
    copies = duplicate_groups(values)
    assert copies.tolist() == [0, 1, 2, 3, 4, 0, 5]
    assert with_families(copies, families).tolist() == [0, 1, 2, 0, 1, 0, 3]


def test_no_family_is_no_kinship():
    groups = with_families(duplicate_groups(twin_rows()), np.array([""] * 6, dtype=object))
    assert sorted(groups) == list(range(6))
