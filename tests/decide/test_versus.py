"""Differences of two models: how often intervals hold, and what is said of them."""

import json
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t as student

import fewbench
from fewbench.decide.differences import looks_factor
from fewbench.decide.joint_estimate import JointEstimate, contrast
from fewbench.decide.multiple import adjusted_p_values
from fewbench.decide.operands import at_score, operand
from fewbench.errors import FewbenchError
from fewbench.evaluation import Evaluation
from fewbench.scores import Scale
from fewbench.testing import simulate
from fewbench.uncertainty.contrast import look_bounds, look_factor
from fewbench.uncertainty.held_out import looks_of


def told_apart(made, level=0.9):
    """Return 1, -1 or 0 for undecided."""
    low, high = made.interval(level)
    return int(low > 0) - int(high < 0)


@pytest.fixture
def played(sources, targets, play):
    """Evaluations of all targets, answered."""

    def make(method, budget=40, seed=0):
        return play(Evaluation(sources, method, budget, targets.model_ids, seed))

    return make


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fewbench", "greedy-ridge", "random"])
def test_intervals_of_differences_hold_and_verdicts_are_right(method, played, sources, targets):
    """Of two targets, and of a target and a known model: at most 5 % wrong signs at 90 %."""
    evaluation, truth = played(method), targets.full_scores()
    ours = [operand((evaluation, name), sources) for name in targets.model_ids]
    known = [operand(name, sources) for name in sources.model_ids[::4]]
    theirs = [float(one.estimates[0]) for one in known]
    pairs = [(ours[i], ours[j], truth[i] - truth[j]) for i in range(20) for j in range(i)]
    pairs += [(ours[i], known[j], truth[i] - theirs[j]) for i in range(20) for j in range(11)]
    held, signs, wider = [], [], []
    for one, other, apart in pairs:
        made = contrast(one, other)
        low, high = made.interval(0.9)
        held.append(low <= apart <= high)
        signs.append(told_apart(made) * np.sign(apart))
        assert contrast(other, one).interval(0.9) == (-high, -low)
        again = contrast(one, other, sequential=True).interval(0.9)
        wider.append((again[1] - again[0]) / (high - low))
    assert np.mean(held) >= 0.84
    assert np.mean(np.equal(signs, -1)) <= 0.03
    assert np.mean(np.equal(signs, 1)) >= 0.6
    last = look_bounds(looks_of(40), 0.9)[-1]
    assert 1.0 < np.mean(wider) <= last + 1e-9 < 1.1  # the price of looking again


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fewbench(together=2)", "random"])
def test_equal_models_are_seldom_told_apart(method, play):
    """Pairs of the same full score, at one look and at several; and each against its true score."""
    drawn = simulate(44 + 120, 200, seed=11)
    values, rng = drawn.values.copy(), np.random.default_rng(0)
    order = 44 + np.argsort(values[44:].sum(axis=1), kind="stable")
    pairs = [pair if at % 2 else pair[::-1] for at, pair in enumerate(order.reshape(-1, 2))]
    for i, j in pairs:
        low, high = sorted((i, j), key=lambda at: values[at].sum())
        surplus = int(values[high].sum() - values[low].sum())
        values[high, rng.permutation(np.flatnonzero(values[high]))[:surplus]] = 0
    table = replace(drawn, values=values, models=drawn.models.drop(columns="family"))
    sources, full = table.take(models=np.arange(44)), table.full_scores()
    names = [table.model_ids[at] for pair in pairs for at in pair]
    evaluation = Evaluation(sources, method, 40, names)
    looked, once, numbers = set(), [], []
    for n in looks_of(40):
        play(evaluation, upto=n, truth=table)
        for at, pair in enumerate(pairs):
            sides = [operand((evaluation, table.model_ids[i]), sources) for i in pair]
            looked |= {at} if told_apart(contrast(*sides, sequential=True)) else set()
            if n == 40:
                once.append(told_apart(contrast(*sides)))
                numbers += [
                    told_apart(contrast(one, at_score(float(full[i]), sources)))
                    for one, i in zip(sides, pair, strict=True)
                ]
    # Of 60, at a true level of 10 %: 11 or more in 5 % of studies.
    assert np.abs(once).sum() <= 10
    assert 1 <= len(looked) <= 10
    assert np.abs(numbers).sum() <= 18  # of 120
    assert abs(sum(numbers)) <= 12  # neither sign much more often


def test_looks_beyond_the_budget_narrow_and_cost_little_of_the_level():
    """A random walk, looked at after every doubling up to 16 times the budget: 12%, not 10%."""
    budget, rng = 80, np.random.default_rng(0)
    looks = np.array([*looks_of(budget), *(budget * 2**at for at in range(1, 5))])
    factors = np.array([look_factor(int(n), budget, 0.9) for n in looks])
    widths = factors / np.sqrt(looks)
    assert (np.diff(widths) < 0).all()
    steps = np.sqrt(np.diff(looks, prepend=0)) * rng.standard_normal((40_000, len(looks)))
    is_missed = np.abs(steps.cumsum(axis=1)) > 1.6449 * factors * np.sqrt(looks)
    assert is_missed[:, looks <= budget].any(axis=1).mean() == pytest.approx(0.1, abs=0.006)
    assert 0.105 < is_missed.any(axis=1).mean() < 0.128


def test_looks_while_one_side_alone_is_extended_cost_little_of_the_level():
    """After the looks up to the budget, one side goes on to 64 times its own."""
    budget, rng, paths = 100, np.random.default_rng(1), 40_000
    counts = [(n, n) for n in looks_of(budget)]
    counts += [(budget * 2**at, budget) for at in range(1, 7)]
    walks = np.zeros((2, paths))
    before, is_missed = (0, 0), np.zeros(paths, dtype=bool)
    for now in counts:
        sides = [SimpleNamespace(items=range(n), budget=budget, is_known=False) for n in now]
        for walk, n, earlier in zip(walks, now, before, strict=True):
            walk += np.sqrt(n - earlier) * rng.standard_normal(paths)
        error = np.sqrt(1 / now[0] + 1 / now[1])
        apart = np.abs(walks[0] / now[0] - walks[1] / now[1])
        factor = looks_factor(sides, 0.9, fixed_items=True)
        is_missed |= apart > 1.6449 * factor * error
        before = now
    assert 0.105 < is_missed.mean() < 0.122
    # All 6,400 items of the baseline count as 300.
    assert factor == look_factor(300, budget, 0.9) < look_factor(6400, budget, 0.9) / 2


def test_the_items_that_decide_allow_for_the_looks_up_to_them(play):
    """At that number the interval would exclude 0 if the difference stays, one item before not."""
    truth = simulate(2, 2000, seed=2)
    evaluation = play(Evaluation(truth.benchmark, "random", 40, truth.model_ids), truth=truth)
    sides = [operand((evaluation, name), evaluation.scores) for name in truth.model_ids]
    plain, looking = (
        fewbench.versus(
            *((evaluation, name) for name in truth.model_ids),
            sequential=again,
            warn=False,
            fixed_items=True,
        )
        for again in (False, True)
    )
    assert looking.verdict == plain.verdict == "undecided"
    assert plain.items_needed < looking.items_needed < 2000
    half, factor = contrast(*sides, fixed_items=True).half(0.9), partial(looks_factor, sides, 0.9)
    widths = [
        factor(n) * half * np.sqrt((1 / n - 1 / 2000) / (1 / 40 - 1 / 2000))
        for n in (looking.items_needed - 1, looking.items_needed)
    ]
    assert widths[0] > abs(looking.difference) >= widths[1]


def test_a_task_of_which_nothing_is_known_has_no_interval_and_no_p_value(play):
    """Neither does it count among the hypotheses; a chart shows its difference."""
    table = simulate(17, 120, 5, seed=0)
    sources, truth = table.take(models=range(15)), table.take(models=[15, 16])
    evaluation = play(Evaluation(sources, "fewbench", 26, truth.model_ids), truth=truth)
    found = fewbench.versus(*((evaluation, name) for name in truth.model_ids), warn=False)
    known = [task for task in found.tasks if task.interval is not None]
    unknown = next(task for task in found.tasks if task.interval is None)
    assert (unknown.p_value, unknown.p_adjusted, unknown.verdict) == (None, None, "undecided")
    p_values = np.array([task.p_value for task in known])
    assert known
    assert [t.p_adjusted for t in known] == adjusted_p_values(p_values).tolist()
    assert f"{unknown.task}" in json.dumps(found.plot().to_dict())


def test_later_looks_have_narrower_bounds():
    """Wang & Tsiatis 1987, Delta = .25: proportional to (n / last)^-.25; at least one look's."""
    looks = (10, 20, 40, 80, 160)
    bounds = np.array(look_bounds(looks, 0.9))
    assert bounds == pytest.approx(bounds[-1] * (np.array(looks) / 160) ** -0.25)
    rng = np.random.default_rng(1)  # not the paths that set them
    paths = np.cumsum(rng.standard_normal((20_000, 160)), axis=1)[:, np.array(looks) - 1]
    sizes = np.abs(paths) / np.sqrt(looks) / 1.6449
    assert (sizes > bounds).any(axis=1).mean() == pytest.approx(0.1, abs=0.01)
    assert look_bounds((40,), 0.9) == pytest.approx((1.0,), abs=0.02)


def test_scores_that_differ_by_rounding_are_equal_and_names_are_told_apart(sources, targets):
    values = sources.values.copy()
    values[0] = np.random.default_rng(0).random(300)
    values[1] = values[0][::-1]  # a sum in another order
    known = replace(sources, values=values)
    found = fewbench.versus(*known.model_ids[:2], scores=known, margin=0.01, fixed_items=True)
    assert (found.difference, found.verdict, found.chance_a_better) == (0, "equivalent", 0.5)
    one, other = (Evaluation(sources, "random", 12, seed=seed) for seed in (0, 1))
    for evaluation in (one, other):
        evaluation.tell("target", dict.fromkeys(evaluation.ask()["target"], 1.0))
    found = fewbench.versus(one, other)
    assert (found.a, found.b) == ("target (A)", "target (B)")
    assert found.verdict == "undecided"
    assert fewbench.gate(one, not_below=other, margin=0.5).checks[0].rule.count("target (B)")


def test_the_same_items_make_a_difference_more_precise(played, targets):
    one, other = played("random", seed=1), played("random", seed=2)
    names, widths = targets.model_ids, []
    for a, b in zip(names[:10], names[10:], strict=True):
        paired, apart = fewbench.versus((one, a), (one, b)), fewbench.versus((one, a), (other, b))
        assert paired.items_common == 40 > apart.items_common
        width = [found.interval.high - found.interval.low for found in (paired, apart)]
        widths.append([*width, 2 * paired.random.half_width])
    of_paired, of_apart, expected = np.mean(widths, axis=0)
    assert of_paired < 0.97 * of_apart  # answers of two models correlate by .1 to .3
    assert of_paired == pytest.approx(expected, rel=0.15)  # of pairs of source models
    items = paired.items()
    assert (items["a"] != items["b"]).all()
    only_a = 2 * (items["a"] > items["b"]).sum() - len(items)
    assert only_a == pytest.approx(40 * paired.difference)


def test_targets_that_ran_all_items_are_known(sources, targets, play):
    names = targets.model_ids[:2]
    evaluation = play(Evaluation(sources, "random", sources.n_items, names))
    pair, truth = ((evaluation, names[0]), (evaluation, names[1])), targets.full_scores()
    found = fewbench.versus(*pair, fixed_items=True)
    assert found.kind == "known"
    assert found.interval.low == found.interval.high == pytest.approx(truth[0] - truth[1])
    assert (found.verdict == "better") == (truth[0] > truth[1])
    assert all(task.p_value is None for task in found.tasks)
    found = fewbench.versus(*pair)  # by a paired t test, with two more items that differ
    apart = targets.values[0] - targets.values[1]
    error = np.sqrt((((apart - apart.mean()) ** 2).sum() + 2) / 301 / 300)
    half = student(299).ppf(0.95) * error
    assert found.kind == "answers"
    assert found.interval.low == pytest.approx(apart.mean() - half)
    assert found.interval.high == pytest.approx(apart.mean() + half)
    assert found.chance_a_better == pytest.approx(student(299).cdf(apart.mean() / error), abs=1e-6)


def test_a_source_model_is_known(played, sources, targets):
    evaluation = played("greedy-ridge")
    name, known = targets.model_ids[0], sources.model_ids[3]
    found = fewbench.versus((evaluation, name), known, margin=0.5)
    full = sources.full_scores()[3]
    assert found.items_if_known is None
    assert found.score_b == pytest.approx(full)
    assert found.items_b == found.items_total == 300
    assert found.not_worse
    turned = fewbench.versus(known, (evaluation, name))
    assert turned.interval.low == pytest.approx(-found.interval.high)
    assert turned.chance_a_better == pytest.approx(1 - found.chance_a_better)
    exact = fewbench.versus(known, sources.model_ids[4], scores=sources, fixed_items=True)
    assert (exact.kind, exact.random, exact.items_needed) == ("known", None, None)
    assert exact.difference == pytest.approx(full - sources.full_scores()[4])


def test_margins_verdicts_and_chances_agree(played, targets, sources):
    evaluation, seen = played("greedy-ridge"), set()
    first = targets.model_ids[0]
    for name in targets.model_ids[1::2]:
        for margin in (0.04, 0.3):
            found = fewbench.versus((evaluation, first), name, margin=margin, fixed_items=True)
            low, high = found.interval.low, found.interval.high
            expected = "undecided"
            if low > 0 or high < 0:
                expected = "better" if low > 0 else "worse"
                assert abs(found.chance_a_better - 0.5) >= 0.449
            elif low > -margin:
                expected = "equivalent" if high < margin else "not worse"
            assert found.verdict == expected
            needs = found.items_needed, found.items_if_known
            if expected in ("better", "worse", "equivalent"):
                assert needs == (None, None)
            else:  # one of the errors is left if the other model runs all items
                assert 40 <= needs[1] < needs[0] <= 300
            seen.add(expected)
    assert seen >= {"undecided", "equivalent"}
    frame = found.to_frame()
    assert list(frame.index) == ["all", *sources.tasks]
    assert "<table" in found._repr_html_()
    assert json.loads(found.to_json())["verdict"] == found.verdict


def test_tasks_are_adjusted_for_their_number(played, targets):
    p_values = np.array([0.01, 0.04, 0.03, 0.5])
    assert adjusted_p_values(p_values, "holm").tolist() == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert adjusted_p_values(p_values, "bh").tolist() == pytest.approx(
        [0.04, 0.16 / 3, 0.16 / 3, 0.5]
    )
    evaluation = played("greedy-ridge")
    order = np.argsort(targets.full_scores())
    worst, best = (targets.model_ids[at] for at in (order[0], order[-1]))
    for adjust in ("holm", "bh"):
        found = fewbench.versus((evaluation, best), worst, adjust=adjust)
        for one in found.tasks:
            assert one.p_adjusted >= one.p_value
            assert (one.verdict == "better") == (one.p_adjusted <= 0.1)
        assert any(one.verdict == "better" for one in found.tasks)


@pytest.mark.slow
def test_false_verdicts_on_tasks_are_rare(played, sources, targets):
    """A task verdict against the truth, in any of the close comparisons."""
    evaluation = played("greedy-ridge")
    truth = targets.task_scores()
    ours = [operand((evaluation, name), sources) for name in targets.model_ids]
    wrong, right = [], []
    for i in range(len(ours)):
        for j in range(0, i, 2):
            joint = JointEstimate((ours[i], ours[j]))
            made = [joint.difference(0, 1, 1 + at) for at in range(truth.shape[1])]
            apart = adjusted_p_values(np.array([one.p_value for one in made]), "holm") <= 0.1
            signs = np.sign([one.difference for one in made]) * np.sign(truth[i] - truth[j])
            wrong.append((apart & (signs < 0)).any())
            right.append((apart & (signs > 0)).any())
    assert np.mean(wrong) <= 0.05
    assert np.mean(right) >= 0.1


def test_scales(sources, targets, play):
    """Percentages and error rates: the same verdict, the difference on the user's scale."""
    names = targets.model_ids[:2]
    found = {}
    for name, scale in (
        ("unit", Scale()), ("percent", Scale(0, 100)), ("errors", Scale(lower_is_better=True))
    ):  # fmt: skip
        own = replace(sources, scale=scale)
        evaluation = Evaluation(own, "random", 30, names)
        play(evaluation, truth=replace(targets, scale=scale))
        found[name] = fewbench.versus((evaluation, names[0]), names[1])
    unit = found["unit"]
    assert found["percent"].difference == pytest.approx(100 * unit.difference)
    assert found["percent"].interval.low == pytest.approx(100 * unit.interval.low)
    assert found["errors"].difference == pytest.approx(-unit.difference)
    assert found["errors"].interval.low == pytest.approx(-unit.interval.high)
    assert found["errors"].verdict == unit.verdict
    assert found["errors"].chance_a_better == unit.chance_a_better


def test_evaluations_may_have_different_source_models(sources, targets, play):
    names = targets.model_ids[:2]
    first = Evaluation(sources.take(models=[]).benchmark, "random", 100, [names[0]])
    second = Evaluation(sources.take(models=range(10)), "random", 100, [names[1]], seed=1)
    for evaluation in (first, second):
        play(evaluation)
    found = fewbench.versus(first, second)
    a, b = (one.estimate() for one in (first, second))
    assert found.difference == pytest.approx(a.score - b.score)
    assert found.random is not None  # from the ten source models of the second
    own = Evaluation(first.scores, "random", 100, [names[1]])
    play(own)
    assert fewbench.versus(first, own).random is None  # nothing to guess it from
    assert [one.rank for one in fewbench.rank(first, second).targets] == [1, 2]
    with pytest.raises(FewbenchError, check=lambda error: error.kind == "unknown"):
        fewbench.versus(first, sources.model_ids[20])
    known = fewbench.versus(first, sources.model_ids[20], scores=sources)
    assert known.items_b == sources.n_items


def test_mistakes(sources, targets, play):
    evaluation = Evaluation(sources, "random", 10, targets.model_ids[:2])
    first, second = evaluation.targets
    holes = sources.values.copy()
    holes[0, :200] = np.nan
    missing = replace(sources, values=holes)
    wrong = {
        "answered none": lambda: fewbench.versus((evaluation, first), second),
        "2 targets": lambda: fewbench.versus(evaluation, second),
        "did you mean": lambda: fewbench.versus("model-2", "model-30", scores=sources),
        "can only be found": lambda: fewbench.versus("model-20", "model-30"),
        "with itself": lambda: fewbench.versus("model-30", "model-30", scores=sources),
        "the margin is": lambda: fewbench.versus("model-30", "model-31", scores=sources, margin=2),
        "less than half": lambda: fewbench.versus(missing.model_ids[0], "model-31", scores=missing),
        "use holm or bh": lambda: fewbench.versus("a", "b", scores=sources, adjust="none"),
        "level 2": lambda: fewbench.versus("a", "b", scores=sources, level=2),
    }
    for said, call in wrong.items():
        with pytest.raises(FewbenchError, match=said):
            call()
    play(evaluation, upto=4)
    found = fewbench.versus((evaluation, first), second)
    assert any("not answered yet" in one for one in found.warnings)


@pytest.mark.slow
def test_targets_stronger_than_the_sources(play):
    """They are as close to one another as others: their difference is decided as surely."""
    held, wrong = [], 0
    for seed in range(3):
        table = simulate(64, 300, seed=seed)
        order = np.argsort(table.full_scores(), kind="stable")
        sources, targets = table.take(models=order[:48]), table.take(models=order[48::2])
        evaluation = Evaluation(sources, "fewbench", 40, targets.model_ids)
        play(evaluation, truth=targets)
        truth = targets.full_scores()
        ours = [operand((evaluation, name), sources) for name in targets.model_ids]
        for i in range(len(ours)):
            for j in range(i):
                made, apart = contrast(ours[i], ours[j]), truth[i] - truth[j]
                low, high = made.interval(0.9)
                held.append(low <= apart <= high)
                wrong += told_apart(made) * apart < 0
    assert np.mean(held) >= 0.85
    assert wrong <= 0.05 * len(held)
    best = fewbench.versus((evaluation, targets.model_ids[-1]), sources.model_ids[0])
    assert best.verdict == "better"


def test_across_a_change_of_the_benchmark_the_common_items_are_compared():
    table = simulate(3, 200, seed=2)
    found = []
    for row, part in ((0, np.arange(200)), (1, np.arange(150))):
        right = dict(zip(table.item_ids, table.values[row], strict=True))
        evaluation = Evaluation(table.take(items=part).benchmark, "fewbench", 60, [f"step-{row}"])
        asked = evaluation.ask()[f"step-{row}"]
        evaluation.tell(f"step-{row}", {item: right[item] for item in asked})
        found.append(evaluation)
    result = fewbench.versus(*found, warn=False)
    assert result.items_total == 150
    assert "compared on the 150 items that all have: 50 more left out" in result.warnings
    assert fewbench.track(found).items_total == 150
    with pytest.raises(FewbenchError, check=lambda error: error.kind == "unsupported"):
        fewbench.versus(*found, next_items=5, ask=True)
