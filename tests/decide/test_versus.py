"""Differences of two models: how often intervals hold, and what is said of them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from fewbench.decide.contrast import Contrast
from fewbench.decide.sides import side

import fewbench
from fewbench.errors import FewbenchError
from fewbench.evaluation import Evaluation
from fewbench.scores import Scale
from fewbench.study.multiple import adjusted_p_values
from fewbench.testing import simulate


@pytest.fixture
def played(sources, targets, play, tmp_path):
    """Two evaluations of all targets: a regression on chosen items, and plain random sampling."""

    def make(method, budget=40, seed=0):
        evaluation = Evaluation(sources, method, budget, targets.model_ids, seed)
        evaluation.save(tmp_path / f"{method}-{budget}-{seed}")  # which keeps the errors
        return play(evaluation)

    return make


@pytest.mark.parametrize("method", ["greedy-ridge", "random"])
def test_intervals_of_differences_hold_and_verdicts_are_right(method, played, sources, targets):
    evaluation, truth = played(method), targets.full_scores()
    sides = [side((evaluation, name), sources) for name in targets.model_ids]
    held, wrong, right, wider = [], [], [], []
    for i in range(0, len(sides), 1 if method == "greedy-ridge" else 3):
        for j in range(i):
            contrast = Contrast(sides[i], sides[j], sources, sequential=False)
            found, apart = contrast.interval(0.9), truth[i] - truth[j]
            held.append(found.low <= apart <= found.high)
            right.append((found.low > 0 and apart > 0) or (found.high < 0 and apart < 0))
            wrong.append((found.low > 0 and apart <= 0) or (found.high < 0 and apart >= 0))
            looking = Contrast(sides[i], sides[j], sources, sequential=True).interval(0.9)
            wider.append((looking.high - looking.low) / (found.high - found.low))
            swapped = Contrast(sides[j], sides[i], sources, sequential=False).interval(0.9)
            assert swapped.low == pytest.approx(-found.high)
    assert 0.84 <= np.mean(held) <= 0.99
    assert np.mean(wrong) <= 0.03
    assert np.mean(right) >= 0.5
    assert 1.0 < np.mean(wider) < 2.0  # the price of looking again


def test_equal_models_are_seldom_told_apart(play):
    """Pairs of the same full score: one look, and looks after every fifth answer."""
    drawn = simulate(44 + 120, 200, seed=11)
    values, rng = drawn.values.copy(), np.random.default_rng(0)
    order = 44 + np.argsort(values[44:].sum(axis=1), kind="stable")
    pairs = [pair if at % 2 else pair[::-1] for at, pair in enumerate(order.reshape(-1, 2))]
    for i, j in pairs:
        low, high = sorted((i, j), key=lambda at: values[at].sum())
        surplus = int(values[high].sum() - values[low].sum())
        values[high, rng.permutation(np.flatnonzero(values[high]))[:surplus]] = 0
    table = replace(drawn, values=values, models=drawn.models.drop(columns="family"))
    sources = table.take(models=np.arange(44))
    evaluation = Evaluation(sources, "random", 40, table.model_ids[44:])
    known, looked, once = {}, set(), 0
    for n in range(10, 41, 5):
        play(evaluation, upto=n, truth=table)
        for at, pair in enumerate(pairs):
            sides = [side((evaluation, table.model_ids[i]), sources) for i in pair]
            again = Contrast(*sides, sources, True, known, often=True).interval(0.9)
            looked |= {at} if again.low > 0 or again.high < 0 else set()
            if n == 40:
                found = Contrast(*sides, sources, False, known).interval(0.9)
                once += found.low > 0 or found.high < 0
    assert 1 <= once <= 10  # of 60; 6 at 90 %
    assert 1 <= len(looked) <= 10


def test_scores_that_differ_by_rounding_are_equal_and_names_are_told_apart(sources, targets):
    values = sources.values.copy()
    values[0] = np.random.default_rng(0).random(300)
    values[1] = values[0][::-1]  # a sum in another order
    known = replace(sources, values=values)
    found = fewbench.versus(*known.model_ids[:2], scores=known, margin=0.01)
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
    a, b = targets.model_ids[:2]
    paired, apart = fewbench.versus((one, a), (one, b)), fewbench.versus((one, a), (other, b))
    assert paired.items_common == 40 > apart.items_common
    assert paired.mcnemar is not None
    assert apart.mcnemar is None
    width = [found.interval.high - found.interval.low for found in (paired, apart)]
    assert width[0] < width[1]
    assert paired.plain.paired < paired.plain.unpaired
    items = paired.items()
    assert len(items) == paired.mcnemar.only_a + paired.mcnemar.only_b
    assert (items["a"] != items["b"]).all()
    mean = 40 * (paired.score_a - paired.score_b)
    assert paired.mcnemar.only_a - paired.mcnemar.only_b == pytest.approx(mean)


def test_a_source_model_is_known(played, sources, targets):
    evaluation = played("greedy-ridge")
    name, known = targets.model_ids[0], sources.model_ids[3]
    found = fewbench.versus((evaluation, name), known, margin=0.5)
    full = sources.full_scores()[3]
    assert found.score_b == pytest.approx(full)
    assert found.items_b == found.items_total == 300
    assert found.not_worse
    turned = fewbench.versus(known, (evaluation, name))
    assert turned.interval.low == pytest.approx(-found.interval.high)
    assert turned.chance_a_better == pytest.approx(1 - found.chance_a_better)
    exact = fewbench.versus(known, sources.model_ids[4], scores=sources)
    assert (exact.kind, exact.plain, exact.items_needed) == ("known", None, None)
    assert exact.difference == pytest.approx(full - sources.full_scores()[4])


def test_margins_verdicts_and_chances_agree(played, targets, sources):
    evaluation, seen = played("greedy-ridge"), set()
    first = targets.model_ids[0]
    for name in targets.model_ids[1:]:
        for margin in (0.04, 0.3):
            found = fewbench.versus((evaluation, first), name, margin=margin)
            low, high = found.interval.low, found.interval.high
            expected = "undecided"
            if low > 0 or high < 0:
                expected = "better" if low > 0 else "worse"
                assert abs(found.chance_a_better - 0.5) >= 0.449
            elif low > -margin:
                expected = "equivalent" if high < margin else "not worse"
            assert found.verdict == expected
            assert (found.items_needed is None) == (expected in ("better", "worse", "equivalent"))
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


def test_false_verdicts_on_tasks_are_rare(played, sources, targets):
    """A task verdict against the truth, in any of the close comparisons."""
    evaluation = played("greedy-ridge")
    truth = targets.task_scores()
    sides = [side((evaluation, name), sources) for name in targets.model_ids]
    wrong, pairs = 0, 0
    for i in range(len(sides)):
        for j in range(i):
            contrast = Contrast(sides[i], sides[j], sources, sequential=False)
            _, p_values = contrast.task_tests(0.9)
            apart = truth[i] - truth[j]
            against = np.sign(contrast.differences[1:]) != np.sign(apart)
            wrong += bool((against & (adjusted_p_values(p_values, "holm") <= 0.1)).any())
            pairs += 1
    assert wrong / pairs <= 0.05


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


def test_mistakes(sources, targets, play):
    evaluation = Evaluation(sources, "random", 10, targets.model_ids[:2])
    first, second = evaluation.targets
    holes = sources.values.copy()
    holes[0, :100] = np.nan
    missing = replace(sources, values=holes)
    wrong = {
        "answered none": lambda: fewbench.versus((evaluation, first), second),
        "2 targets": lambda: fewbench.versus(evaluation, second),
        "did you mean": lambda: fewbench.versus("model-2", "model-30", scores=sources),
        "no scores": lambda: fewbench.versus("model-20", "model-30"),
        "with itself": lambda: fewbench.versus("model-30", "model-30", scores=sources),
        "the margin is": lambda: fewbench.versus("model-30", "model-31", scores=sources, margin=2),
        "lacks 33%": lambda: fewbench.versus(missing.model_ids[0], "model-31", scores=missing),
        "different source": lambda: fewbench.versus((evaluation, first), "x", scores=missing),
        "use holm or bh": lambda: fewbench.versus("a", "b", scores=sources, adjust="none"),
        "level 2": lambda: fewbench.versus("a", "b", scores=sources, level=2),
    }
    for said, call in wrong.items():
        with pytest.raises(FewbenchError, match=said):
            call()
    play(evaluation, upto=4)
    found = fewbench.versus((evaluation, first), second, sequential=True)
    assert found.kind == "bounds"  # the first look is later
    assert any("first look" in one for one in found.warnings)
    assert any("not answered yet" in one for one in found.warnings)


def test_targets_stronger_than_the_sources(table, play, tmp_path):
    table = table.take(models=np.argsort(table.full_scores(), kind="stable"))
    sources = table.take(models=np.arange(48))
    targets = table.take(models=np.arange(48, 64, 2))
    evaluation = Evaluation(sources, "greedy-ridge", 40, targets.model_ids)
    evaluation.save(tmp_path / "run")
    play(evaluation, truth=targets)
    truth = targets.full_scores()
    sides = [side((evaluation, name), sources) for name in targets.model_ids]
    kinds, held, wrong = set(), [], 0
    for i in range(len(sides)):
        for j in range(i):
            contrast = Contrast(sides[i], sides[j], sources, sequential=False)
            found, apart = contrast.interval(0.9), truth[i] - truth[j]
            kinds.add(found.kind)
            held.append(found.low <= apart <= found.high)
            wrong += (found.low > 0 and apart <= 0) or (found.high < 0 and apart >= 0)
            looking = Contrast(sides[i], sides[j], sources, sequential=True).interval(0.9)
            assert looking.high - looking.low >= found.high - found.low - 1e-9
    assert "frontier" in kinds
    assert np.mean(held) >= 0.85
    assert wrong <= 1
    best = fewbench.versus((evaluation, targets.model_ids[-1]), targets.model_ids[0])
    assert any("strongest source models" in said for said in best.warnings)
