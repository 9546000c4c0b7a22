"""From a prediction to an estimate: bounds, intervals, and the comparison with random sampling."""

from dataclasses import replace

import numpy as np
import pytest
from fewbench.evaluation.calibration import Calibration
from fewbench.evaluation.past_errors import PastErrors
from hypothesis import given
from hypothesis import strategies as st

from fewbench.evaluation import estimating
from fewbench.evaluation.bounds import bound_score, past_scores
from fewbench.evaluation.estimating import Said
from fewbench.evaluation.intervals import ErrorModel
from fewbench.evaluation.sampling import (
    error_within,
    exact_interval,
    standard_error,
)
from fewbench.methods import Provenance, find_method
from fewbench.scores import Scale
from fewbench.testing import simulate

MADE = Provenance(
    method="m", settings="m", budget=5, seed=0, fingerprint="f", average="micro", version="0"
)
TABLE = simulate(10, 30, seed=1)


def make_estimate(of_one, scores, calibration, level, provenance):
    """Make an estimate by past errors that are given, or of a random sample (None)."""
    method = "random" if calibration is None else "random-linear"
    errors = ErrorModel(find_method(method), scores, 5, 0)
    if calibration is not None or scores.average == "macro":
        errors.inside = calibration or known(*[0.5] * 9)
        errors.frontier = None
    of_one = replace(of_one, score=bound_score(of_one.score, scores, of_one.items, of_one.answers))
    [judged] = errors.judge(np.array([of_one.score]), [of_one.items], [of_one.answers], level)
    past = past_scores(scores)
    return estimating.make_estimate(of_one, scores, judged, level, provenance, errors, past)


def said(score, items, answers, tasks=(0.5, 0.5, 0.5), outside=False):
    return Said(
        "t", score, np.array(tasks), outside, (), np.array(items), np.array(answers, dtype=float)
    )


def known(*errors):
    """Past errors of as many sources, each at a score of one half on five of thirty items."""
    count = len(errors)
    rows, zeros = np.arange(count), np.zeros(count)
    spreads = np.full(count, standard_error(0.5, 5, 30))
    return Calibration(PastErrors(np.array(errors), spreads, zeros, zeros, zeros, rows, rows, rows))


def test_random_sampling_stands_beside_every_estimate():
    estimate = make_estimate(said(0.4, range(5), [1, 0, 0, 1, 0]), TABLE, None, 0.9, MADE)
    low, high = exact_interval(2, 5, 30, 0.9)
    assert estimate.random.half_width == pytest.approx((high - low) / 2)
    assert estimate.random.interval == estimate.interval
    assert (estimate.interval.low, estimate.interval.high) == (low, high)
    expected = error_within(low, high, 5, 30)
    assert estimate.random.expected_error == estimate.expected_error == pytest.approx(expected)


def test_past_errors_make_the_interval_within_what_the_answers_leave_possible():
    calibration = known(*[0.1] * 20)
    estimate = make_estimate(said(0.5, range(5), [1, 0, 0, 1, 0]), TABLE, calibration, 0.9, MADE)
    assert (estimate.interval.low, estimate.interval.high) == pytest.approx((0.4, 0.6))
    assert estimate.expected_error == pytest.approx(0.1)
    most = make_estimate(said(0.9, range(25), [1] * 25), TABLE, known(*[3.0] * 20), 0.9, MADE)
    assert (most.interval.low, most.interval.high) == pytest.approx((25 / 30, 1))
    few = make_estimate(said(0.5, range(5), [1, 0, 0, 1, 0]), TABLE, known(0.1), 0.9, MADE)
    assert (few.interval.low, few.interval.high) == pytest.approx((2 / 30, 27 / 30))
    assert "needs 9 source models" in few.warnings[0]
    assert few.interval_kind == "bounds"


def test_a_prediction_that_the_answers_rule_out_is_moved_to_the_nearest_possible():
    low = make_estimate(said(0.0, range(15), [1] * 15), TABLE, known(0.1), 0.9, MADE)
    assert low.score == pytest.approx(0.5)
    task_0 = np.flatnonzero(TABLE.task_of == 0)
    every = make_estimate(
        said(0.5, task_0, [1.0] * len(task_0), (0.2, 0.5, 0.5)), TABLE, known(0.1), 0.9, MADE
    )
    assert every.tasks["task-0"] == pytest.approx(1.0)
    sizes = np.bincount(TABLE.task_of)
    assert np.average(list(every.tasks.values()), weights=sizes) == pytest.approx(every.score)


def test_warnings():
    quiet = make_estimate(said(0.5, [0], [1.0]), TABLE, known(*[0.1] * 20), 0.9, MADE)
    assert quiet.warnings == ()
    loud = make_estimate(said(0.5, [0], [1.0], outside=True), TABLE, known(0.1), 0.9, MADE)
    assert len(loud.warnings) == 2
    assert "unlike every source" in loud.warnings[1]


@given(
    st.integers(1, 30),
    st.floats(0, 1),
    st.sampled_from([0.05, 0.5, 0.9, 0.999]),
    st.sampled_from(["micro", "macro"]),
    st.one_of(st.none(), st.floats(0, 1)),
    st.booleans(),
    st.integers(0, 99),
)
def test_low_score_high_are_in_order_and_possible(n, score, level, average, error, binary, seed):
    rng = np.random.default_rng(seed)
    items = rng.permutation(30)[:n]
    answers = rng.integers(0, 2, n).astype(float) if binary else rng.random(n)
    scores = TABLE.averaged(average)
    calibration = None if error is None else known(*[error] * 9)
    if calibration is None:
        score = float(answers @ scores.item_weights[items] / scores.item_weights[items].sum())
    scale = Scale(-5, 5, lower_is_better=bool(seed % 2))
    estimate = make_estimate(
        said(score, items, answers), replace(scores, scale=scale), calibration, level, MADE
    )
    least, most = sorted(
        scale.from_unit(
            [
                scores.item_weights[items] @ answers,
                1 - scores.item_weights[items] @ (1 - answers),
            ]
        )
    )
    ends = estimate.interval
    assert -5 <= ends.low <= estimate.score <= ends.high <= 5
    assert least - 1e-9 <= ends.low
    assert ends.high <= most + 1e-9
    if n == 30:
        assert ends.high - ends.low < 1e-9
        assert estimate.random.expected_error == 0


def test_the_interval_holds_the_score_where_the_exact_test_rejects_it():
    """One right of 99 of 100: the whole can hold 1 or 2, and 1/99 lies between them."""
    scores = simulate(4, 100)
    answers = np.zeros(99)
    answers[0] = 1
    estimate = make_estimate(said(1 / 99, np.arange(99), answers), scores, None, 0.9, MADE)
    assert exact_interval(1, 99, 100, 0.9) == (0.01, 0.01)
    assert estimate.interval.low <= 1 / 99 <= estimate.interval.high


def test_exact_only_if_sources_and_answers_are_right_or_wrong():
    items = np.arange(10)
    halves = make_estimate(said(0.5, items, np.full(10, 0.5)), TABLE, None, 0.9, MADE)
    assert halves.interval_kind != "exact"
    right = make_estimate(said(0.5, items, np.arange(10) % 2.0), TABLE, None, 0.9, MADE)
    ends = (right.interval.low, right.interval.high)
    assert ends == pytest.approx(exact_interval(5, 10, 30, 0.9))
    assert right.interval_kind == "exact"


def test_the_half_width_is_in_units_of_plain_sampling_s_error():
    """Past errors at one half say less of a score near 0, and of one with more items run."""
    calibration = known(*[0.1] * 20)
    middle = make_estimate(said(0.5, range(5), [1, 0, 0, 1, 0]), TABLE, calibration, 0.9, MADE)
    more = make_estimate(said(0.5, range(20), [1, 0] * 10), TABLE, calibration, 0.9, MADE)
    low = make_estimate(said(0.05, range(5), [0] * 5), TABLE, calibration, 0.9, MADE)
    width = {
        name: one.interval.high - one.interval.low
        for name, one in {"middle": middle, "more": more, "low": low}.items()
    }
    assert width["more"] < 0.6 * width["middle"]
    assert width["low"] < 0.8 * width["middle"]
