import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fewbench.algorithms.soundness.twins import correlations, duplicate_groups, nearest_twin


def rows(seed=0, n=6, items=40):
    return (np.random.default_rng(seed).random((n, items)) < 0.5).astype(float)


@given(st.integers(0, 999))
def test_correlations_are_those_of_numpy(seed):
    a, b = rows(seed), rows(seed + 1000, 4)
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
    sources = rows()
    near = sources[[4, 1]].copy()
    near[0, :2] = 1 - near[0, :2]
    r, which = nearest_twin(near, sources)
    assert which.tolist() == [4, 1]
    assert 0.8 < r[0] < r[1]
    np.testing.assert_allclose(r[1], 1.0)


def test_groups_join_copies_and_families_through_each_other():
    values = rows(n=7)
    values[5] = values[0]
    values[6] = 1 - values[1]  # the opposite is no twin
    families = np.array(["", "x", "", "y", "x", "y", ""], dtype=object)
    assert duplicate_groups(values).tolist() == [0, 1, 2, 3, 4, 0, 5]
    assert duplicate_groups(values, families).tolist() == [0, 1, 2, 0, 1, 0, 3]


def test_no_family_is_no_kinship():
    groups = duplicate_groups(rows(), np.array([""] * 6, dtype=object))
    assert sorted(groups) == list(range(6))
