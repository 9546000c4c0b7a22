"""How easy items are to the sources: by their scores, or by what they believe."""

from dataclasses import replace

import numpy as np
import pytest

from fewbench.errors import MethodError
from fewbench.methods.ease import ease
from fewbench.scores import OptionProbabilities, from_arrays
from fewbench.testing import simulate

P = np.array([[[0.7, 0.3], [0.6, 0.4]], [[0.6, 0.4], [0.2, 0.8]], [[0.1, 0.9], [0.9, 0.1]]])
NAMES = ["a", "b", "c"]


def test_by_scores_it_is_the_mean_with_missing_cells_filled():
    scores = simulate(9, 20, missing=0.3, seed=3)
    np.testing.assert_allclose(ease(scores), scores.filled.mean(axis=0))


def test_by_probabilities_it_is_the_mean_belief_in_the_right_option():
    scores = from_arrays([[1, 0], [1, 1], [0, 0]], models=NAMES, probabilities=P)
    np.testing.assert_allclose(ease(scores, "probabilities"), [1.4 / 3, 1.3 / 3])


def test_probabilities_tell_apart_items_that_scores_do_not():
    scores = simulate(20, 60, options=4, seed=1)
    assert len(np.unique(ease(scores, "probabilities"))) > len(np.unique(ease(scores)))
    order = np.corrcoef(ease(scores, "probabilities"), ease(scores))
    assert order[0, 1] > 0.8


def test_a_source_with_a_score_and_no_probabilities_counts_by_its_score():
    p = P.copy()
    p[2] = np.nan
    scores = from_arrays([[1, 0], [1, 1], [0, 0]], models=NAMES, probabilities=p)
    np.testing.assert_allclose(ease(scores, "probabilities"), [1.3 / 3, 1.2 / 3])


def test_cells_not_run_are_filled_as_scores_are():
    """A source of little belief that was not run on an item does not make it the easier."""
    values, p = np.array([[1.0, 1], [0, 0], [1, 1]]), np.zeros((3, 2, 2))
    p[..., 0] = [[0.9, 0.9], [0.1, 0.1], [0.6, 0.6]]
    p[..., 1] = 1.0 - p[..., 0]
    whole = from_arrays(values, models=NAMES, probabilities=p)
    holes, q = values.copy(), p.copy()
    holes[1, 1], q[1, 1] = np.nan, np.nan
    part = replace(whole, values=holes, probabilities=OptionProbabilities(q))
    easy = ease(part, "probabilities")
    assert easy[1] < np.nanmean(q[:, 1, 0]) - 0.1
    assert ((easy >= 0) & (easy <= 1)).all()


def test_without_probabilities_it_says_so():
    with pytest.raises(MethodError, match="no option probabilities"):
        ease(simulate(5, 9), "probabilities")
