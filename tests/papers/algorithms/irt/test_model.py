"""Right or wrong out of scores, and what a model of some ability is expected to score."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench_papers.algorithms.irt import best_cuts, binary

HUNDREDTHS = [at / 100 for at in range(1, 100)]


def naive_cut(part):
    """Of the cuts at hundredths the first that best keeps the models' means."""
    errors = []
    for cut in HUNDREDTHS:
        off = []
        for row in part:
            run = [score for score in row if not np.isnan(score)]
            if run:
                off.append(abs(sum(s > cut for s in run) / len(run) - sum(run) / len(run)))
        errors.append(sum(off) / len(off))
    return errors


@given(st.integers(0, 999), st.integers(1, 8), st.integers(1, 20), st.sampled_from([0, 0.3]))
def test_cuts_are_those_of_a_plain_transcription(seed, models, items, missing):
    rng = np.random.default_rng(seed)
    values = rng.beta(0.7, 0.5, size=(models, items))
    values[rng.random(values.shape) < missing] = np.nan
    values[0, 0] = 0.4
    group_of = np.minimum(np.arange(items) * 2 // items, items - 1)
    values[0, :] = np.where(np.isnan(values[0]), 0.7, values[0])  # no group without a score
    said = best_cuts(values, group_of)
    for group, cut in enumerate(said):
        errors = naive_cut(values[:, group_of == group])
        at = round(100 * cut) - 1
        assert errors[at] == pytest.approx(min(errors), abs=1e-12)
        assert at == int(np.argmin(np.round(errors, 12)))


@pytest.mark.parametrize("values", [[[0, 1], [1, 1]], [[0, 0]], [[1, 1]], [[1, np.nan]]])
def test_right_and_wrong_answers_stay_what_they_are(values):
    values = np.array(values, dtype=float)
    cuts = best_cuts(values, np.zeros(2, dtype=int))
    assert cuts.tolist() == [0.5]
    np.testing.assert_array_equal(binary(values, cuts[[0, 0]]), values)


def test_a_group_that_nobody_ran_is_cut_in_the_middle():
    values = np.array([[0.2, np.nan], [0.9, np.nan]])
    assert best_cuts(values, np.array([0, 1]))[1] == 0.5


def test_scores_above_the_cut_are_right_those_at_it_wrong_and_missing_ones_missing():
    said = binary(np.array([[0.5, 0.51, np.nan, 0.0]]), np.array([0.5, 0.5, 0.5, 0.0]))
    np.testing.assert_array_equal(said, [[0, 1, np.nan, 0]])


@pytest.mark.parametrize("dimensions", [1, 3])
def test_information_is_the_squared_slope_over_the_variance(simulated, dimensions):
    model = simulated(1, 12, 9, dimensions).model
    theta, step = model.sources.means, 1e-5
    squares = 0.0
    for d in range(dimensions):
        ahead, behind = theta.copy(), theta.copy()
        ahead[:, d] += step
        behind[:, d] -= step
        squares += ((model.expected(ahead) - model.expected(behind)) / (2 * step)) ** 2
    p = model.expected(theta)
    np.testing.assert_allclose(model.information(theta), squares / (p * (1 - p)), rtol=1e-6)


def test_expected_scores_are_the_chances_that_answers_were_drawn_from(simulated):
    truth = simulated(2, 30, 20, 2)
    np.testing.assert_allclose(truth.model.expected(truth.ability), truth.chance)
    some = np.array([7, 3, 3])
    said = truth.model.expected(truth.ability, some)
    np.testing.assert_array_equal(said, truth.model.expected(truth.ability)[:, some])


def test_expected_scores_lie_between_0_and_1_however_able_one_is(simulated):
    model = simulated(3, 5, 8).model
    far = model.expected(np.array([[-1e4], [1e4]]))
    np.testing.assert_array_equal(far[0], 0.0)
    np.testing.assert_array_equal(far[1], 1.0)
    assert (model.information(np.array([[-1e4], [1e4]])) == 0).all()
