"""Partial answers, skipped items and corrections: the estimate uses what was answered."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from fewbench.errors import AnswersError
from fewbench.evaluation import Evaluation
from fewbench.methods import Method, Prediction, Session, Subset
from fewbench.scores import from_arrays
from fewbench.testing import simulate
from fewbench.uncertainty.resemblance import resemblance_of
from fewbench.uncertainty.sampling import standard_error

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
    assert "29 of 30 items answered: the estimate uses 29" in said.warnings[0]
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
        with pytest.raises(AnswersError, match="cannot be skipped"):
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
    with pytest.raises(AnswersError, match="already has a different score"):
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


@dataclass(frozen=True)
class Sure(Method):
    """The mean of the first items; surer of a target that gets the first one right."""

    def start(self, scores, budget, seed, targets):
        return SureSession(scores, budget, targets)

    def describe(self):
        return "sure"


class SureSession(Session):
    def __init__(self, scores, budget, targets):
        super().__init__(targets, scores.n_items)
        self.scores, self.items = scores, np.arange(budget)

    def choose(self, targets):
        return {name: self.items for name in targets if not self.record.rounds(name)}

    def predict(self, targets, *, tasks=True):
        told = np.array([self.record.answers(name).scores[0] for name in targets])
        means = told.mean(axis=1)
        spread = np.where(told[:, 0] == 1, 0.02, 0.05)
        of_tasks = np.repeat(means[:, None], len(self.scores.tasks), axis=1)
        return Prediction(means, of_tasks, spread=spread)


def test_intervals_are_in_units_of_the_spread_of_the_method(sources):
    evaluation = Evaluation(sources, Sure(), 10, ["good", "bad"])
    asked = evaluation.ask()["good"]
    scores = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    evaluation.tell("good", dict(zip(asked, scores, strict=True)))
    evaluation.tell("bad", dict(zip(asked, scores[::-1], strict=True)))
    said = evaluation.estimate()
    widths, own = {}, {}
    for name, spread in (("good", 0.02), ("bad", 0.05)):
        assert said[name].interval_kind == "held-out"
        judge = evaluation.estimating.judge
        resemblance = resemblance_of(sources, [evaluation.record.answers(name)], judge.method.reach)
        unit = np.sqrt(spread * standard_error(0.3, 10, 60)) * resemblance[0].widening
        ends = said[name].interval
        widths[name] = max(ends.high - said[name].score, said[name].score - ends.low)
        own[name] = judge.quantiles(10).at(0.9) * unit
    assert widths["good"] == pytest.approx(own["good"])
    # At most as wide as the method's errors compare with random sampling's.
    assert 1.2 * widths["good"] < widths["bad"] < own["bad"] < 1.1 * widths["bad"]
