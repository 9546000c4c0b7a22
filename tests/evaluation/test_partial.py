"""Partial answers, skipped items and corrections: the estimate uses what was answered."""

import json

import pytest

from fewbench.errors import AnswersError
from fewbench.evaluation import Evaluation
from fewbench.methods import Subset
from fewbench.scores import from_arrays
from fewbench.testing import simulate

ADAPTIVE = ["fewbench", "fluid", "tailored", "collaborative"]


@pytest.fixture(scope="module")
def table():
    return simulate(22, 60, seed=7)


def tell(evaluation, targets, items, name="model-20"):
    row = targets.take(models=targets.model_positions([name]))
    return evaluation.tell_table(row.take(items=targets.positions(items)), name)


@pytest.mark.parametrize("method", ["random-ridge", "anchor-points"])
def test_a_static_method_is_fitted_to_the_items_that_were_answered(sources, targets, method):
    evaluation = Evaluation(sources, method, 30, ["model-20"])
    asked = evaluation.ask()["model-20"]
    kept = [item for item in asked if item != asked[7]]
    tell(evaluation, targets, kept)
    subset = evaluation.subset
    weights = subset.weights
    if weights is not None:
        left = [w for item, w in zip(subset.items, weights, strict=True) if item != asked[7]]
        weights = tuple(w * sum(weights) / sum(left) for w in left)
    given = Subset(items=tuple(kept), weights=weights)
    alone = Evaluation(sources, method, 29, ["model-20"], subset=given)
    tell(alone, targets, kept)
    said = evaluation.estimate()["model-20"]
    assert said.score == pytest.approx(alone.estimate()["model-20"].score, abs=1e-12)
    assert said.items_run == 29
    assert any("29 of 30 items answered: the estimate uses 29" in one for one in said.warnings)
    tell(evaluation, targets, asked)
    assert not any("items answered" in one for one in evaluation.estimate()["model-20"].warnings)


def test_targets_that_answered_other_items_are_predicted_apart(sources, targets):
    """Each gets what it would get alone."""
    names = targets.model_ids
    both = Evaluation(sources, "random-ridge", 12, names)
    asked = both.ask()["model-20"]
    parts = dict(zip(names, (asked[:9], asked[4:]), strict=True))
    for name, part in parts.items():
        tell(both, targets, part, name)
    together = both.estimate()
    for name, part in parts.items():
        alone = Evaluation(sources, "random-ridge", 12, [name])
        tell(alone, targets, part, name)
        assert alone.estimate()[name].score == pytest.approx(together[name].score, abs=1e-12)


@pytest.mark.parametrize("method", ADAPTIVE)
def test_an_adaptive_method_predicts_after_half_of_its_first_round(sources, targets, method):
    evaluation = Evaluation(sources, method, 20, ["model-20"])
    asked = evaluation.ask()["model-20"]
    half = asked[: -(-len(asked) // 2)]
    tell(evaluation, targets, half)
    said = evaluation.estimate()["model-20"]
    ends = said.interval
    assert 0 <= ends.low <= said.score <= ends.high <= 1
    assert said.items_run == len(half)
    if len(asked) > len(half):
        assert evaluation.ask()["model-20"] == asked[len(half) :]


@pytest.mark.parametrize("method", ["random-ridge", "fewbench", "fluid"])
def test_a_skipped_item_is_not_asked_again(sources, targets, method, tmp_path):
    evaluation = Evaluation(sources, method, 20, ["model-20"])
    evaluation.save(tmp_path)
    asked = evaluation.ask()["model-20"]
    *rest, skipped = asked
    left = evaluation.skip("model-20", [skipped])
    assert left == len(rest) or not rest  # without any, the next round is asked
    if rest:
        tell(evaluation, targets, rest)
    while wanted := evaluation.ask():
        assert skipped not in wanted["model-20"]
        tell(evaluation, targets, wanted["model-20"])
    assert evaluation.finished() == ["model-20"]
    before = evaluation.estimate()["model-20"]
    assert any("1 item skipped" in one for one in before.warnings)
    opened = Evaluation.open(tmp_path, sources)
    assert opened.estimate() == evaluation.estimate()
    assert opened.ask() == {}
    tell(evaluation, targets, [skipped])  # an answer told later counts
    after = evaluation.estimate()["model-20"]
    assert after.items_run == before.items_run + 1
    assert not any("skipped" in one for one in after.warnings)


def test_only_open_items_can_be_skipped(sources):
    evaluation = Evaluation(sources, "random", 5, ["new"])
    asked = evaluation.ask()["new"]
    evaluation.tell("new", {asked[0]: 1.0})
    other = next(item for item in sources.item_ids if item not in asked)
    for item in (asked[0], other):
        with pytest.raises(AnswersError, check=lambda error: error.kind == "unknown"):
            evaluation.skip("new", [asked[1], item])
    assert evaluation.ask()["new"] == asked[1:]


def test_a_correction_replaces_an_answer_and_the_journal_keeps_both(sources, tmp_path):
    evaluation = Evaluation(sources, "random", 8, ["new"])
    evaluation.save(tmp_path)
    asked = evaluation.ask()["new"]
    evaluation.tell("new", dict.fromkeys(asked, 1.0))
    before = evaluation.estimate()
    evaluation.tell("new", {asked[2]: 0.0}, correct=True)
    after = evaluation.estimate()
    assert after["new"].score < before["new"].score
    kept = [json.loads(line) for line in (tmp_path / "answers.jsonl").open()]
    assert kept[-2]["scores"][2] == 1.0
    assert (kept[-1]["scores"], kept[-1]["corrects"]) == ([0.0], True)
    assert Evaluation.open(tmp_path, sources).estimate() == after


def test_corrections_and_new_answers_come_together(sources):
    evaluation = Evaluation(sources, "random", 5, ["new"])
    asked = evaluation.ask()["new"]
    evaluation.tell("new", dict.fromkeys(asked[:2], 1.0))
    table = from_arrays([[0.0, 1.0, 1.0]], models=["new"], items=asked[:3])
    with pytest.raises(AnswersError, check=lambda error: error.kind == "taken"):
        evaluation.tell_table(table)
    taken = evaluation.tell_table(table, correct=True)
    assert (taken.answers, taken.corrected, taken.answers_before) == (1, 1, 1)
    assert evaluation.items("new").loc[asked[:3], "score"].tolist() == [0.0, 1.0, 1.0]


def test_finished_targets_and_others(sources, targets, two_rounds):
    evaluation = Evaluation(sources, two_rounds, 8, targets.model_ids)
    assert evaluation.finished() == []
    for _ in range(2):
        tell(evaluation, targets, evaluation.ask()["model-20"])
    assert (evaluation.finished(), evaluation.waiting()) == (["model-20"], [])
    assert list(evaluation.ask()) == ["model-21"]
    assert len(evaluation.ask(at_most=3)["model-21"]) == 3
    assert list(evaluation.estimate()) == ["model-20"]
