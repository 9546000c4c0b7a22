"""What a model of some ability is expected to score, and what its answers tell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.algorithms.irt.model import curvature, known_share

logits = st.floats(-60, 60)


def log_logistic(x):
    return -np.logaddexp(0.0, -x)


@pytest.mark.parametrize(("dimensions", "form"), [(1, "2pl"), (3, "2pl"), (1, "3pl"), (2, "3pl")])
def test_information_is_the_squared_slope_over_the_variance(simulated, dimensions, form):
    model = simulated(1, 12, 9, dimensions, form).model
    theta, step = model.sources.means, 1e-5
    squares = 0.0
    for d in range(dimensions):
        ahead, behind = theta.copy(), theta.copy()
        ahead[:, d] += step
        behind[:, d] -= step
        squares += ((model.expected(ahead) - model.expected(behind)) / (2 * step)) ** 2
    p = model.expected(theta)
    np.testing.assert_allclose(model.information(theta), squares / (p * (1 - p)), rtol=1e-6)


@pytest.mark.parametrize("form", ["2pl", "3pl"])
def test_expected_scores_are_the_chances_that_answers_were_drawn_from(simulated, form):
    truth = simulated(2, 30, 20, 2, form)
    np.testing.assert_allclose(truth.model.expected(truth.ability), truth.chance)
    some = np.array([7, 3, 3])
    said = truth.model.expected(truth.ability, some)
    np.testing.assert_array_equal(said, truth.model.expected(truth.ability)[:, some])
    told = truth.model.information(truth.ability, some)
    np.testing.assert_array_equal(told, truth.model.information(truth.ability)[:, some])


def test_expected_scores_lie_between_guessing_and_one_however_able_one_is(simulated):
    model = simulated(3, 5, 8, form="3pl").model
    far = model.expected(np.array([[-1e4], [1e4]]))
    np.testing.assert_allclose(far[0], model.guessing)
    np.testing.assert_array_equal(far[1], 1.0)
    assert (model.information(np.array([[-1e4], [1e4]])) == 0).all()


@given(logits, logits)
def test_curvature_gives_a_parabola_below_the_likelihood(x, at):
    bend = float(curvature(np.array([at]))[0])
    parabola = log_logistic(at) + (x - at) / 2 - bend * (x**2 - at**2) / 2
    # Below 0.001 the curvature is that at 0.001: the same to single precision.
    assert parabola <= log_logistic(x) + 1e-9 * (1 + x**2)


@given(logits)
def test_the_parabola_touches_the_likelihood_with_its_slope(at):
    bend = float(curvature(np.array([at]))[0])
    slope = 1 / (1 + np.exp(at))  # of the log of the logistic function
    assert 0.5 - bend * at == pytest.approx(slope, abs=1e-9)


@given(logits)
def test_curvature_is_largest_at_no_logit_and_falls_on_both_sides(at):
    here, there, middle = curvature(np.array([at, -at, 0.0]))
    assert here == there <= middle == pytest.approx(0.25, abs=1e-6)


def test_curvature_keeps_single_precision():
    assert curvature(np.array([0.0, 2.0], dtype=np.float32)).dtype == np.float32


@given(st.floats(-30, 30), st.floats(0.0, 0.9))
def test_the_share_that_was_known_is_all_that_was_not_guessed(logit, guessing):
    # Bayes' rule where a share of the answers, `guessing`, is right whatever the ability.
    right = guessing + (1 - guessing) / (1 + np.exp(-logit))
    said = known_share(np.array([logit]), np.array([guessing]))[0]
    assert said == pytest.approx(1 - guessing / right, abs=1e-9)
