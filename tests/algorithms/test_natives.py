"""Native sources against the equations written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cityblock

from fewbench.algorithms.clustering.distances import native_sources


def plainly(sources, targets, count="average", inclusive=True):
    """Eq. 4-5, a pair at a time, with raw Manhattan distances."""
    models = [*sources, *targets]
    pairs = [
        cityblock(models[i], models[j])
        for i in range(len(models))
        for j in range(i + 1, len(models))
    ]
    mean = np.mean(pairs)

    def near(model, others):
        found = [cityblock(model, other) for other in others]
        return sum(d <= mean if inclusive else d < mean for d in found)

    own = [near(target, sources) for target in targets]
    if len(targets) == 1:
        stand_ins = [near(s, np.delete(sources, i, axis=0)) for i, s in enumerate(sources)]
        average = int(np.mean([*stand_ins, *own]))
    else:
        average = int(np.mean(own))
    chosen = []
    for target, mine in zip(targets, own, strict=True):
        n = {"average": average, "dynamic": max(average, mine), "own": mine}[count]
        order = sorted(range(len(sources)), key=lambda s: (cityblock(sources[s], target), s))
        chosen.append(sorted(order[: max(n, 1)]))
    return chosen


@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 6), st.integers(0, 999), st.booleans())
@settings(max_examples=60, deadline=None)
def test_as_the_equations_say(n_sources, n_targets, n_items, seed, inclusive):
    rng = np.random.default_rng(seed)
    sources, targets = (rng.integers(0, 2, (n, n_items)) * 1.0 for n in (n_sources, n_targets))
    for count in ("average", "dynamic", "own"):
        found = native_sources(
            sources, targets, standardise=False, count=count, inclusive=inclusive
        )
        assert [natives.tolist() for natives in found] == plainly(
            sources, targets, count, inclusive
        )


def test_at_least_one_source_even_if_none_is_near():
    sources = np.zeros((6, 4))
    found = native_sources(sources, np.ones((2, 4)), standardise=False, count="own")
    assert [natives.tolist() for natives in found] == [[0], [0]]


def test_all_sources():
    rng = np.random.default_rng(0)
    found = native_sources(rng.random((7, 3)), rng.random((2, 3)), count="all")
    assert [natives.tolist() for natives in found] == [list(range(7))] * 2


def test_models_that_are_all_the_same():
    """The mean distance is 0: all are within it, none is nearer."""
    same = np.ones((5, 3))
    assert len(native_sources(same, same[:2])[0]) == 5
    assert len(native_sources(same, same[:2], inclusive=False)[0]) == 1


def test_standardising_weighs_rare_answers_more():
    """Two sources differ from the target on an item each; a rare answer parts them further."""
    sources = np.zeros((20, 2))
    sources[0] = 1, 0  # lacks what few models have
    sources[1] = 0, 1  # lacks what half of the models have
    sources[2:11] = 1, 0
    target = np.array([[1.0, 1.0]])
    assert 0 in native_sources(sources, target, standardise=False, count="own")[0]
    assert native_sources(sources, target, standardise=True, count="own")[0].tolist() == [1]


@pytest.mark.parametrize("metric", ["manhattan", "euclidean", "cosine", "correlation"])
def test_a_twin_is_native(metric):
    rng = np.random.default_rng(3)
    sources = rng.random((12, 8))
    found = native_sources(sources, sources[[4, 9]], metric)
    assert 4 in found[0]
    assert 9 in found[1]
