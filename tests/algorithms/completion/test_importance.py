"""Importance of items and cosine similarity, against the equations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fewbench.algorithms.completion.importance import cosine_similarities, importance, most_similar

matrices = arrays(
    np.float64, st.tuples(st.integers(2, 9), st.integers(1, 6)), elements=st.sampled_from([0, 1.0])
)


@given(matrices)
def test_variance_is_equation_6(values):
    found = importance(values, "variance")
    m = len(values)
    for item, column in enumerate(values.T):
        plain = sum((score - sum(column) / m) ** 2 for score in column) / (m - 1)
        assert found[item] == pytest.approx(plain, abs=1e-10)


@given(matrices)
def test_balance_is_equation_11(values):
    found = importance(values, "balance")
    for item, column in enumerate(values.T):
        difference = abs(sum(1 if score == 1 else -1 for score in column))
        assert found[item] == (1 / difference if difference else 1.0)


@given(matrices)
def test_both_rank_binary_items_alike(values):
    """Both fall with the distance from as many right as wrong, but balance ties 0 and 1."""
    variance, balance = importance(values, "variance"), importance(values, "balance")
    assert (np.diff(balance[np.argsort(variance, kind="stable")]) >= 0).all()


def test_as_many_right_as_wrong_is_the_most_important():
    values = np.array([[1.0, 1, 1], [0, 1, 1], [1, 0, 1], [0, 0, 1]])
    values[3, 1] = 1.0
    assert importance(values, "balance").tolist() == [1.0, 0.5, 0.25]


@given(matrices)
def test_right_and_wrong_exchanged_tie_exactly(values):
    for kind in ("variance", "balance"):
        assert np.array_equal(importance(values, kind), importance(1 - values, kind))


def test_one_model_varies_on_nothing():
    assert importance(np.array([[0.3, 1.0]]), "variance").tolist() == [0.0, 0.0]


@given(matrices)
def test_cosines_are_those_of_the_formula(values):
    found = cosine_similarities(values, values)
    for i, a in enumerate(values):
        for j, b in enumerate(values):
            lengths = np.linalg.norm(a) * np.linalg.norm(b)
            plain = a @ b / lengths if lengths > 0 else float(not a.any() and not b.any())
            assert found[i, j] == pytest.approx(plain, abs=1e-11)


def test_equally_similar_sources_by_distance_then_by_chance():
    sources = np.array([[1.0, 1], [0, 1], [1, 0], [0, 1], [0, 0]])
    first, last = np.arange(5), np.arange(5)[::-1]
    assert most_similar(np.array([0.0, 1.0]), sources, 2, first).tolist() == [1, 3]
    assert most_similar(np.array([0.0, 1.0]), sources, 2, last).tolist() == [3, 1]
    # to nothing but zeros all others are equally similar: not so near are those with more right
    assert most_similar(np.array([0.0, 0.0]), sources, 3, first).tolist() == [4, 1, 2]
    assert most_similar(np.array([0.0, 0.0]), sources, 99, first).tolist() == [4, 1, 2, 3, 0]
