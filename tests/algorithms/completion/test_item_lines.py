"""Lines between items against numpy's least squares, one pair at a time."""

import tracemalloc

import numpy as np

from fewbench.algorithms.completion.item_to_item import fit_item_lines


def test_each_item_has_the_line_of_least_residual():
    rng = np.random.default_rng(0)
    values, anchors = rng.random((20, 9)), np.array([4, 1, 7])
    answers = rng.random((3, 3))
    said = fit_item_lines(values, anchors).predict(answers)
    for item in range(9):
        best = np.inf
        for at, anchor in enumerate(anchors):
            design = np.column_stack([values[:, anchor], np.ones(20)])
            theta, *_ = np.linalg.lstsq(design, values[:, item], rcond=None)
            residual = ((design @ theta - values[:, item]) ** 2).sum()
            if residual < best:
                best, expected = residual, theta[0] * answers[:, at] + theta[1]
        np.testing.assert_allclose(said[:, item], expected)


def test_right_and_wrong_give_shares_of_those_who_answered_alike():
    values = np.array([[0, 0], [0, 1], [0, 0], [0, 0], [1, 1], [1, 1], [1, 0]], dtype=float)
    said = fit_item_lines(values, np.array([0])).predict(np.array([[0.0], [1.0]]))
    np.testing.assert_allclose(said, [[0, 1 / 4], [1, 2 / 3]], atol=1e-12)


def test_constant_anchors_tell_nothing_and_twins_count_as_the_first():
    rng = np.random.default_rng(1)
    values = rng.random((8, 5))
    values[:, 0] = 1 / 3
    level = fit_item_lines(values, np.array([0])).predict(np.array([[1.0]]))
    np.testing.assert_allclose(level[0], values.mean(axis=0))
    values[:, 4] = values[:, 3]
    assert (fit_item_lines(values, np.array([3, 4])).nearest == 0).all()


def test_it_takes_no_table_of_all_anchors_and_items():
    values = np.random.default_rng(2).random((12, 3000))
    anchors = np.random.default_rng(3).permutation(3000)[:1000]
    tracemalloc.start()
    found = fit_item_lines(values, anchors)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 3000 * 1000 * 8 / 2
    centred = values - values.mean(axis=0)
    shared = centred[:, anchors].T @ centred
    spread = (centred[:, anchors] ** 2).sum(axis=0)
    nearest = (shared**2 / spread[:, None]).argmax(axis=0)
    assert np.array_equal(found.nearest, nearest)
    np.testing.assert_allclose(found.slope, (shared / spread[:, None])[nearest, np.arange(3000)])
