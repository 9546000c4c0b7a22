"""Two targets on common items: how far their errors move together, and what a verdict may claim."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fewbench import gate, versus
from fewbench.algorithms.assisted import SampleErrors
from fewbench.algorithms.sampling import NestedSample, permanent_order
from fewbench.decide.joint_estimate import JointEstimate, contrast
from fewbench.decide.next_items import extend
from fewbench.decide.operands import operand
from fewbench.decide.random_pairs import items_needed
from fewbench.evaluation import Evaluation
from fewbench.methods.base import Answers
from fewbench.scores import Benchmark, from_arrays
from fewbench.scores.roles import as_sources
from fewbench.testing import simulate
from fewbench.uncertainty.contrast import Contrast, paired_answers, sample_correlation
from fewbench.uncertainty.intervals import Uncertainty
from fewbench.uncertainty.sampling import hypergeometric

N = 400
TASKS = np.repeat([0, 1, 2, 3], N // 4)


def uncertain(answers, items, chances):
    """A sample's uncertainty whose influences are weighted residuals."""
    loads = 1 / chances[items] / (1 / chances[items]).sum()
    influence = np.full(N, np.nan)
    influence[items] = loads * (answers[items] - loads @ answers[items])
    zero = lambda level: (0.0, 0.0)  # noqa: E731
    sample = SampleErrors(influence, chances, 0.0)
    return Uncertainty(0.5, "sampled", lambda level: 0.0, zero, 0, 1, sample=sample)


def pairs(n, *, apart, unequal):
    """Draw two targets' samples again and again; return their estimates and correlations."""
    rng = np.random.default_rng(0)
    chance = rng.beta(0.5, 0.5, N)
    answers = (rng.random((2, N)) < chance).astype(float)
    estimates, found = [], []
    for seed in range(800):
        seeds = (seed, seed + 10_000) if apart else (seed, seed)
        sides, both = [], []
        for row, order_seed in enumerate(seeds):
            sizes = 0.3 + np.random.default_rng(row).random(N) if unequal else np.ones(N)
            sample = NestedSample(permanent_order(TASKS, order_seed), sizes)
            items, chances = sample.take(n), sample.chances(n)
            sides.append(uncertain(answers[row], items, chances))
            loads = 1 / chances[items]
            both.append(answers[row, items] @ loads / loads.sum())
        estimates.append(both)
        found.append(sample_correlation(*sides))
    return np.corrcoef(np.array(estimates).T)[0, 1], float(np.mean(found))


@pytest.mark.slow
@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_errors_move_together_by_the_items_in_common_beyond_chance(share, unequal):
    """Of samples drawn apart n/N of the items are common by chance: their errors do not."""
    n = round(share * N)
    actual, said = pairs(n, apart=False, unequal=unequal)
    assert said == pytest.approx(actual, abs=0.1)
    assert said > 0.2
    actual, said = pairs(n, apart=True, unequal=unequal)
    assert actual == pytest.approx(0, abs=0.12)
    assert said == pytest.approx(0, abs=0.06)


def evaluated(scores, name, answers, n, seed=0):
    evaluation = Evaluation(scores, "fewbench", n, [name], seed)
    known = dict(zip(scores.item_ids.tolist(), answers.tolist(), strict=True))
    while asked := evaluation.ask():
        evaluation.tell(name, {item: known[item] for item in asked[name]})
    return evaluation


def difference(scores, rows, n, seeds):
    """Return the contrast of two targets with these answers, on exactly these items."""
    sides = [
        operand((evaluated(scores, name, row, n, seed), name), scores)
        for name, row, seed in zip("ab", rows, seeds, strict=True)
    ]
    return contrast(*sides, fixed_items=True)


@pytest.fixture(scope="module")
def world():
    """A benchmark alone, three or forty source models of it, and the answers of another model."""
    rng = np.random.default_rng(3)
    logits = rng.normal(0, 1.5, N) + np.repeat([-1.0, 0.0, 0.5, 1.0], N // 4)
    rows = rng.random((4, N)) < 1 / (1 + np.exp(-logits - rng.normal(0, 0.5, (4, 1))))
    ids, tasks = [f"q{at}" for at in range(N)], [f"task {at}" for at in TASKS]
    alone = as_sources(Benchmark(pd.DataFrame({"task": tasks}, index=ids)))
    models = ["s0", "s1", "s2"]
    few = from_arrays(rows[:3].astype(float), models=models, items=ids, tasks=tasks)
    clear = 3 * logits + rng.normal(0, 1, (40, 1))
    sure = (rng.random((40, N)) < 1 / (1 + np.exp(-clear))).astype(float)
    many = from_arrays(sure, models=[f"m{at}" for at in range(40)], items=ids, tasks=tasks)
    return {"none": alone, "few": few, "many": many}, rows[3].astype(float)


@pytest.mark.parametrize("sources", ["none", "few"])
def test_targets_run_the_same_items_whatever_their_names(world, sources):
    scores, answers = world[0][sources], world[1]
    first = evaluated(scores, "ckpt-2", answers, 100).record.answered("ckpt-2")
    other = evaluated(scores, "ckpt-3", 1 - answers, 100).record.answered("ckpt-3")
    more = evaluated(scores, "ckpt-3", answers, 160).record.answered("ckpt-3")
    assert len(np.intersect1d(first, other)) >= (100 if sources == "none" else 80)
    assert len(np.intersect1d(first, more)) >= 99


def test_sources_change_few_items_of_a_sample(world):
    """What `add` makes of a run: the next model runs the items of the first."""
    scores, answers = world
    items = evaluated(scores["none"], "new", answers, 100).record.answered("new")
    ran = np.full(N, np.nan)
    ran[items] = answers[items]
    ids, tasks = scores["none"].item_ids.tolist(), [f"task {at}" for at in TASKS]
    added = from_arrays(ran[None], models=["first"], items=ids, tasks=tasks)
    for table in (added, scores["few"]):
        later = evaluated(table, "new", answers, 100).record.answered("new")
        assert len(np.intersect1d(items, later)) >= 85


def test_equal_answers_do_not_prove_equal_models(world):
    scores, answers = world[0]["none"], world[1]
    same = difference(scores, (answers, answers), 100, (0, 0))
    assert same.difference == 0
    first, second = (evaluated(scores, name, answers, 100) for name in ("a", "b"))
    found = versus(first, second)
    assert (found.verdict, found.items_needed) == ("undecided", None)
    assert "Items that differ: 0 of 100" in str(found)
    low, high = same.interval(0.9)
    assert 0.01 < high == -low < 0.04


def test_the_number_of_items_that_decide_is_one_of_pairs(world):
    """Two samples drawn apart: on the same items far fewer tell a model from a near copy."""
    scores, answers = world[0]["none"], world[1]
    copy = np.where(np.arange(N) % 20, answers, 1.0)
    first, second = evaluated(scores, "a", answers, 100), evaluated(scores, "b", copy, 100, 6)
    found, (check,) = versus(second, first), gate(second, not_below=first, margin=0.01).checks
    for shown, interval in ((found, found.interval), (check, check.interval)):
        value = abs(shown.value + 0.01 if shown is check else shown.difference)
        apart = items_needed((interval.high - interval.low) / 2, value, 100, N)
        assert 100 <= shown.items_needed < 0.8 * apart


@pytest.mark.parametrize(("share", "gained"), [(0.3, 6), (0.5, 3), (0.5, 12)])
def test_differences_of_near_copies_are_covered(world, share, gained):
    """A copy that is right on a few more items: exactly, over how many of them a sample holds."""
    scores, answers, n = world[0]["none"], world[1], round(share * N)
    ran = evaluated(scores, "a", answers, n).record.answered("a")
    rng, wrong = np.random.default_rng(0), np.flatnonzero(answers == 0)
    drawn, rest = (
        rng.permutation(wrong[np.isin(wrong, ran) == inside]) for inside in (True, False)
    )
    chances = hypergeometric(np.arange(gained + 1), N, np.array(gained), n)
    covered = 0.0
    for hits in range(gained + 1):
        copy = answers.copy()
        copy[np.append(drawn[:hits], rest[: gained - hits])] = 1
        low, high = difference(scores, (copy, answers), n, (0, 0)).interval(0.9)
        covered += chances[hits] * (low <= gained / N <= high)
    assert covered > 0.9


def test_near_copies_are_compared_by_their_paired_answers(world):
    """Source models say that most items are sure; a copy changed at random differs there too.

    By the answers alone: Agresti & Min 2005 for the items in common, and the errors of the models.
    """
    scores, rng, n = world[0]["many"], np.random.default_rng(5), 240
    answers = scores.cells[7]
    sources = scores.take(models=np.delete(np.arange(40), 7))
    of_answers = operand((evaluated(sources, "b", answers, n), "b"), sources)
    covered = []
    for _ in range(5):
        copy = answers.copy()
        copy[rng.permutation(np.flatnonzero(answers == 0))[:8]] = 1
        copy[rng.permutation(np.flatnonzero(answers == 1))[:4]] = 0
        sides = [operand((evaluated(sources, "a", copy, n), "a"), sources), of_answers]
        made = contrast(*sides, fixed_items=True)
        items = np.intersect1d(sides[0].items, sides[1].items)
        apart = copy[items] - answers[items]
        variance = (((apart - apart.mean()) ** 2).sum() + 2) / (len(items) + 1)
        error = np.sqrt(variance * (1 / len(items) - 1 / N))
        assert made.half(0.9) >= np.hypot(1.64 * error, apart.mean() - made.difference)
        covered.append(abs(made.difference - 0.01) <= made.half(0.9) + 1e-9)
    assert np.mean(covered) > 0.7


@pytest.mark.parametrize(("kind", "differ"), [("held-out", 12), ("held-out", 50), ("sampled", 12)])
def test_errors_of_other_pairs_widen_no_difference_of_models_alike(kind, differ):
    """Held-out errors are as large for any pair; paired answers say how far these two differ."""
    from scipy.stats import t as student

    n, zero = 100, lambda level: (0.0, 0.0)
    sides = [Uncertainty(at, kind, lambda level: 0.07, zero, 0, 1) for at in (0.6, 0.5)]
    apart = np.array([1.0] * differ + [0.0] * (n - differ))
    items = np.arange(n)
    paired = paired_answers(
        Answers(items, apart[None]), Answers(items, 0 * apart[None]), np.ones(N)
    )
    variance = (((apart - apart.mean()) ** 2).sum() + 4) / (n + 1) * (1 / n + 1 / (N - n))
    most = np.hypot(student(n - 1).ppf(0.95) * np.sqrt(variance), apart.mean() - 0.1)
    alone = 0.07 * np.sqrt(2)
    decides = (kind, differ) == ("held-out", 12)
    half = Contrast(*sides, paired=paired).half(0.9)
    assert half == pytest.approx(most if decides else alone)
    assert (most < alone) == (differ == 12)
    narrow = replace(sides[0], half=lambda level: 0.01)  # that of near copies is no shorter
    assert Contrast(narrow, narrow, paired=paired).half(0.9) == pytest.approx(0.01 * np.sqrt(2))


def test_tasks_of_near_copies_are_compared_by_their_paired_answers(world):
    """One item of a task that differs decides nothing; equal answers leave no difference."""
    from scipy.stats import t as student

    scores, answers, n = world[0]["none"], world[1], 100
    items = evaluated(scores, "a", answers, n).record.answered("a")
    copy = answers.copy()
    copy[items[TASKS[items] == 2][0]] = 1 - copy[items[TASKS[items] == 2][0]]
    sides = [
        operand((evaluated(scores, name, row, n), name), scores)
        for name, row in (("a", copy), ("b", answers))
    ]
    differences, of_models = (
        [JointEstimate(sides, fixed_items=fixed).difference(0, 1, 1 + at) for at in range(3)]
        for fixed in (True, False)
    )
    ran = np.bincount(TASKS[items])
    for task, made in enumerate(differences):
        assert abs(made.difference) == pytest.approx((task == 2) / ran[task])
        assert made.p_value > 0.3
        apart = np.array([1.0] * (task == 2) + [0.0] * (ran[task] - (task == 2)))
        variance = (((apart - apart.mean()) ** 2).sum() + 2) / (ran[task] + 1)
        error = np.sqrt(variance * (1 / ran[task] - 4 / N))
        quantile = student(ran[task] - 1).ppf(0.95)
        assert made.half(0.9) == pytest.approx(quantile * error)
        as_models = quantile * np.sqrt(variance / ran[task])  # of all such questions
        assert of_models[task].half(0.9) == pytest.approx(as_models)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.3, 0.7])
@pytest.mark.parametrize("sources", ["none", "few"])
def test_differences_of_alike_programs_are_covered(world, sources, share):
    """Equal programs, near copies (3% of the items more right) and others; one sample or two."""
    scores, answers = world[0][sources], world[1]
    rng, n = np.random.default_rng(0), round(share * N)
    near = answers.copy()
    near[rng.permutation(np.flatnonzero(near == 0))[: round(0.03 * N)]] = 1
    other = np.where(rng.random(N) < 0.3, 1 - answers, answers)
    for paired in (True, False):
        for row in (answers, near, other):
            truth = answers.mean() - row.mean()
            covered, wrong = [], []
            for seed in range(100):
                seeds = (seed, seed if paired else seed + 10_000)
                low, high = difference(scores, (answers, row), n, seeds).interval(0.9)
                covered.append(low - 1e-9 <= truth <= high + 1e-9)
                wrong.append((low > 0 and truth <= 0) or (high < 0 and truth >= 0))
            assert np.mean(covered) >= 0.81  # .90, less 3 standard errors of 100, in 36 cases
            if paired:
                assert np.mean(wrong) <= 0.05


def test_further_items_of_a_random_sample_count_in_its_mean():
    """They do for `versus`, `rank` and `estimate --next-items`, whose interval rests on all."""
    evaluation = Evaluation(simulate(12, 80, seed=2), "random", 20)
    evaluation.tell(
        "target", {item: float(n % 2) for n, item in enumerate(evaluation.ask()["target"])}
    )
    extend(evaluation, ["target"], 20)
    evaluation.tell("target", dict.fromkeys(evaluation.ask()["target"], 1.0))
    estimate = evaluation.estimate(warn=False)["target"]
    assert (estimate.items_run, estimate.score) == (40, pytest.approx(0.75))
    assert estimate.interval.low < 0.7 < 0.8 < estimate.interval.high


@pytest.mark.parametrize("method", ["aipw", "random-ridge"])
def test_further_items_count_for_every_method_of_a_random_sample(method):
    """Answers of one to all further items move its estimate, and narrow the interval."""
    evaluation = Evaluation(simulate(30, 160, seed=2), method, 20)
    evaluation.tell(
        "target", {item: float(n % 2) for n, item in enumerate(evaluation.ask()["target"])}
    )
    before = evaluation.estimate(warn=False)["target"]
    extend(evaluation, ["target"], 60)
    evaluation.tell("target", dict.fromkeys(evaluation.ask()["target"], 1.0))
    after = evaluation.estimate(warn=False)["target"]
    assert after.score > before.score + 0.1
    assert not any("count for nothing" in note for note in after.warnings)
