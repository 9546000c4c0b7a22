"""Items of which nothing is known, alike in every command."""

import numpy as np
import pandas as pd
import pytest

from fewbench import extend, gate, rank, track, versus
from fewbench.errors import EvaluationError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.scoring import Scoring
from fewbench.scores import Benchmark
from fewbench.testing import simulate
from fewbench.uncertainty.sampling import exact_interval

IDS = [f"q{at}" for at in range(1000)]


def evaluated(*, right: int, lost: int, method: str = "fewbench", scores=(1.0, 0.0)) -> Evaluation:
    """Return two targets: `good` with 68 of 100, `bad` without some of its answers."""
    table = Benchmark(pd.DataFrame({"task": ["one"] * 1000}, index=IDS))
    evaluation = Evaluation(table, method, 100, ["good", "bad"])
    asked = evaluation.ask()["good"]
    best, worst = scores
    evaluation.tell("good", {q: best if at < 68 else worst for at, q in enumerate(asked)})
    gaps = np.linspace(0, 97, lost).astype(int)
    given = np.delete(asked, gaps)
    evaluation.tell("bad", {q: best if at < right else worst for at, q in enumerate(given)})
    return evaluation


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["fewbench", "random"])
@pytest.mark.parametrize("scores", [(1.0, 0.0), (0.0, 1.0)])
def test_who_reports_only_right_or_only_wrong_answers_is_told_apart_nowhere(method, scores):
    evaluation = evaluated(right=50, lost=50, method=method, scores=scores)
    pair = (evaluation, "bad"), (evaluation, "good")
    assert versus(*pair).verdict == "undecided"
    assert not rank(evaluation).is_settled
    (change,) = track(evaluation, steps={"good": 1, "bad": 2}).changes
    assert change.verdict == "undecided"
    assert gate(pair[0], at_least=0.5).verdict == "undecided"
    assert gate(pair[0], not_below=pair[1]).verdict == "undecided"


@pytest.mark.filterwarnings("ignore")
def test_the_ends_are_as_if_all_that_is_open_were_wrong_or_right():
    found = evaluated(right=50, lost=30).estimate()["bad"]
    assert found.score == pytest.approx(50 / 70)
    low, high = exact_interval(50, 100, 1000, 0.9)[0], exact_interval(80, 100, 1000, 0.9)[1]
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high), abs=0.02)
    assert any("no answer" in one for one in found.warnings)


@pytest.mark.filterwarnings("ignore")
def test_one_item_that_failed_costs_little_and_a_run_that_stopped_nothing():
    whole, one = (evaluated(right=68, lost=lost) for lost in (0, 1))

    def width(evaluation):
        made = versus((evaluation, "bad"), (evaluation, "good"))
        return made.interval.high - made.interval.low

    assert width(whole) < width(one) < width(whole) + 0.03
    stopped = Evaluation(whole.scores.benchmark, "fewbench", 100, ["m"])
    stopped.tell("m", dict.fromkeys(stopped.ask()["m"][:40], 1.0))
    found = stopped.estimate()["m"].interval
    assert (found.low, found.high) == exact_interval(40, 40, 1000, 0.9)


@pytest.fixture
def extended(tmp_path):
    """600 easy items, of which one program answers 80%; then 400 hard ones, of which 10%."""
    rows = [(f"e{at}", "easy") for at in range(600)] + [(f"h{at}", "hard") for at in range(400)]
    ids, tasks = zip(*rows, strict=True)
    whole = Benchmark(pd.DataFrame({"task": tasks}, index=list(ids)))
    chance = np.where(np.arange(1000) < 600, 0.8, 0.1)
    right = np.random.default_rng(0).random(1000) < chance
    known = dict(zip(ids, right.astype(float), strict=True))
    evaluation = Evaluation(Benchmark(whole.items.iloc[:600]), "fewbench", 200, ["before"])
    evaluation.save(tmp_path)
    evaluation.tell("before", {item: known[item] for item in evaluation.ask()["before"]})
    extend(tmp_path, whole)
    evaluation = Evaluation.open(tmp_path)
    evaluation.follow("after", "before")
    while asked := evaluation.ask(targets=["after"]):
        evaluation.tell("after", {item: known[item] for item in asked["after"]})
    return evaluation, right.mean()


@pytest.mark.filterwarnings("ignore")
def test_what_only_one_side_answered_is_not_predicted_from_its_other_strata(extended):
    evaluation, truth = extended
    before, after = ((evaluation, name) for name in ("before", "after"))
    assert gate(before, at_least=0.7).verdict == "undecided"
    assert gate(after, at_least=0.7).verdict == "fail"
    found = versus(after, before)
    assert (found.verdict, found.items_total) == ("undecided", 1000)
    assert found.interval.low < 0 < found.interval.high
    assert found.tasks[0].task == "easy"
    assert found.tasks[0].difference == pytest.approx(0, abs=1e-12)
    assert not rank(evaluation).is_settled
    alone = evaluation.estimate()["before"]
    assert alone.interval.low < truth < alone.interval.high
    assert (alone.task_intervals["hard"].low, alone.task_intervals["hard"].high) == (0, 1)
    easy_only = evaluation.rescored(Scoring(weights={"easy": 1, "hard": 0}))
    both = versus((easy_only, "after"), (easy_only, "before"))
    assert (both.difference, both.items_total) == (pytest.approx(0, abs=1e-12), 600)
    assert easy_only.estimate()["before"].score == pytest.approx(alone.tasks["easy"])


def test_another_folder_does_not_follow_an_extended_run(extended):
    evaluation, _ = extended
    other = Evaluation(evaluation.scores, "fewbench", 200, ["new"])
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "changed"):
        other.follow("new", "before", evaluation)


def test_a_difference_that_open_items_cannot_undo_is_likely():
    """Whatever they are, the first model is better by 2.5 points on these 400 items."""
    table = simulate(1, 400, seed=1)
    evaluation = Evaluation(table.benchmark, "random", 400, ["a", "b"])
    for name, right, failed in (("a", 0.95, 40), ("b", 0.82, 20)):
        items = evaluation.ask(targets=[name])[name]
        evaluation.skip(name, items[:failed])
        told = items[failed:]
        hits = round(right * len(told))
        evaluation.tell(
            name, dict(zip(told, [1.0] * hits + [0.0] * (len(told) - hits), strict=True))
        )
    for fixed in (True, False):
        found = versus((evaluation, "a"), (evaluation, "b"), fixed_items=fixed, warn=False)
        assert (found.verdict == "better") == (found.interval.low > 0) == fixed
        assert 0.8 < found.chance_a_better < (1.1 if fixed else 0.95)  # a verdict, at .95
