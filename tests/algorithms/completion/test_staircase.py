"""Thresholds and orders of a staircase, against programs that try or spell out everything."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fewbench.algorithms.completion.staircase import reorder, thresholds

binary = arrays(
    float, st.tuples(st.integers(1, 7), st.integers(1, 9)), elements=st.sampled_from([0.0, 1.0])
)
graded = arrays(float, (4, 6), elements=st.sampled_from([0.0, 0.3, 0.5, 0.8, 1.0]))


def by_dynamic_programme(row):
    """The least cost of ones followed by zeros, kept apart by what the last item was given."""
    ones, zeros, length, lengths = 0.0, 0.0, 0, 0  # costs of rows that end in 1, that end in 0
    for place, score in enumerate(row):
        if ones <= zeros:  # the zeros begin here, or have begun
            zeros, lengths = ones, place
        zeros += score
        ones += 1.0 - score
    length = len(row) if ones < zeros else lengths
    return length, min(ones, zeros)


def all_costs(row):
    """The disagreement with every row of ones followed by zeros, in n² steps."""
    n = len(row)
    return [
        sum(abs((place < length) - row[place]) for place in range(n)) for length in range(n + 1)
    ]


@given(st.one_of(binary, graded))
def test_thresholds_are_those_of_the_dynamic_programme(values):
    found, errors = thresholds(values)
    for row, threshold, error in zip(values, found, errors, strict=True):
        costs = np.round(all_costs(row), 9)
        assert threshold == int(np.argmin(costs))  # the first of equals
        assert error == costs.min()
        _, least = by_dynamic_programme(row)
        np.testing.assert_allclose(error, least, atol=1e-8)


@given(binary)
def test_the_dynamic_programme_finds_a_threshold_of_the_same_error(values):
    for row in values:
        length, least = by_dynamic_programme(row)
        assert all_costs(row)[length] == least == min(all_costs(row))


def plain_reorder(values, order):
    """The same item by item: bins of equal sums, told apart by models with thresholds inside."""
    order, right = list(order), values.sum(axis=0)

    def total(order):
        return sum(min(all_costs(values[model, order])) for model in range(len(values)))

    while True:
        better = []
        for count in sorted(set(right), reverse=True):
            places = [place for place, item in enumerate(order) if right[item] == count]
            models = []
            for model in range(len(values)):
                costs = all_costs(values[model, order])
                if places[0] < costs.index(min(costs)) <= places[-1] + 1:
                    models.append(model)
            items = [order[place] for place in places]
            better += sorted(items, key=lambda item: -sum(values[model, item] for model in models))
        if total(better) >= total(order):
            return order
        order = better


@given(binary)
def test_reorder_is_that_of_a_plain_program(values):
    order = np.argsort(-values.sum(axis=0), kind="stable")
    assert reorder(values, order).tolist() == plain_reorder(values, order)


@given(st.one_of(binary, graded))
def test_reorder_only_moves_items_of_equal_sum_and_disagrees_no_more(values):
    order = np.argsort(-np.round(values.sum(axis=0), 9), kind="stable")
    found = reorder(values, order)
    np.testing.assert_allclose(values.sum(axis=0)[found], values.sum(axis=0)[order])
    assert sorted(found.tolist()) == list(range(values.shape[1]))
    before, after = thresholds(values[:, order])[1].sum(), thresholds(values[:, found])[1].sum()
    assert after <= before
    np.testing.assert_array_equal(reorder(values, found), found)


def test_a_model_that_is_right_on_a_harder_item_only_makes_it_the_easier():
    """Sums cannot tell the second item from the third; the first model breaks between them."""
    values = np.array([[1.0, 0, 1], [0, 1, 0], [1, 1, 1]])
    assert thresholds(values)[1].sum() == 2
    order = reorder(values, np.array([0, 1, 2]))
    assert order.tolist() == [0, 2, 1]
    assert thresholds(values[:, order])[1].sum() == 1
