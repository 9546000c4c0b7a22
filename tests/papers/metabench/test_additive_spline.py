"""Additive splines: against scipy's natural splines, and what they promise at their ends."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from fewbench_papers.metabench.additive_spline import (
    _natural_spline,
    _second_derivatives,
    fit_additive_spline,
)

KNOTS = np.array([0.0, 0.1, 0.5, 0.7, 1.5])


def test_the_basis_is_that_of_natural_cubic_splines():
    second, _ = _second_derivatives(KNOTS)
    x = np.linspace(0, 1.5, 61)
    values = np.random.default_rng(0).normal(size=5)
    spline = CubicSpline(KNOTS, values, bc_type="natural")
    np.testing.assert_allclose(_natural_spline(x, KNOTS, second) @ values, spline(x), atol=1e-12)
    np.testing.assert_allclose(second @ values, spline(KNOTS, 2), atol=1e-10)


def test_beyond_the_rows_it_goes_on_along_the_line_of_each_feature():
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 1, (80, 2))
    y = (x[:, 0] ** 3 - np.sin(5 * x[:, 1]))[:, None]
    fitted = fit_additive_spline(x, y)
    low, high = x.min(axis=0), x.max(axis=0)
    slopes = [np.polynomial.Polynomial.fit(column, y[:, 0], 1).convert().coef[1] for column in x.T]
    corner = fitted.predict(np.array([high]))[0, 0]
    for outside in ([3.0, 0.0], [0.0, 2.0], [3.0, 2.0]):
        said = fitted.predict(np.array([high + outside]))[0, 0]
        assert said == pytest.approx(corner + np.dot(outside, slopes) / 2)
    below = fitted.predict(np.array([[low[0] - 1, 0.5]])) - fitted.predict(
        np.array([[low[0], 0.5]])
    )
    assert below[0, 0] == pytest.approx(-slopes[0] / 2)


def test_a_line_is_found_and_continued():
    x = np.random.default_rng(3).normal(size=(40, 1))
    fitted = fit_additive_spline(x, 2 * x + 1)
    np.testing.assert_allclose(fitted.predict(np.array([[-9.0], [9.0]])), [[-17], [19]], atol=0.02)


def test_functions_add_up_and_each_output_is_its_own():
    rng = np.random.default_rng(4)
    x = rng.uniform(-2, 2, (400, 2))
    y = np.column_stack([np.sin(2 * x[:, 0]) + x[:, 1] ** 2, -x[:, 1]])
    new = rng.uniform(-1.9, 1.9, (200, 2))
    truth = np.column_stack([np.sin(2 * new[:, 0]) + new[:, 1] ** 2, -new[:, 1]])
    both = fit_additive_spline(x, y)
    assert np.abs(both.predict(new) - truth).max() < 0.08
    for at in range(2):
        alone = fit_additive_spline(x, y[:, [at]]).predict(new)
        np.testing.assert_allclose(both.predict(new)[:, [at]], alone, atol=1e-9)


def test_features_that_say_the_same_share_what_they_tell():
    """Beyond the sources the two go on together, not apart with slopes of opposite signs."""
    rng = np.random.default_rng(6)
    a = rng.normal(size=30)
    x = np.column_stack([a, a + 1e-3 * rng.normal(size=30)])
    y = (a + 0.1 * rng.normal(size=30))[:, None]
    fitted = fit_additive_spline(x, y)
    assert fitted.predict(np.array([[4.0, 3.9]]))[0, 0] == pytest.approx(4.0, abs=0.5)


@pytest.mark.parametrize("constant", [0, 1])
def test_a_constant_feature_tells_nothing(constant):
    rng = np.random.default_rng(7)
    x = rng.normal(size=(30, 2))
    x[:, constant] = 0.3
    y = x[:, [1 - constant]]
    other = fit_additive_spline(x, y)
    alone = fit_additive_spline(np.delete(x, constant, axis=1), y)
    new = rng.normal(size=(10, 2))
    np.testing.assert_allclose(
        other.predict(new), alone.predict(np.delete(new, constant, axis=1)), atol=1e-12
    )


def test_when_all_is_constant_the_mean_is_said():
    fitted = fit_additive_spline(np.ones((4, 2)), np.array([[0.0], [1.0], [0.0], [1.0]]))
    assert fitted.predict(np.array([[5.0, -3.0]])).tolist() == [[0.5]]
