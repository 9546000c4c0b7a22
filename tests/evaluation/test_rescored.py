"""Another question to the same answers: nothing is run again, and the items keep their chances."""

import numpy as np
import pytest

from fewbench import versus
from fewbench.errors import EvaluationError, MethodError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.scoring import Scoring
from fewbench.testing import simulate

NAME = "model-00"


@pytest.fixture(scope="module")
def table():
    return simulate(12, 300, seed=3, n_tasks=3)


def finished(evaluation, table):
    right = dict(zip(table.item_ids, table.values[0], strict=True))
    while asked := evaluation.ask():
        for name, items in asked.items():
            evaluation.tell(name, {item: right[item] for item in items})
    return evaluation


def run(table, n_sources, method="fewbench", items=60):
    sources = table.take(models=np.arange(1, 1 + n_sources)) if n_sources else table.benchmark
    return finished(Evaluation(sources, method, items, [NAME]), table)


@pytest.mark.parametrize("n_sources", [0, 4])
def test_the_same_question_has_the_same_answer(table, n_sources):
    """Chances that are carried over are those that the sample was drawn with."""
    evaluation = run(table, n_sources)
    again = evaluation._carried(evaluation.scores, evaluation._ledger.entries)
    assert again.record.drawings(NAME)
    ours, theirs = (each.estimate(warn=False)[NAME] for each in (evaluation, again))
    assert ours.score == pytest.approx(theirs.score, abs=2e-3)
    assert ours.interval.low == pytest.approx(theirs.interval.low, abs=5e-3)


@pytest.mark.parametrize("n_sources", [0, 4])
@pytest.mark.parametrize("method", ["fewbench", "random"])
def test_all_items_have_the_score_that_is_asked_for(table, n_sources, method):
    evaluation = run(table, n_sources, method, table.n_items)
    macro = evaluation.rescored(Scoring(average="macro")).estimate()
    assert macro.score == pytest.approx(table.averaged("macro").full_scores()[0])
    weights = dict(zip(table.tasks, (1.0, 2.0, 5.0), strict=True))
    weighed = evaluation.rescored(Scoring(weights=weights)).estimate()
    assert weighed.score == pytest.approx(table.task_scores()[0] @ np.array([1, 2, 5]) / 8)


def test_a_macro_average_of_a_sample_is_covered():
    covered = []
    for seed in range(16):
        table = simulate(8, 300, seed=seed, n_tasks=4)
        macro = run(table, 0, items=80).rescored(Scoring(average="macro"))
        interval = macro.estimate(warn=False)[NAME].interval
        covered.append(interval.low <= table.averaged("macro").full_scores()[0] <= interval.high)
    assert np.mean(covered) >= 0.8


def test_decisions_take_what_is_rescored(table):
    evaluations = [run(table, 0), run(table.take(models=np.roll(np.arange(12), 1)), 0)]
    macro = [each.rescored(Scoring(average="macro")) for each in evaluations]
    found = versus(macro[0], macro[1], warn=False)
    assert found.average == "macro"
    assert found.score_a == pytest.approx(macro[0].estimate(warn=False)[NAME].score)


def test_what_is_not_there_is_named(table, tmp_path):
    evaluation = run(table, 4)
    with pytest.raises(EvaluationError, match=r"'acc_norm'.*--metric"):
        evaluation.rescored(Scoring(metric="acc_norm"))
    with pytest.raises(EvaluationError, match="'acc_norm'"):
        run(table, 0).rescored(Scoring(metric="acc_norm"))
    with pytest.raises(EvaluationError, match="2 tasks"):
        evaluation.rescored(Scoring(weights={table.tasks[0]: 1.0}))
    path = tmp_path / "weights.csv"
    path.write_text(f"task,weight\n{table.tasks[0]},-1\n")
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "range"):
        evaluation.rescored(Scoring(weights=path))
    with pytest.raises(MethodError, check=lambda error: error.kind == "changed"):
        run(table, 11, "medoids+mean").rescored(Scoring(average="macro"))
