"""Answers read off the most similar items: thresholds, ties and weights."""

from dataclasses import replace

import numpy as np
import pytest

from fewbench.algorithms.completion.item_neighbours import ItemNeighbours

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
