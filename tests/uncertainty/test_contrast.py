"""Differences of two scores: items that are left, and errors that move together."""

import math

import numpy as np
import pytest

from fewbench.algorithms.assisted import SampleErrors
from fewbench.methods.record import Answers
from fewbench.uncertainty.contrast import beside_known, paired_answers, sample_correlation
from fewbench.uncertainty.intervals import Uncertainty, around, student
from fewbench.uncertainty.questions import usual_of, variance_of

ALL = 200
DRAWN = np.random.default_rng(0).random((3, ALL))
ONE = (DRAWN[0] < 0.7).astype(float)
OTHER = np.where(DRAWN[1] < 0.5, ONE, DRAWN[2] < 0.5)


def paired(n):
    items = np.arange(n)
    answers = [Answers(items, each[None, :n]) for each in (ONE, OTHER)]
    return paired_answers(*answers, np.ones(ALL))


@pytest.mark.parametrize("n", [20, 100, 200])
def test_only_the_items_that_are_left_make_a_difference_unsure(n):
    apart = (ONE - OTHER)[:n]
    assert paired(n).error ** 2 == pytest.approx(variance_of(apart) * (1 / n - 1 / ALL))
    if_chosen = 1 / n + 1 / max(ALL - n, 1)
    assert paired(n).most ** 2 == pytest.approx(variance_of(apart, extra=4) * if_chosen)


@pytest.mark.parametrize("n", [100, 200])
def test_only_the_items_that_are_left_make_a_score_beside_a_known_model_unsure(n):
    plain = Uncertainty(0.5, "exact", lambda _: 0.0, lambda _: (0.0, 1.0), 0.0, 1.0)
    found = beside_known(plain, Answers(np.arange(n), ONE[None, :n]), OTHER)
    x, y = OTHER[:n], ONE[:n]
    extra = 2 * OTHER.var()
    b = (((x - x.mean()) @ (y - y.mean())) + extra) / (n * x.var() + extra)
    squares = n * np.var(y - b * x) + 2 * usual_of(y - x) * ((1 + b) / 2) ** 2
    error = math.sqrt(squares / (n + 1) * (1 / n - 1 / ALL))
    assert found.half(0.9) == pytest.approx(student(error, n - 1)(0.9))
    assert (found.half(0.9) == 0) == (n == ALL)


@pytest.mark.parametrize("n", [1, 4, 100])
def test_equal_errors_of_few_items_say_little_of_how_errors_move_together(n):
    """As if one more item were uncorrelated: of one common item alone the two are always alike."""
    influence = np.full(ALL, np.nan)
    influence[:n] = 1.0
    sample = SampleErrors(influence, np.full(ALL, n / ALL), 1 / n)
    score = Uncertainty(
        0.5, "exact", lambda _: 0.1, around(0.5, lambda _: 0.1), 0.0, 1.0, sample=sample
    )
    assert sample_correlation(score, score) == pytest.approx(n / (n + 1))
