"""Decisions about models, on questions like these and in another run, or on exactly these items."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta
from scipy.stats import t as student

import fewbench
from fewbench.decide.joint_estimate import JointEstimate, contrast
from fewbench.decide.operands import operand
from fewbench.evaluation import Evaluation
from fewbench.scores import from_arrays
from fewbench.testing import simulate
from fewbench.uncertainty.contrast import Contrast, look_factor
from fewbench.uncertainty.questions import (
    disagreement_ratio,
    predicted_disagreement,
    variance_of_chosen,
)

pytestmark = pytest.mark.filterwarnings("ignore::fewbench.errors.EstimateWarning")
CASE = Path(__file__).parents[3] / "shared/cases/versus_same_model_full/scores.csv"
LEVEL = 0.9


def table_of(rows, **options):
    table = from_arrays(np.array(rows, dtype=float), models=[f"m{at}" for at in range(len(rows))])
    return replace(table, **options) if options else table


def reruns(n_items=300, n_runs=5, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.random((n_runs, n_items)) < rng.beta(0.3, 0.3, n_items)) * 1.0


def sides(table, names=None):
    return [operand(name, table) for name in names or table.model_ids[:2]]


def test_every_command_leaves_runs_of_one_model_undecided():
    table = table_of(reruns())
    names = [f"step-{at}" for at in range(1, 6)]
    evaluation = Evaluation(table.take(models=[]).benchmark, "random", 300, names)
    for name, row in zip(names, table.values, strict=True):
        evaluation.tell(name, dict(zip(table.item_ids, row, strict=True)))
    a, b = ((evaluation, name) for name in names[:2])
    found = fewbench.versus(a, b)
    assert (found.verdict, found.is_decidable, found.items_needed) == ("undecided", False, None)
    assert "Even all 300 items do not decide this" in " ".join(str(found).split())
    assert not found.page().next
    gate = fewbench.gate(a, not_below=b)
    assert (gate.verdict, gate.exit_code, gate.page().next) == ("undecided", 3, [])
    ranks = fewbench.rank(evaluation)
    assert not ranks.is_settled
    assert (ranks.is_decidable, ranks.next_targets, ranks.page().next) == (False, (), [])
    assert {(one.rank_low, one.rank_high) for one in ranks.targets} == {(1, 5)}
    assert max(one.chance_best for one in ranks.targets) < 0.95
    assert not fewbench.track(evaluation).real_changes
    fixed = fewbench.rank(evaluation, fixed_items=True)
    assert {one.chance_best for one in fixed.targets} <= {0.0, 0.5, 1.0}  # of ties the half
    for result in (found, gate, ranks, fewbench.track(evaluation)):
        text = " ".join(str(result).split())
        assert "on questions like these and if run again" in text
        assert not any(word in text for word in ("no error", "exact", "settled", "known"))


def test_a_random_sample_is_compared_by_the_paired_t_test():
    """The error of items not run and that of questions are together s^2 / n."""
    truth = simulate(2, 500, seed=2)
    evaluation = Evaluation(truth.benchmark, "random", 60, truth.model_ids)
    for name, items in evaluation.ask().items():
        row = truth.values[truth.model_ids.index(name)]
        evaluation.tell(name, dict(zip(items, row[truth.positions(items)], strict=True)))
    pair = [operand((evaluation, name), evaluation.scores) for name in truth.model_ids]
    apart = (truth.values[0] - truth.values[1])[pair[0].items]
    variance = (((apart - apart.mean()) ** 2).sum() + 2) / 61
    made, fixed = contrast(*pair), contrast(*pair, fixed_items=True)
    half = student(59).ppf(0.95) * np.sqrt(variance / 60)
    assert made.half(LEVEL) == pytest.approx(half, rel=0.03)
    alone = Contrast(made.one, made.other, made.correlation, paired=made.paired)
    assert fixed.interval(LEVEL) == alone.interval(LEVEL)
    of_questions = student(59).ppf(0.95) * np.sqrt(variance / 500)
    assert made.half(LEVEL) == pytest.approx(np.hypot(alone.half(LEVEL), of_questions))


def test_equal_answers_leave_a_difference_open():
    """t sqrt(2 / (N (N + 1))): .53 points of 437 items."""
    row = np.tile([1.0, 0.0], 219)[:437]
    low, high = contrast(*sides(table_of([row, row]))).interval(LEVEL)
    assert high == -low == pytest.approx(0.0053, abs=5e-5)


def test_a_macro_average_varies_within_its_tasks():
    rng, tasks = np.random.default_rng(1), np.repeat(["a", "b"], [40, 160])
    rows = (rng.random((2, 200)) < np.where(tasks == "a", 0.9, 0.3)) * 1.0
    table = from_arrays(rows, models=["x", "y"], tasks=tasks.tolist())
    table = replace(table, average="macro")
    apart, variances = rows[0] - rows[1], []
    parts = [apart[tasks == task] for task in "ab"]
    squares = sum(len(of_task) * of_task.var() for of_task in parts)
    for of_task in parts:
        n, share = len(of_task), len(of_task) * of_task.var() * 198 / squares
        variances.append((squares + 2) / 200 * (share + 2) / (n + 1) / n / 4)
    freedom = sum(variances) ** 2 / (variances[0] ** 2 / 41 + variances[1] ** 2 / 161)
    half = student(freedom).ppf(0.95) * np.sqrt(sum(variances))
    assert contrast(*sides(table)).half(LEVEL) == pytest.approx(half)


def test_cells_that_were_filled_in_make_no_score_known():
    """The difference has the error of the items that both ran, also on exactly these items."""
    rng = np.random.default_rng(3)
    rows = (rng.random((6, 500)) < rng.beta(2, 2, 500)) * 1.0
    rows[0, :20] = np.nan
    table = table_of(rows)
    apart = (rows[0] - rows[1])[20:]
    variance = (((apart - apart.mean()) ** 2).sum() + 2) / 481
    for fixed, share in ((False, 1 / 480), (True, 1 / 480 - 1 / 500)):
        made = contrast(*sides(table), fixed_items=fixed)
        moved = made.difference - apart.mean()  # by what fills the cells
        half = student(479).ppf(0.95) * np.sqrt(variance * share + moved**2)
        assert made.half(LEVEL) == pytest.approx(half)
        assert (made.kind, made.is_certain) == ("answers", False)
    joint = JointEstimate(sides(table), fixed_items=True)
    assert not any(joint.difference(0, 1, 1 + at).is_certain for at in range(len(table.tasks)))


def test_chosen_items_are_put_in_proportion_to_how_often_sources_differ_on_them():
    """The items that tell models apart most say too much of the others; the sources correct it."""
    rng, corrected, naive = np.random.default_rng(0), [], []
    difficulty = rng.normal(0, 2, 400)
    chances = 1 / (1 + np.exp(difficulty - rng.normal(0, 1, (80, 1))))
    rows = (rng.random((80, 400)) < chances) * 1.0
    sources, full = rows[20:], rows[20:].mean(axis=1)
    items = np.argsort(-sources.var(axis=0), kind="stable")[:60]
    for i in range(0, 20, 2):
        apart, (a, b) = rows[i] - rows[i + 1], rows[i : i + 2].mean(axis=1)
        predicted = predicted_disagreement(sources, full, a, b)
        ratio = disagreement_ratio(apart[items], items, predicted)
        how = predicted, a - b, np.full(400, 1 / 400), ratio
        variance = variance_of_chosen(apart[items], *how)
        corrected.append(variance / apart.var())
        naive.append(apart[items].var() / apart.var())
    assert np.mean(naive) > 1.25
    assert np.mean(corrected) == pytest.approx(1.0, abs=0.12)


def test_looks_widen_both_parts_also_after_all_items():
    table = table_of(reruns(160, 2))
    evaluation = Evaluation(table.take(models=[]).benchmark, "random", 160, ["a", "b"])
    for name, row in zip("ab", table.values, strict=True):
        evaluation.tell(name, dict(zip(table.item_ids, row, strict=True)))
    pair = [operand((evaluation, name), evaluation.scores) for name in "ab"]
    once, again = (contrast(*pair, sequential=looks) for looks in (False, True))
    assert again.half(LEVEL) == pytest.approx(look_factor(160, 160, LEVEL) * once.half(LEVEL))
    assert contrast(*pair, sequential=True, fixed_items=True).half(LEVEL) == 0


def test_a_score_against_a_threshold_has_the_interval_of_clopper_and_pearson():
    answers = np.repeat([1.0, 0.0], [47, 3])
    table = table_of([answers])
    evaluation = Evaluation(table.benchmark, "random", 50, ["a"])
    evaluation.tell("a", dict(zip(table.item_ids, answers, strict=True)))
    (check,) = fewbench.gate(evaluation, at_least=0.9).checks
    ends = beta.ppf(0.05, 47, 4), beta.ppf(0.95, 48, 3)
    assert (check.interval.low, check.interval.high) == pytest.approx(ends)
    assert check.verdict == "undecided"
    assert fewbench.gate(evaluation, at_least=0.9, fixed_items=True).verdict == "pass"
    estimate = evaluation.estimate()["a"]
    assert estimate.is_wider_as_model
    assert (estimate.as_model.low, estimate.as_model.high) == pytest.approx(ends)
    assert "In general" in str(estimate)


@pytest.mark.skipif(not CASE.exists(), reason="the recorded cases are not here")
def test_two_runs_of_one_model_in_a_file_are_undecided():
    answers = pd.read_csv(CASE).pivot(index="model", columns="item", values="score")
    table = from_arrays(answers.to_numpy(dtype=float), models=list(answers.index))
    found = fewbench.versus(*table.model_ids[:2], scores=table)
    assert found.verdict == "undecided"
    assert 2 * min(found.chance_a_better, 1 - found.chance_a_better) > 0.2


@pytest.mark.filterwarnings("ignore")
def test_estimates_tracks_and_ranks_give_the_same_interval_of_a_model():
    benchmark = simulate(1, 437, seed=3).benchmark
    evaluation = Evaluation(benchmark, "random", 415, ["run-1", "run-2"])
    rng = np.random.default_rng(1)
    for target, items in evaluation.ask().items():
        evaluation.tell(target, {item: float(rng.random() < 0.5) for item in items})
    estimates = evaluation.estimate()
    points = fewbench.track(evaluation, steps={"run-1": 1, "run-2": 2}).points
    places = {place.target: place for place in fewbench.rank(evaluation).targets}
    for point in points:
        estimate = estimates[point.checkpoint]
        assert point.interval == estimate.interval
        assert point.as_model == estimate.as_model == places[point.checkpoint].interval
        assert estimate.is_wider_as_model
    assert str(estimates).count("In general") > 1
    ends = estimates.to_frame()[["model_low", "model_high"]].to_numpy().tolist()
    assert ends == [[point.as_model.low, point.as_model.high] for point in points]


def t_half(apart):
    return student(len(apart) - 1).ppf(0.95) * apart.std(ddof=1) / np.sqrt(len(apart))


@pytest.mark.parametrize("n_run", [10, 45, 60])
def test_scores_between_0_and_1_have_the_width_of_the_usual_t_test(n_run):
    """Two more items that differ by the whole scale, made for right and wrong, give × 2.5 to 6."""
    rng, items = np.random.default_rng(2), [f"i{at}" for at in range(60)]
    rows = np.clip(rng.normal(0.6, 0.2, 60) + rng.normal(0, 0.04, (2, 60)), 0, 1)
    table = from_arrays(rows, models=["a", "b"], items=items)
    evaluation = Evaluation(table.benchmark, "random", n_run, ["a", "b"])
    for target, asked in evaluation.ask().items():
        row = dict(zip(items, rows["ab".index(target)].tolist(), strict=True))
        evaluation.tell(target, {item: row[item] for item in asked})
    at = evaluation.record.answers("a").items
    found = fewbench.versus((evaluation, "a"), (evaluation, "b"))
    half = (found.interval.high - found.interval.low) / 2
    assert half == pytest.approx(t_half((rows[0] - rows[1])[at]), rel=0.02)
    gate = fewbench.gate((evaluation, "a"), not_below=(evaluation, "b"))
    assert gate.checks[0].interval == found.interval
    if n_run == 60:
        whole = fewbench.versus("a", "b", scores=table).interval
        assert dict(whole) == pytest.approx(dict(found.interval))
        assert [place.tied_with for place in fewbench.rank(table).targets] == [("b",), ("a",)]


def test_the_prior_of_a_macro_average_counts_once():
    """Once a task, it makes the interval of these very unequal tasks 4 times as wide."""
    rng, sizes = np.random.default_rng(3), (300, 80, 10, 5, 2)
    rows = rng.binomial(5, rng.random(sum(sizes)), (2, sum(sizes))) / 5
    tasks = np.repeat(list("vwxyz"), sizes)
    table = from_arrays(rows, models=["a", "b"], tasks=tasks.tolist()).averaged("macro")
    apart = rows[0] - rows[1]
    variance = sum(apart[tasks == task].var(ddof=1) / (tasks == task).sum() for task in "vwxyz")
    assert contrast(*sides(table)).standard_error < 1.8 * np.sqrt(variance) / 5


@pytest.mark.parametrize(("differ", "most"), [(0.03, 1.0), (0.1, 0.98), (0.25, 0.93)])
def test_a_baseline_in_full_makes_no_interval_wider(differ, most):
    """By the estimate's own interval, moved, it is 1.3 times as wide where 3% differ."""
    rng, items, ratios = np.random.default_rng(4), [f"i{at}" for at in range(400)], []
    for seed in range(8):
        rows = np.tile(rng.random(400) < 0.6, (2, 1)) * 1.0
        rows[0] = np.where(rng.random(400) < differ, 1 - rows[0], rows[0])
        table, widths = from_arrays(rows, models=["a", "b"], items=items), []
        for base, targets in ((table.benchmark, ["a", "b"]), (table.take(models=[1]), ["a"])):
            evaluation = Evaluation(base, "random", 80, targets, seed)
            for target, asked in evaluation.ask().items():
                row = dict(zip(items, rows["ab".index(target)].tolist(), strict=True))
                evaluation.tell(target, {item: row[item] for item in asked})
            other = (evaluation, "b") if "b" in targets else "b"
            found = fewbench.versus((evaluation, "a"), other)
            assert found.score_a == pytest.approx(evaluation.estimate()["a"].score)
            is_moved = found.difference != pytest.approx(found.score_a - found.score_b)
            assert ("not that of the two scores" in " ".join(str(found).split())) == is_moved
            widths.append(found.interval.high - found.interval.low)
        ratios.append(widths[1] / widths[0])
    assert max(ratios) <= 1.005
    assert np.mean(ratios) < most
