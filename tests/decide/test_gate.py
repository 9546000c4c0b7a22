"""Pass, fail or undecided; how often wrongly when one looks again and again."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fewbench
from fewbench.errors import FewbenchError
from fewbench.evaluation import Evaluation
from fewbench.scores import Scale
from fewbench.show.page import as_markdown
from fewbench.uncertainty.held_out import looks_of


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fewbench", "random"])
def test_looking_again_and_again_keeps_the_level(method, sources, targets, play):
    """With the threshold at the truth, a verdict either way misses by nothing: count both."""
    truth = dict(zip(targets.model_ids, targets.full_scores().tolist(), strict=True))
    evaluation = Evaluation(sources, method, 80, targets.model_ids)
    verdicts = {}
    for n in looks_of(80):
        play(evaluation, upto=n)
        for name, score in truth.items():
            found = fewbench.gate((evaluation, name), at_least=score, sequential=True)
            assert found.checked_at == looks_of(80)
            if found.verdict != "undecided":
                verdicts.setdefault(name, found.verdict)
    assert len(verdicts) <= 4  # of 20; 2 at 90 %
    passed = [
        fewbench.gate((evaluation, name), at_least=max(0, score - 0.25), sequential=True).verdict
        for name, score in truth.items()
    ]
    assert set(passed) == {"pass"}


def test_a_baseline_that_ran_all_items_decides_sooner(sources, targets, play):
    """Against targets 5 to 20 points weaker, or source models of the same scores."""
    evaluation = play(Evaluation(sources, "fewbench", 40, targets.model_ids))
    truth, full = targets.full_scores(), sources.full_scores()
    passed, widths, advised = {"known": 0, "estimated": 0}, [], 0
    for i, name in enumerate(targets.model_ids):
        for j in np.flatnonzero((truth <= truth[i] - 0.05) & (truth >= truth[i] - 0.2)):
            alike = sources.model_ids[np.abs(full - truth[j]).argmin()]
            baselines = {"known": alike, "estimated": (evaluation, targets.model_ids[j])}
            widths.append({})
            for kind, baseline in baselines.items():
                found = fewbench.gate((evaluation, name), not_below=baseline)
                assert found.verdict != "fail"
                passed[kind] += found.verdict == "pass"
                check = found.checks[0]
                widths[-1][kind] = check.interval.high - check.interval.low
                if check.items_if_known is not None:
                    assert kind == "estimated"
                    assert 40 <= check.items_if_known < check.items_needed
                    advised += 1
    assert passed["known"] > passed["estimated"] > 0
    narrower = [one["known"] / one["estimated"] for one in widths]
    assert max(narrower) < 1
    assert np.mean(narrower) < 0.9
    assert advised > 10


def test_exact_intervals_name_more_items_than_were_run():
    """Of a model that is always right, all of the interval is below the value."""
    items = pd.DataFrame({"task": "t"}, index=[f"q{at}" for at in range(1000)])
    evaluation = Evaluation(fewbench.Benchmark(items), "random", 100)
    evaluation.tell("target", dict.fromkeys(evaluation.ask()["target"], 1.0))
    check = fewbench.gate(evaluation, at_least=0.98).checks[0]
    assert check.verdict == "undecided"
    assert 120 < check.items_needed < 500


def test_conditions_and_codes(sources, targets, play):
    name = targets.model_ids[0]
    evaluation = play(Evaluation(sources, "random", 60, [name]))
    full = float(targets.full_scores()[0])
    baseline = sources.model_ids[int(abs(sources.full_scores() - full).argmin())]
    found = {
        "pass": fewbench.gate(evaluation, at_least=0.0),
        "fail": fewbench.gate(evaluation, at_least=1.0),
        "undecided": fewbench.gate(evaluation, at_least=round(full, 3)),
    }
    for verdict, one in found.items():
        assert one.verdict == verdict
        assert one.exit_code == {"pass": 0, "fail": 1, "undecided": 3}[verdict]
        words = {"pass": "passes", "fail": "fails", "undecided": "undecided"}[verdict]
        assert words in repr(one)
        assert words in str(one)
        assert f"| {verdict} |" in as_markdown(one.page())
        assert len(one.to_frame()) == 1
    check = found["undecided"].checks[0]
    assert (check.items_needed, check.is_decidable) == (None, False)
    assert "Even all 300 items would not decide this" in " ".join(str(found["undecided"]).split())
    assert not found["undecided"].page().next
    on_these = fewbench.gate(evaluation, at_least=round(full, 3), fixed_items=True)
    assert on_these.checks[0].items_needed > 60
    assert "--sequential" in on_these.page().next[0]
    both = fewbench.gate(evaluation, at_least=1.0, not_below=baseline, margin=0.5)
    assert [one.verdict for one in both.checks] == ["fail", "pass"]
    assert (both.verdict, both.checks[0].level) == ("fail", pytest.approx(0.95))
    mixed = fewbench.gate(evaluation, at_least=0.0, not_below=baseline)
    assert (mixed.checks[1].verdict, mixed.verdict) == ("undecided", "undecided")
    wide, narrow = (
        fewbench.gate(evaluation, not_below=baseline, sequential=again).checks[0].interval
        for again in (True, False)
    )
    assert narrow.high - narrow.low < wide.high - wide.low


def test_error_rates_pass_below_the_threshold_and_differ_in_their_points(sources, targets, play):
    scale = Scale(0, 100, lower_is_better=True)
    own, name = replace(sources, scale=scale), targets.model_ids[0]
    evaluation = Evaluation(own, "random", 60, [name])
    play(evaluation, truth=replace(targets, scale=scale))
    assert fewbench.gate(evaluation, at_least=99).verdict == "pass"
    assert fewbench.gate(evaluation, at_least=1).verdict == "fail"
    assert fewbench.gate(evaluation, at_least=50).checks[0].rule == "score at most 50"
    known = own.model_ids[0]
    (check,) = fewbench.gate(evaluation, not_below=known).checks
    found = fewbench.versus(evaluation, known)
    assert (check.value, *check.interval) == (found.difference, *found.interval)
    assert abs(check.value) > 1  # in points, as the errors are


def test_mistakes_and_names_that_hold_markup(sources, play, targets):
    evaluation = Evaluation(sources, "random", 10, ["a|b<c>"])
    wrong = {
        "no condition to check": {},
        "margin is given without": {"at_least": 0.5, "margin": 0.1},
        "threshold is 300.*on the scale of the scores": {"at_least": 300},
        "threshold is 60,.*use 0.6": {"at_least": 60},
        "the margin is -1": {"not_below": "model-30", "margin": -1},
        "its own baseline": {"not_below": evaluation},
        "neither a target": {"not_below": "nobody"},
        "no effect if they are not asked for": {"at_least": 0.5, "next_items": 5},
    }
    with pytest.raises(FewbenchError, check=lambda error: error.kind == "unanswered"):
        fewbench.gate(evaluation, at_least=0.5)
    evaluation.tell("a|b<c>", dict.fromkeys(evaluation.ask()["a|b<c>"], 1.0))
    for said, given in wrong.items():
        with pytest.raises(FewbenchError, match=said):
            fewbench.gate(evaluation, **given)
    text = as_markdown(fewbench.gate(evaluation, at_least=0.5).page())
    assert "a\\|b&lt;c&gt;" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| score at least")]
    assert text.count(row.split(" | ")[2]) == 1  # the interval


@pytest.mark.parametrize("fixed_items", [False, True])
def test_a_gate_says_which_margin_its_answers_decide(fixed_items):
    """Two runs of one model pass in 80% of cases with this margin, few with a third of it."""
    rng, passed = np.random.default_rng(0), {1.0: 0, 0.33: 0}
    benchmark = fewbench.testing.simulate(1, 200, 2, seed=0).benchmark
    for world in range(60):
        chances = rng.beta(1, 1, 200)
        evaluation = Evaluation(benchmark, "random", 60, ["new", "old"], seed=world)
        truth = (rng.random((2, 200)) < chances).astype(float)
        for row, (name, items) in zip(truth, evaluation.ask().items(), strict=True):
            evaluation.tell(name, dict(zip(items, row[benchmark.positions(items)], strict=True)))
        pair = {"not_below": (evaluation, "old"), "fixed_items": fixed_items}
        margin = fewbench.gate((evaluation, "new"), **pair).checks[0].margin_decided
        for share in passed:
            found = fewbench.gate((evaluation, "new"), margin=share * margin, **pair)
            passed[share] += found.verdict == "pass"
    assert 0.65 <= passed[1.0] / 60 <= 0.97
    assert passed[0.33] / 60 <= 0.35


def test_exact_scores_pass_without_a_chance_of_error():
    benchmark = fewbench.testing.simulate(1, 20, 1, seed=0).benchmark
    evaluation = Evaluation(benchmark, "random", 20, ["new"])
    evaluation.tell("new", dict.fromkeys(evaluation.ask()["new"], 1.0))
    for fixed, has_chance in ((True, False), (False, True)):
        page = fewbench.gate(evaluation, at_least=0.5, fixed_items=fixed).page()
        assert ("probability of at most" in as_markdown(page)) == has_chance
