"""Intervals: what they are made of, and where they say that they cannot be trusted.

That they hold at their level is for tests/evaluation/test_covering.py.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.evaluation import Evaluation, Stop
from fewbench.methods import find_method
from fewbench.scores import from_arrays
from fewbench.testing import simulate
from fewbench.uncertainty.held_out import CONFORMAL, Quantiles, measure
from fewbench.uncertainty.intervals import Uncertainty, around, stricter, wilson
from fewbench.uncertainty.judge import with_equal_answers
from fewbench.uncertainty.sampling import exact_interval, interval_at


def estimates(method, sources, targets, budget, level=0.9):
    evaluation = Evaluation(sources, method, budget, targets.model_ids)
    while any(evaluation.ask().values()):
        evaluation.tell_table(targets)
    return evaluation.estimate(level, warn=False)


def told(method, sources, answer, budget=30):
    """Estimate a new model with the same answer to every item."""
    evaluation = Evaluation(sources, method, budget, ["new"])
    while any(map(len, (asked := evaluation.ask()).values())):
        evaluation.tell("new", dict.fromkeys(asked["new"], answer))
    return evaluation.estimate(warn=False)["new"]


class TestQuantiles:
    def test_groups_weigh_the_same_whatever_their_size(self):
        """Nine groups of one source with small errors, and one of a hundred with large ones."""
        errors = np.concatenate([np.full(9, 0.01), np.full(100, 0.5)])
        groups = np.concatenate([np.arange(9), np.full(100, 9)])
        found = Quantiles(errors, groups)
        assert found.groups == 10
        assert (found.plain(0.89), found.plain(0.91)) == (0.01, 0.5)
        assert found.mean == pytest.approx((9 * 0.01 + 0.5) / 10)

    def test_few_groups_hold_at_their_level(self):
        """Where the conformal quantile of five does not exist, Student's helps."""
        rng = np.random.default_rng(0)
        for n in (5, 20):
            drawn = rng.standard_t(6, (400, n + 1))
            inside = [abs(x[-1]) <= Quantiles(x[:-1], np.arange(n)).at(0.9) for x in drawn]
            assert 0.87 < np.mean(inside) < 0.96

    def test_between_both_the_more_groups_the_more_conformal(self):
        errors = np.concatenate([np.full(36, 0.1), np.full(4, 5.0)])
        few = Quantiles(errors, np.arange(40))
        assert CONFORMAL == 40  # then both weigh the same
        student = few.at(0.5) ** 2 / few.plain(0.5 * 41 / 40)
        assert few.plain(0.5) == 0.1
        assert few.at(0.5) == pytest.approx((0.1 * student) ** 0.5)

    def test_equal_errors_of_nothing_leave_nothing(self):
        assert Quantiles(np.zeros(50), np.arange(50)).at(0.9) < 1e-6


class TestWilson:
    def test_with_a_normal_quantile_it_is_wilson_s_interval(self):
        for right, n in ((7, 20), (18, 20), (10, 20)):
            p, z = right / n, 1.6448536269514722
            middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
            half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
            found = wilson(p, np.sqrt(p * (1 - p) / n), 1e9, 0.9)
            assert found == pytest.approx((middle - half, middle + half), abs=1e-6)

    @given(st.floats(0, 1), st.floats(0, 0.5), st.floats(1, 500), st.floats(0.05, 0.94))
    def test_it_holds_the_estimate_and_grows_with_the_level(self, p, spread, freedom, level):
        low, high = wilson(p, spread, freedom, level)
        assert 0 <= low <= p + 1e-9
        assert p - 1e-9 <= high <= 1
        wider = wilson(p, spread, freedom, level + 0.05)
        assert wider[0] <= low + 1e-12
        assert high <= wider[1] + 1e-12

    def test_a_score_of_one_is_never_sure_by_a_small_error(self):
        low, high = wilson(1.0, 0.001, 29, 0.9)
        assert high == 1
        assert 0.88 < low < 0.93


def test_targets_within_the_sources_range_are_rarely_said_to_be_unlike_them():
    flagged = []
    for seed in range(3):
        table = simulate(60, 300, seed=seed)
        even = np.arange(60) % 4 == 0  # families of two are divided, too: as like as can be
        sources = table.take(models=np.flatnonzero(~even))
        targets = table.take(models=np.flatnonzero(even))
        low, high = np.quantile(sources.full_scores(), [0.05, 0.95])
        found = estimates("random-ridge", sources, targets, 40)
        for estimate, truth in zip(found.values(), targets.full_scores(), strict=True):
            assert estimate.interval_kind == "held-out"
            assert estimate.interval_sources >= 9
            if low < truth < high:
                flagged.append(any("may not hold" in said for said in estimate.warnings))
    assert len(flagged) > 30
    assert np.mean(flagged) < 0.1


def test_sources_that_only_guess_do_not_show_how_a_better_model_answers():
    """All sources say always yes or always no, and so differ in no ability."""
    rng = np.random.default_rng(0)
    table = simulate(30, 200, 1, seed=0)
    key = np.arange(200) % 2 == 0
    yes = np.arange(30) % 2 == 0
    noise = rng.random(table.values.shape) < 0.03
    values = (np.where(yes[:, None], key, ~key) ^ noise).astype(float)
    sources = replace(table, values=values)

    def said(method, scores):
        return " ".join(Evaluation(scores, method, 20, ["new"]).warnings())

    assert "hardly differ in ability" in said("random-ridge", sources)
    assert "hardly differ" not in said("random-ridge", table)
    assert said("random", sources) == ""


def test_a_method_that_errs_as_much_as_random_sampling_says_so():
    table = simulate(40, 200, seed=1)
    evaluation = Evaluation(table, "tasks-random+mean", 30, ["new"])
    assert any("with 30 items" in w and "of random sampling" in w for w in evaluation.warnings())
    assert Evaluation(table, "greedy-ridge", 30, ["new"]).warnings() == []
    few = simulate(15, 120, seed=4)  # a few models are no evidence for a small difference
    method = find_method("fewbench")
    every = (measure(method, few, 15, seed) for seed in range(30))
    held = next(h for h in every if h.mean_random < h.mean_error < 1.15 * h.mean_random)
    assert not held.is_worse_than_random


def test_fractional_scores_of_a_random_sample_are_judged_by_their_own_variance():
    """Scores near .5: the variance of right and wrong answers is far from theirs."""
    table = simulate(60, 400, seed=2, continuous=True)
    table = replace(table, values=0.4 + 0.2 * table.values)
    few, rest = table.take(models=range(4)), table.take(models=range(4, 60))
    for estimate in estimates("random", rest, few, 50).values():
        binary = np.ptp(interval_at(estimate.score, 50, 400, 0.9))
        assert estimate.interval_kind == "sampled"
        assert estimate.interval.high - estimate.interval.low < 0.5 * binary


def test_a_sample_that_varies_more_than_the_sources_do_is_not_judged_by_them():
    """Sources of .3 to .6 on every item; a target that is all but right or all but wrong."""
    rng = np.random.default_rng(0)
    table = simulate(30, 400, seed=1, continuous=True)
    means = rng.uniform(0.3, 0.6, (30, 1))
    sources = replace(table, values=np.clip(means + rng.normal(0, 0.05, (30, 400)), 0, 1))
    covered = []
    for seed in range(20):
        whole = np.where(np.random.default_rng(seed).random(400) < 0.6, 0.99, 0.01)
        evaluation = Evaluation(sources, "random", 30, ["new"], seed)
        asked = evaluation.ask()["new"]
        evaluation.tell("new", dict(zip(asked, whole[sources.positions(asked)], strict=True)))
        ends = evaluation.estimate()["new"].interval
        covered.append(ends.low <= whole.mean() <= ends.high)
    assert np.mean(covered) >= 0.8


def test_sources_that_all_fail_leave_the_width_of_as_many_random_items():
    """No method errs on sources of which all answers are wrong; a new model may be right."""
    table = simulate(12, 100, seed=0)
    failing = replace(table, values=0 * table.values)
    found = told("random-ridge", failing, 1.0, 20)
    assert found.interval_kind == "random"
    assert (found.score, found.interval.low) == pytest.approx((0.2, 0.2))
    said = " ".join(found.warnings)
    assert "1 independent source model: too few to measure the method's error" in said
    assert "Use random if the target is better" in said
    sampled = told("aipw", failing, 1.0, 20)
    assert sampled.interval.high == 1
    assert sampled.interval.low > 0.8


@pytest.mark.parametrize("n_sources", [2, 3, 12, 40])
@pytest.mark.parametrize("method", ["fewbench", "fewbench-static", "aipw", "random"])
def test_thirty_of_thirty(n_sources, method):
    """All right or all wrong: as random sampling says, whatever the sources score."""
    sources = simulate(n_sources, 300, seed=1)
    right, wrong = (told(method, sources, x) for x in (1.0, 0.0))
    assert (right.answered, wrong.answered) == ("30 of 30 right", "0 of 30 right")
    low = exact_interval(30, 30, 300, 0.9)[0]
    assert right.interval.high == 1
    assert wrong.interval.low == 0
    for width in (1 - right.interval.low, wrong.interval.high):
        assert 0.5 * (1 - low) < width < 2 * (1 - low)
    off = 1 - right.score, wrong.score
    if n_sources == 40 and method.startswith(
        "fewbench"
    ):  # sure that others are wrong on some items
        assert np.mean(off) < 1 / 30
    else:
        assert off == pytest.approx((0, 0), abs=1e-9)


def test_one_source_is_enough_for_random_sampling_and_three_for_any_method():
    table = simulate(20, 300, seed=1)
    one = told("random", table.take(models=[0]), 1.0)
    assert (one.interval.low, one.interval.high) == exact_interval(30, 30, 300, 0.9)
    three, target = table.take(models=[0, 4, 9]), table.take(models=[15])
    for method, kind in (("fewbench", "sampled"), ("random-ridge", "held-out")):
        [found] = estimates(method, three, target, 30).values()
        assert found.interval_kind == kind
        assert found.interval.low < target.full_scores()[0] < found.interval.high


@pytest.mark.parametrize("method", ["fewbench", "greedy-ridge", "random", "aipw"])
def test_no_interval_is_wider_than_what_the_answers_leave_possible(method):
    table = simulate(30, 60, seed=2).averaged("macro")
    sources, targets = table.take(models=range(24)), table.take(models=range(24, 30))
    for n in (10, 50):
        evaluation = Evaluation(sources, method, n, targets.model_ids)
        while any(evaluation.ask().values()):
            evaluation.tell_table(targets)
        for name, one in evaluation.estimate(0.999, warn=False).items():
            items = evaluation.record.answered(name)
            own = evaluation.record.answers(name).scores[0]
            least = float(table.item_weights[items] @ own)
            most = least + 1 - float(table.item_weights[items].sum())
            assert least - 1e-9 <= one.interval.low <= one.score <= one.interval.high <= most + 1e-9


def test_plain_sampling_is_not_advised_against_itself():
    for seed in range(4):
        table = simulate(30, 120, seed=seed).averaged("macro")
        assert Evaluation(table, "random", 20, ["new"], seed).warnings() == []


@pytest.mark.parametrize("sizes", [(298, 2), (5, 5, 5, 100, 100, 100)])
def test_the_error_of_random_sampling_of_macro_averages_is_that_of_the_method(sizes):
    """Few items of a small task weigh much; a task that was not drawn weighs nothing."""
    rng = np.random.default_rng(0)
    tasks = np.repeat([f"t{at}" for at in range(len(sizes))], sizes)
    values = (rng.random((40, len(tasks))) < rng.uniform(0.2, 0.8, (40, 1))).astype(float)
    table = from_arrays(values, models=[f"m{at}" for at in range(40)], tasks=tasks)
    held = measure(find_method("random"), table.averaged("macro"), 20, 0, divisions=5)
    assert held.mean_random == pytest.approx(held.mean_error, rel=0.3)


@pytest.mark.parametrize("by_width", [False, True])
def test_beside_an_estimate_stands_the_half_width_of_random_sampling_at_its_score(by_width):
    stop = Stop(items=20, half_width=0.25 if by_width else None)
    table = simulate(24, 80, seed=3)
    sources, target = table.take(models=range(1, 24)), table.take(models=[0])

    def estimated(method, target=target, sources=sources):
        evaluation = Evaluation(sources, method, targets=target.model_ids, stop=stop)
        while any(evaluation.ask().values()):
            evaluation.tell_table(target)
        return evaluation.estimate(warn=False)[target.model_ids[0]]

    plain = estimated("random")
    ends = plain.interval
    assert plain.random.half_width == pytest.approx((ends.high - ends.low) / 2)
    assert plain.answers_right == round(plain.score * plain.items_run)
    for method in ("random-ridge", "fewbench", "greedy-ridge", "stratified+mean"):
        if by_width and not find_method(method).extends:
            continue
        chosen = estimated(method)
        n = chosen.items_run
        assert chosen.answered == f"{chosen.answers_right} of {n} right"
        low, high = interval_at(chosen.score, n, 80, stricter(0.9) if by_width else 0.9)
        assert chosen.random.half_width == pytest.approx((high - low) / 2)
    fractions = simulate(24, 80, seed=3, continuous=True)
    chosen = estimated(
        "random-ridge", fractions.take(models=[0]), fractions.take(models=range(1, 24))
    )
    assert chosen.answers_right is None
    assert re.fullmatch(rf"{chosen.items_run} answers with a mean of \d+\.\d%", chosen.answered)


@pytest.mark.parametrize("right", [0.0, 1.0])
@pytest.mark.parametrize("method", ["fewbench", "random-ridge"])
def test_the_interval_of_a_task_with_equal_answers_reaches_the_end(method, right):
    table = simulate(31, 300, 3, seed=3)
    truth = dict(zip(table.item_ids, table.values[30], strict=True))
    truth |= dict.fromkeys(table.item_ids[table.task_of == 0], right)
    evaluation = Evaluation(table.take(models=range(30)), method, 60, ["new"])
    while asked := evaluation.ask().get("new"):
        evaluation.tell("new", {item: truth[item] for item in asked})
    found = evaluation.estimate(warn=False)["new"]
    ends = found.task_intervals["task-0"]
    assert right in (ends.low, ends.high)
    assert 0 < found.tasks["task-0"] < 1
    other = found.task_intervals["task-2"]
    assert other.low > 0
    assert other.high < 1


@pytest.mark.parametrize("right", [0.0, 1.0])
def test_equal_answers_widen_the_interval_to_the_exact_one(right):
    """An interval of errors on the sources is too narrow for a target that none of them is like."""
    narrow = Uncertainty(right, "held-out", lambda _: 0.01, around(right, lambda _: 0.01), 0, 1)
    found = with_equal_answers(narrow, np.full(20, right), 200, 0.9)
    for level in (0.5, 0.9):
        exact = exact_interval(round(20 * right), 20, 200, level)
        assert exact[1] - exact[0] > 0.02
        low, high = found.ends(level)
        assert (low, high) == (min(right - 0.01, exact[0]), max(right + 0.01, exact[1]))
    wide = replace(narrow, ends=lambda _: (0.0, 1.0), error=0.3)
    kept = with_equal_answers(wide, np.full(20, right), 200, 0.9)
    assert (kept.ends(0.9), kept.error) == ((0.0, 1.0), 0.3)
    assert with_equal_answers(narrow, np.array([0.0, 1.0]), 200, 0.9) is narrow
