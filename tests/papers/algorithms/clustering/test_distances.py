"""Distances and native sources against the equations written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist, cityblock

from fewbench_papers.algorithms.clustering.distances import (
    average_count,
    item_distances,
    nearest_sources,
)

METRICS = ["manhattan", "euclidean", "cosine", "correlation"]
SCIPY = {"manhattan": "cityblock"}


def standardised(x):
    deviation = x.std(axis=0)
    return np.where(deviation > 0, (x - x.mean(axis=0)) / np.where(deviation > 0, deviation, 1), 0)


def binary(n_items, n_models, seed=0):
    return (np.random.default_rng(seed).random((n_items, n_models)) < 0.6).astype(float)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("standardise", [False, True])
@pytest.mark.parametrize("kind", ["binary", "graded", "two values each"])
def test_agrees_with_scipy(metric, standardise, kind):
    x = binary(300, 12) if kind == "binary" else np.random.default_rng(1).random((300, 12))
    if kind == "two values each":
        low, high = np.random.default_rng(2).normal(size=(2, 12))
        x = np.where(x < 0.5, low, high)
    expected_of = standardised(x) if standardise else x
    with np.errstate(invalid="ignore"):
        expected = cdist(expected_of, expected_of, SCIPY.get(metric, metric))
    got = item_distances(x, metric, standardise)
    assert got.dtype == np.float32
    usable = np.isfinite(expected)  # scipy gives NaN for rows without direction
    np.testing.assert_allclose(got[usable], expected[usable], rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("standardise", [False, True])
@given(
    x=arrays(
        float,
        st.tuples(st.integers(1, 12), st.integers(1, 5)),
        elements=st.sampled_from([0.0, 1.0, 0.3, -2.0]) | st.floats(-1e3, 1e3, width=32),
    )
)
@settings(max_examples=20, deadline=None)
def test_symmetric_finite_and_zero_exactly_for_identical_rows(metric, standardise, x):
    d = item_distances(np.vstack([x, x[::-1]]), metric, standardise)
    assert np.isfinite(d).all()
    assert (d >= 0).all()
    assert np.array_equal(d, d.T)
    n = len(x)
    assert not d[np.arange(2 * n), np.arange(2 * n)[::-1]].any()  # each row and its double
    assert np.array_equal(d[:n, :n], d[n:, n:][::-1, ::-1])  # doubles are equally far


def test_binary_manhattan_counts_exactly_across_blocks():
    x = binary(700, 40)
    d = item_distances(x)
    assert np.array_equal(d, (x[:, None] != x).sum(axis=2))


def test_equal_weighted_sums_stay_ties():
    # the same disagreements in another order of columns: the sums must not part by rounding
    x = binary(40, 30)
    twice = np.hstack([x, 1 - x])
    d = item_distances(twice, standardise=True)
    again = item_distances(twice[:, ::-1], standardise=True)
    assert np.array_equal(d, again)


def test_rows_without_direction():
    x = np.array([[0.0, 0, 0], [0, 0, 0], [2, 2, 2], [1, 0, 0]])
    cosine = item_distances(x, "cosine")
    assert cosine[0].tolist() == [0, 0, 1, 1]
    correlation = item_distances(x, "correlation")
    assert correlation[:3, :3].tolist() == np.zeros((3, 3)).tolist()
    assert correlation[3].tolist() == [1, 1, 1, 0]


def test_constant_columns_are_ignored_when_standardised():
    x = binary(20, 6)
    padded = np.hstack([x, np.full((20, 2), 0.1)])
    for metric in ("manhattan", "euclidean"):
        assert np.array_equal(item_distances(x, metric, True), item_distances(padded, metric, True))
    assert not item_distances(np.full((5, 3), 0.1), standardise=True).any()


def test_extreme_scales_stay_finite():
    x = np.array([[1e200, 0.0], [1e200, 0.0], [0.0, 1e-200]])
    assert item_distances(x, "cosine").tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    ("columns", "metric", "message"),
    [
        ([[0.0, np.nan]], "manhattan", "NaN"),
        ([[0.0, np.inf]], "cosine", "infinity"),
        ([0.0, 1.0], "manhattan", "matrix"),
        (np.empty((0, 3)), "manhattan", "non-empty"),
        ([[0.0, 1.0]], "hamming", "unknown metric 'hamming'"),
    ],
)
def test_bad_input_is_named(columns, metric, message):
    with pytest.raises(ValueError, match=message):
        item_distances(columns, metric)


def test_the_absolute_correlation_brings_opposites_together():
    x = np.random.default_rng(0).random((6, 9))
    x[1] = 1 - x[0]
    x[5] = 0.3
    d = item_distances(x, "absolute-correlation")
    expected = 1 - np.abs(np.corrcoef(x[:5]))
    np.testing.assert_allclose(d[:5, :5], expected, atol=1e-6)
    assert d[0, 1] == 0
    assert d[5, 5] == 0
    assert (d[5, :5] == 1).all()
    some = item_distances(x, "absolute-correlation", among=np.array([1]))
    np.testing.assert_array_equal(some, d[:, [1]])


def natives(sources, targets, *, standardise=True, inclusive=True):
    distances = item_distances(np.concatenate([sources, targets]), standardise=standardise)
    count = average_count(distances, len(sources), inclusive=inclusive)
    return [n.tolist() for n in nearest_sources(distances, len(sources), [count] * len(targets))]


def plainly(sources, targets, inclusive=True):
    """Eq. 4-5, a pair at a time, with raw Manhattan distances."""
    models = [*sources, *targets]
    pairs = [cityblock(a, b) for i, a in enumerate(models) for b in models[i + 1 :]]
    mean = np.mean(pairs)

    def near(model, others):
        found = [cityblock(model, other) for other in others]
        return sum(d <= mean if inclusive else d < mean for d in found)

    own = [near(target, sources) for target in targets]
    if len(targets) == 1:
        own += [near(s, np.delete(sources, i, axis=0)) for i, s in enumerate(sources)]
    n, chosen = max(int(np.mean(own)), 1), []
    for target in targets:
        order = sorted(range(len(sources)), key=lambda s: (cityblock(sources[s], target), s))
        chosen.append(sorted(order[:n]))
    return chosen


@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 6), st.integers(0, 999), st.booleans())
@settings(max_examples=60, deadline=None)
def test_as_the_equations_say(n_sources, n_targets, n_items, seed, inclusive):
    rng = np.random.default_rng(seed)
    sources, targets = (rng.integers(0, 2, (n, n_items)) * 1.0 for n in (n_sources, n_targets))
    found = natives(sources, targets, standardise=False, inclusive=inclusive)
    assert found == plainly(sources, targets, inclusive)


def test_at_least_one_source_even_if_none_is_near():
    assert natives(np.zeros((6, 4)), np.ones((2, 4)), standardise=False) == [[0], [0]]
