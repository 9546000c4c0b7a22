"""Draws of unequal probability: as many as asked, each unit as often as it is said to be."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.algorithms.sampling.unequal import draw

sizes = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12)


@given(sizes, st.floats(0, 1), st.integers(0, 10**6))
def test_as_many_as_asked_and_the_probabilities_add_up(sizes, share, seed):
    sizes, n = np.array(sizes), round(share * len(sizes))
    chosen, probabilities = draw(n, sizes, np.random.default_rng(seed))
    assert len(set(chosen.tolist())) == n
    assert probabilities.sum() == pytest.approx(n)
    assert (probabilities[chosen] > 0).all()
    sure = probabilities == 1.0
    assert set(np.flatnonzero(sure).tolist()) <= set(chosen.tolist())
    if n > 0 and not sure.all():  # what is not sure goes by size
        ratio = probabilities[~sure] / sizes[~sure]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)
        assert (probabilities <= 1.0).all()


def test_units_come_as_often_as_their_probabilities_say():
    sizes, rng, draws = np.array([5.0, 1, 1, 2, 2, 0.5]), np.random.default_rng(0), 20_000
    counts, expected = np.zeros(6), draw(3, sizes, rng)[1]
    assert expected[0] == 1.0
    for _ in range(draws):
        counts[draw(3, sizes, rng)[0]] += 1
    error = np.sqrt(expected * (1 - expected) / draws) + 1e-12
    assert (np.abs(counts / draws - expected) < 4 * error).all()


def test_equal_sizes_are_simple_random_sampling():
    rng, draws = np.random.default_rng(1), 20_000
    found: dict[tuple[int, ...], int] = {}
    for _ in range(draws):
        key = tuple(draw(2, np.full(5, 0.2), rng)[0].tolist())
        found[key] = found.get(key, 0) + 1
    assert set(found) == set(combinations(range(5), 2))
    assert max(abs(count / draws - 0.1) for count in found.values()) < 4 * np.sqrt(0.09 / draws)
