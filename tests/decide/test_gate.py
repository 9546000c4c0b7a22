"""Pass, fail or undecided; how often wrongly when one looks again and again."""

from dataclasses import replace

import pytest
from fewbench.decide.residuals import looks

import fewbench
from fewbench.errors import FewbenchError
from fewbench.evaluation import Evaluation
from fewbench.scores import Scale


def test_looking_again_and_again_keeps_the_level(sources, targets, play, tmp_path):
    """With the threshold at the truth, a verdict either way misses by nothing: count both."""
    truth = dict(zip(targets.model_ids, targets.full_scores(), strict=True))
    evaluation = Evaluation(sources, "greedy-ridge", 80, targets.model_ids)
    evaluation.save(tmp_path / "run")
    decided = set()
    for n in looks(80):
        play(evaluation, upto=n)
        for name in targets.model_ids:
            found = fewbench.gate((evaluation, name), at_least=float(truth[name]))
            if found.verdict != "undecided":
                decided.add(name)
    assert len(decided) <= 4  # of 20; 2 at 90 %
    for name in targets.model_ids:
        clear = float(truth[name]) - 0.25
        assert fewbench.gate((evaluation, name), at_least=max(0, clear)).verdict == "pass"


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
        assert verdict in repr(one)
        assert verdict in one.to_markdown()
        assert len(one.to_frame()) == 1
    assert found["undecided"].checks[0].items_needed > 60
    both = fewbench.gate(evaluation, at_least=1.0, not_below=baseline, margin=0.5)
    assert [one.verdict for one in both.checks] == ["fail", "pass"]
    assert (both.verdict, both.checks[0].level) == ("fail", pytest.approx(0.95))
    mixed = fewbench.gate(evaluation, at_least=0.0, not_below=baseline)
    assert (mixed.checks[1].verdict, mixed.verdict) == ("undecided", "undecided")
    wide, narrow = (
        fewbench.gate(evaluation, not_below=baseline, once=once).checks[0].interval
        for once in (False, True)
    )
    assert narrow.high - narrow.low < wide.high - wide.low


def test_error_rates_pass_below_the_threshold(sources, targets, play):
    scale = Scale(0, 100, lower_is_better=True)
    own, name = replace(sources, scale=scale), targets.model_ids[0]
    evaluation = Evaluation(own, "random", 60, [name])
    play(evaluation, truth=replace(targets, scale=scale))
    assert fewbench.gate(evaluation, at_least=99).verdict == "pass"
    assert fewbench.gate(evaluation, at_least=1).verdict == "fail"
    assert fewbench.gate(evaluation, at_least=50).checks[0].rule == "score at most 50"


def test_mistakes_and_names_that_hold_markup(sources, play, targets):
    evaluation = Evaluation(sources, "random", 10, ["a|b<c>"])
    wrong = {
        "nothing to check": {},
        "margin without": {"at_least": 0.5, "margin": 0.1},
        "threshold is 3": {"at_least": 3},
        "the margin is -1": {"not_below": "model-30", "margin": -1},
        "its own baseline": {"not_below": evaluation},
        "neither a target": {"not_below": "nobody"},
    }
    with pytest.raises(FewbenchError, match="answered none"):
        fewbench.gate(evaluation, at_least=0.5)
    evaluation.tell("a|b<c>", dict.fromkeys(evaluation.ask()["a|b<c>"], 1.0))
    for said, given in wrong.items():
        with pytest.raises(FewbenchError, match=said):
            fewbench.gate(evaluation, **given)
    text = fewbench.gate(evaluation, at_least=0.5).to_markdown()
    assert "a\\|b&lt;c&gt;" in text
