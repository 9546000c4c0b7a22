"""From a prediction to an estimate: bounds, intervals, and the comparison with random sampling."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fewbench
from fewbench.evaluation import Evaluation, estimating
from fewbench.methods import Answers, Prediction, Provenance, find_method
from fewbench.scores import Scale
from fewbench.testing import simulate
from fewbench.uncertainty.bounds import past_scores
from fewbench.uncertainty.held_out import HeldOut
from fewbench.uncertainty.intervals import Scored
from fewbench.uncertainty.judge import Judge
from fewbench.uncertainty.resemblance import resemblance_of
from fewbench.uncertainty.sampling import error_within, exact_interval, standard_error

MADE = Provenance(
    method="m", settings="m", budget=5, seed=0, fingerprint="f", average="micro", version="0"
)
TABLE = simulate(10, 30, seed=1)
HALVES = [1, 0, 0, 1, 0]
LIKE, MIDDLING = TABLE.values[0], TABLE.values[9]


def known(*errors):
    """Errors of as many sources, each at a score of one half on 15 of 30 items."""
    count = len(errors)
    rows, zeros = np.arange(count), np.zeros(count)
    every = np.array(errors).reshape(-1, 1, 1) * np.ones((1, 1, 4))
    units = np.full_like(every, standard_error(0.5, 15, 30))
    return HeldOut(np.array([5]), every, units, zeros, zeros, rows, rows, 0 * rows, 0 * rows)


def one_row(answers):
    return Answers(np.arange(len(answers)), np.array([answers], dtype=float))


def estimated(score, items, answers, held, *, scores=TABLE, level=0.9, tasks=(0.5, 0.5, 0.5)):
    """Make an estimate by errors that are given, or of a random sample (None)."""
    answers = Answers(np.array(items), np.array([answers], dtype=float))
    one = Scored.from_row(Prediction(np.array([score]), np.array([tasks])), 0, answers, scores)
    method = find_method("random" if held is None else "random-linear")
    if held is None and scores.average == "macro":
        held = known(*[0.5] * 9)
    judge = Judge(method, scores, 5, lambda _: held)
    return estimating.make_estimate(
        "t", one, judge.uncertainty(one), judge, level, MADE, past_scores(scores)
    )


def test_random_sampling_is_as_wide_as_fewbench_without_sources():
    """From 60 items on, the tasks' differences make a sample's interval narrower."""
    table = simulate(31, 400, seed=5)
    easy = table.values * (table.task_of != 0)  # no model solves the first task
    target = dict(zip(table.item_ids, easy[np.argmax(easy.sum(axis=1))], strict=True))
    table = replace(table, values=easy)
    for n, narrower in ((40, False), (120, True)):
        chosen, alone = (
            fewbench.run(table.take(models=rows), "fewbench", n, score=target.get)
            for rows in (range(30), [])
        )
        random = chosen.estimates["target"].random.half_width
        own = alone.estimates["target"].interval
        score = chosen.estimates["target"].score
        assert random == pytest.approx((own.high - own.low) / 2, rel=0.1)
        low, high = exact_interval(round(n * score), n, 400, 0.9)
        assert (random < 0.9 * (high - low) / 2) == narrower


def test_random_sampling_stands_beside_every_estimate():
    estimate = estimated(0.4, range(5), HALVES, None)
    low, high = exact_interval(2, 5, 30, 0.9)
    assert (estimate.interval.low, estimate.interval.high) == (low, high)
    assert estimate.expected_error == estimate.random.expected_error
    other = estimated(0.4, range(5), HALVES, known(*[0.1] * 20))
    for one in (estimate, other):
        assert one.random.half_width == pytest.approx((high - low) / 2)
        assert one.random.expected_error == pytest.approx(error_within(low, high, 5, 30))


def width(estimate):
    return estimate.interval.high - estimate.interval.low


def test_held_out_errors_make_the_interval_within_what_the_answers_leave_possible():
    many, few = (estimated(0.5, range(15), MIDDLING[:15], known(*[0.05] * n)) for n in (400, 10))
    off = 0.05 * resemblance_of(TABLE, [one_row(MIDDLING[:15])], 0.0)[0].widening
    assert (many.interval.low, many.interval.high) == pytest.approx(
        (0.5 - off, 0.5 + off), rel=0.01
    )
    assert many.expected_error == pytest.approx(off)
    assert (many.interval_kind, many.interval_sources) == ("held-out", 400)
    assert many.warnings == ()
    assert 1.2 * width(many) < width(few) < 3 * width(many)
    most = estimated(0.9, range(25), [1] * 25, known(*[3.0] * 20))
    assert (most.interval.low, most.interval.high) == pytest.approx((25 / 30, 1))


def test_too_few_sources_leave_the_width_of_as_many_random_items():
    from scipy.stats import t as student

    found = estimated(0.65, range(15), LIKE[:15], known(0.01, 0.02))
    half = standard_error(0.65, 15, 30) * student.ppf(0.95, 14)
    assert found.interval_kind == "random"
    assert width(found) == pytest.approx(2 * half)
    assert "too few to measure the method's error" in found.warnings[0]


def test_a_target_unlike_the_sources_gets_at_least_the_width_of_as_many_random_items():
    from scipy.stats import t as student

    held = known(*[0.01] * 400)
    like, right = (estimated(0.8, range(15), x, held) for x in (MIDDLING[:15], [1] * 15))
    half = standard_error(0.8, 15, 30) * student.ppf(0.95, 14)
    assert width(like) < 0.5 * half
    assert right.interval.low == pytest.approx(0.8 - half)
    assert "better than nearly all source models" in right.warnings[0]


@pytest.mark.parametrize(("method", "share"), [("fewbench", 2 / 3), ("random-linear", 1.0)])
def test_a_method_that_predicts_above_the_sources_needs_less_of_that_width(method, share):
    scores, replies = simulate(40, 200, seed=1), np.ones((1, 40))
    replies[0, 0] = 0.0  # equal answers have an interval of their own
    judge = Judge(find_method(method), scores, 40, lambda _: known(*[0.001] * 400))
    prediction = Prediction(np.array([0.9]), np.full((1, len(scores.tasks)), 0.9))
    found = judge.uncertainty(
        Scored.from_row(prediction, 0, Answers(np.arange(40), replies), scores)
    )
    assert found.half(0.9) == pytest.approx(share * judge.random.half(0.9, 40, 0.9), rel=0.01)
    assert "better than nearly all source models" in found.warnings[0]
    assert ("0.67 times as wide" in found.warnings[0]) == (share < 1)


def test_an_interval_is_not_wider_than_that_of_random_items_unless_the_method_errs_more():
    """Drawn towards random's half width, however large the errors, unless the method errs more."""
    scores, answers = simulate(40, 200, seed=1), one_row(simulate(40, 200, seed=1).values[20, :40])
    method, widths = find_method("fewbench"), []
    for errors, random in ((0.1, 0.2), (0.4, 0.05)):
        held = replace(known(*[errors] * 400), random=np.full(400, random))
        held = replace(held, units=held.units / 10)
        judge = Judge(method, scores, 40, lambda _, held=held: held)
        prediction = Prediction(np.array([0.5]), np.full((1, len(scores.tasks)), 0.5))
        found = judge.uncertainty(Scored.from_row(prediction, 0, answers, scores))
        widths.append(found.half(0.9) / judge.random.half(0.5, 40, 0.9))
    assert widths[0] == pytest.approx(1)
    assert widths[1] > 1.5


def test_answers_that_fit_no_source_are_warned_of():
    """Wrong on the easy items and right on the hard ones, where a hundred sources are not."""
    scores, held = simulate(100, 60, seed=2), known(*[0.01] * 400)
    hard = scores.values[:, :30].mean(axis=0) < np.median(scores.values[:, :30].mean(axis=0))
    unfit = estimated(0.5, range(30), hard.astype(float), held, scores=scores)
    assert "does not answer like the source models" in unfit.warnings[0]
    middle = np.argsort(scores.full_scores())[50]
    like = estimated(0.5, range(30), scores.values[middle, :30], held, scores=scores)
    assert not like.warnings


def test_errors_in_place_of_scores_are_warned_of():
    """With five source models no interval is of their errors, and none needs them to be alike."""
    table = simulate(6, 200, seed=2)
    sources, truth = table.take(models=range(5)), table.values[5]
    said = {}
    for name, row in (("scores", truth), ("errors", 1 - truth)):
        evaluation = Evaluation(sources, "random", 60, ["new"])
        items = evaluation.ask()["new"]
        evaluation.tell("new", dict(zip(items, row[sources.positions(items)], strict=True)))
        said[name] = estimating.OPPOSITE in evaluation.estimate()["new"].warnings
    assert said == {"scores": False, "errors": True}


def test_an_interval_as_wide_as_that_of_random_items_is_not_narrower_than_the_printed_one():
    scores = simulate(10, 600, seed=1)
    right = [1] * 100
    few, unlike = (
        estimated(0.358, range(100), right, held, scores=scores)
        for held in (known(0.01, 0.02), known(*[0.01] * 400))
    )
    assert few.interval_kind == "random"
    assert "better than nearly all source models" in unlike.warnings[0]
    for one in (few, unlike):
        assert width(one) >= 2 * one.random.half_width - 1e-9


def right_on(order, n):
    """Answers to the first 15 items, right on the first n of an order of them."""
    return np.isin(np.arange(15), order[:n]).astype(float)


def test_the_more_a_target_may_be_beyond_the_sources_the_nearer_to_random_sampling():
    from scipy.stats import t as student

    held = known(*[0.01] * 400)
    easiest = np.argsort(-TABLE.values[:, :15].mean(axis=0), kind="stable")
    right = [estimated(0.8, range(15), right_on(easiest, n), held) for n in (9, 10, 11, 12)]
    half = standard_error(0.8, 15, 30) * student.ppf(0.95, 14)
    widths = [width(one) / (2 * half) for one in right]
    assert widths == sorted(widths)
    assert 5 * widths[0] < widths[-1] < 0.75
    assert not any(one.warnings for one in right)
    # As many right on the hardest items fit no source: half of random sampling's width and more.
    unfit = estimated(0.8, range(15), right_on(easiest[::-1], 9), held)
    assert unfit.score - unfit.interval.low >= 0.5 * half - 1e-9
    # The error to expect rises for targets beyond the sources, and for those that fit badly, as the
    # least width of their interval.
    assert min(unfit.expected_error, right[-1].expected_error) > 0.02
    plain = math.sqrt(2 / math.pi) * standard_error(0.8, 15, 30)
    assert 0.8 * plain <= unfit.expected_error <= plain + 1e-9
    wrong = estimated(0.01, range(15), [0] * 15, held)
    assert wrong.expected_error > 0.8 * wrong.random.expected_error


def test_a_prediction_that_the_answers_rule_out_is_moved_to_the_nearest_possible():
    low = estimated(0.0, range(15), [1] * 15, known(*[0.1] * 9))
    assert low.score == pytest.approx(0.5)
    task_0 = np.flatnonzero(TABLE.task_of == 0)
    answers = [1.0] * len(task_0)
    every = estimated(0.5, task_0, answers, known(*[0.1] * 9), tasks=(0.2, 0.5, 0.5))
    assert every.tasks["task-0"] == pytest.approx(1.0)
    ends = every.task_intervals["task-0"]
    assert ends.low == pytest.approx(ends.high)
    sizes = np.bincount(TABLE.task_of)
    assert np.average(list(every.tasks.values()), weights=sizes) == pytest.approx(every.score)


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
    held = None if error is None else known(*[error] * 9)
    if held is None:
        score = float(answers @ scores.item_weights[items] / scores.item_weights[items].sum())
    scale = Scale(-5, 5, lower_is_better=bool(seed % 2))
    estimate = estimated(
        score, items, answers, held, scores=replace(scores, scale=scale), level=level
    )
    least, most = sorted(
        scale.from_unit(
            [
                scores.item_weights[items] @ answers,
                1 - scores.item_weights[items] @ (1 - answers),
            ]
        )
    )
    for ends, one in [
        (estimate.interval, estimate.score),
        *((estimate.task_intervals[task], value) for task, value in estimate.tasks.items()),
    ]:
        if ends is not None:
            assert -5 - 1e-9 <= ends.low <= one + 1e-9
            assert one - 1e-9 <= ends.high <= 5 + 1e-9
    ends = estimate.interval
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
    estimate = estimated(1 / 99, np.arange(99), answers, None, scores=scores)
    assert exact_interval(1, 99, 100, 0.9) == (0.01, 0.01)
    assert estimate.interval.low <= 1 / 99 <= estimate.interval.high


def test_exact_only_if_sources_and_answers_are_right_or_wrong():
    items = np.arange(10)
    assert estimated(0.5, items, np.full(10, 0.5), None).interval_kind == "sampled"
    right = estimated(0.5, items, np.arange(10) % 2.0, None)
    ends = (right.interval.low, right.interval.high)
    assert ends == pytest.approx(exact_interval(5, 10, 30, 0.9))
    assert right.interval_kind == "exact"
