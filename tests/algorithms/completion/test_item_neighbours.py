"""Importance, similarity, and answers read off the most similar items, against the equations."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fewbench.algorithms.completion.item_to_item import (
    ItemNeighbours,
    cosine_similarities,
    importance,
    most_similar,
)

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


PLAIN = ItemNeighbours(neighbours=3, weighted=False, least=0.0, quantile=0.0)
# Columns that have cosines 1, 0.8, 0.6 and 0 with the first unit vector.
KNOWN = np.array([[1.0, 0.8, 0.6, 0.0], [0.0, 0.6, 0.8, 1.0]])
ANSWERS = np.array([0.9, 0.4, 0.2, 1.0])
ITEM = np.array([[1.0], [0.0]])
FALLBACK = np.array([0.55])


def test_the_mean_of_the_nearest():
    found = PLAIN.predict(ITEM, KNOWN, ANSWERS, FALLBACK)
    assert found[0] == pytest.approx((0.9 + 0.4 + 0.2) / 3)


def test_weighted_by_similarity():
    found = replace(PLAIN, weighted=True).predict(ITEM, KNOWN, ANSWERS, FALLBACK)
    assert found[0] == pytest.approx((0.9 + 0.8 * 0.4 + 0.6 * 0.2) / 2.4)


def test_all_where_there_are_fewer():
    found = PLAIN.predict(ITEM, KNOWN[:, :2], ANSWERS[:2], FALLBACK)
    assert found[0] == pytest.approx((0.9 + 0.4) / 2)


@pytest.mark.parametrize(("least", "falls_back"), [(0.8, False), (0.8001, True)])
def test_a_mean_similarity_at_the_least_is_enough(least, falls_back):
    found = replace(PLAIN, least=least).predict(ITEM, KNOWN, ANSWERS, FALLBACK)
    assert (found[0] == FALLBACK[0]) == falls_back


def test_below_the_quantile_the_fallback_is_taken():
    items = np.array([[1.0, 0.6, 0.0], [0.0, 0.8, -1.0]])  # similar at 1, 0.6 and 0 to the known
    known, answers = np.array([[1.0], [0.0]]), np.array([1.0])
    fallback = np.array([0.1, 0.2, 0.3])
    for quantile, expected in ((0.0, [1, 1, 1]), (0.5, [1, 1, 0.3]), (1.0, [1, 0.2, 0.3])):
        found = replace(PLAIN, quantile=quantile).predict(items, known, answers, fallback)
        assert found.tolist() == expected


def test_the_higher_of_both_thresholds_counts():
    items = np.array([[1.0, 0.6], [0.0, 0.8]])
    known, answers = np.array([[1.0], [0.0]]), np.array([1.0])
    both = replace(PLAIN, least=0.7, quantile=0.0)
    assert both.predict(items, known, answers, np.zeros(2)).tolist() == [1.0, 0.0]


def test_equally_similar_items_are_all_at_the_threshold():
    """A quantile of equal means must not leave any of them out by rounding."""
    items = np.repeat(np.array([[0.3], [0.9], [0.7]]), 50, axis=1)
    known = np.array([[0.1, 0.5, 0.7], [0.9, 0.3, 0.1], [0.2, 0.2, 0.9]])
    found = replace(PLAIN, quantile=0.9).predict(items, known, np.ones(3), np.zeros(50))
    assert (found == 1).all()


def test_of_equal_items_the_first_is_asked():
    known = np.repeat(ITEM, 4, axis=1)
    answers = np.array([0.0, 1.0, 1.0, 1.0])
    found = replace(PLAIN, neighbours=1).predict(ITEM, known, answers, FALLBACK)
    assert found[0] == 0.0


def test_items_like_no_other_take_the_plain_mean():
    found = replace(PLAIN, weighted=True).predict(
        ITEM, np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([1.0, 0.0]), FALLBACK
    )
    assert found[0] == 0.5


def test_without_known_items_the_fallback_is_taken():
    found = PLAIN.predict(ITEM, KNOWN[:, :0], ANSWERS[:0], FALLBACK)
    assert found.tolist() == FALLBACK.tolist()


def test_nothing_asked_nothing_said():
    assert PLAIN.predict(ITEM[:, :0], KNOWN, ANSWERS, FALLBACK[:0]).shape == (0,)
