"""All that is known about a selection, as plain values."""

import json

import numpy as np
import pytest

from fewbench.errors import StudyError
from fewbench.show.html import write_report
from fewbench.study.metrics import nrmse
from fewbench_papers.bento import (
    TaskAnalysis,
    TaskMatrix,
    TaskResults,
    Transferability,
    read_chooser,
    select_tasks,
)
from fewbench_papers.bento.judgement import anchor_ratio


def select(method, given, k=2):
    return select_tasks(read_chooser(method), given, k, bootstraps=6)


def found(method, by, k=2, **more):
    analysis = TaskAnalysis(select(method, by, k), **more)
    values = analysis.to_dict()
    assert json.loads(json.dumps(values, allow_nan=False)) == json.loads(json.dumps(values))
    return values


@pytest.mark.parametrize(
    ("method", "with_results", "with_matrix"),
    [
        ("bento-sim", True, True),
        ("bento-le(components=3,printed=true)", True, False),
        ("tasks-random", False, True),
        ("tasks-listed(names=task-1|task-3|task-0)", False, False),
    ],
)
def test_with_and_without_results_and_matrix(
    transfer, known, tmp_path, method, with_results, with_matrix
):
    given = {"results": known if with_results else None, "given": transfer if with_matrix else None}
    values = found(method, transfer, 3, **given)
    assert (values["judgement"] is None) == (not with_results)
    assert any("not judged" in said for said in values["warnings"]) == (not with_results)
    page = write_report(TaskAnalysis(select(method, transfer, 3), **given), tmp_path / "page.html")
    assert "task-1" in page.read_text("utf-8")


def test_facts_and_chosen(transfer, known):
    selection = select("bento-sim", transfer)
    found = TaskAnalysis(selection, known, transfer)
    values = found.to_dict()
    assert found.plot().to_dict()["layer"]
    facts = values["facts"]
    assert (facts["method"], facts["k"], facts["tasks"]) == ("bento-sim", 2, 6)
    assert (facts["questions"], facts["chosen questions"]) == (80, selection.questions)
    assert (facts["judged on models"], facts["weigh"]) == (8, "questions")
    assert facts["rows"] == "in-context transferability"
    assert [row["task"] for row in values["chosen"]] == list(selection.tasks)
    assert [row["stability"] for row in values["chosen"]] == [c.stability for c in selection.chosen]
    for row in values["clusters"]:
        assert set(row["chosen"]) == set(row["tasks"]) & set(selection.tasks)
    tasks = sorted(task for row in values["clusters"] for task in row["tasks"])
    assert tasks == sorted(transfer.tasks)


def test_the_anchor_is_the_measured_model_or_a_named_one(transfer, known):
    selection = select("bento-sim", transfer)
    chosen = known.positions(selection.tasks)
    by_itself = TaskAnalysis(selection, known, transfer).to_dict()["judgement"]["anchor_ratio"]
    expected = nrmse(anchor_ratio(known, chosen, transfer.difficulty), known.full)
    assert by_itself == {"anchor": "the measured model", "nrmse": pytest.approx(float(expected))}
    named = TaskAnalysis(selection, known, transfer, known.models[2]).to_dict()["judgement"]
    others = np.arange(8) != 2
    said = anchor_ratio(known, chosen, known.scores[2])[others]
    expected = nrmse(said, known.full[others])
    assert named["anchor_ratio"]["nrmse"] == pytest.approx(float(expected))
    assert TaskAnalysis(selection, known).to_dict()["judgement"]["anchor_ratio"] is None
    with pytest.raises(StudyError, match="'nobody'"):
        TaskAnalysis(selection, known, transfer, "nobody").to_dict()


def test_a_loss_has_no_ratio(transfer, known):
    losses = Transferability(
        transfer.values - 2, transfer.tasks, transfer.targets, transfer.n_questions, "loss"
    )
    values = found("bento-sim", losses, results=known, given=losses)
    assert values["judgement"]["anchor_ratio"] is None
    assert values["difficulty"]["all"] < 0


def test_all_tasks_and_two_tasks(transfer, known):
    values = found("bento-sim", transfer, 6, results=known, given=transfer)
    assert values["judgement"]["nrmse"] == pytest.approx(0, abs=1e-12)
    names = ("a", "b")
    two = Transferability(transfer.values[:, :2, :2], names, names, np.array([5, 6]))
    results = TaskResults(np.array([[0.2, 0.6], [0.5, 0.7]]), ("x", "y"), names, np.array([5, 6]))
    values = found("bento-sim", two, 1, results=results, given=two)
    assert values["clusters"] is None
    assert any("judged on 2 models only" in said for said in values["warnings"])


def test_models_that_tasks_were_chosen_by_are_no_fair_judges(table, known):
    past = TaskMatrix.of_scores(table.take(models=range(5)))
    values = found("tasks-fit", past, results=known, given=past)
    assert any("chosen by 5 of the 8 models" in said for said in values["warnings"])
    new = TaskResults.of_scores(table.take(models=range(5, 8)))
    values = found("tasks-fit", past, results=new, given=past)
    assert not any("models in the results" in said for said in values["warnings"])


def test_choices_that_hang_on_the_seeds_are_warned_of(transfer):
    noise = Transferability(
        np.random.default_rng(0).random((4, 6, 6)),
        transfer.tasks,
        transfer.targets,
        transfer.n_questions,
    )
    values = found("bento-sim", noise, 1)
    assert values["stability"]["pairs"] < 0.5
    assert any("from resampled seeds share" in said for said in values["warnings"])
    assert values["stability"]["tasks"][0]["share"] >= values["stability"]["tasks"][-1]["share"]


def test_a_matrix_of_noise_is_warned_of(transfer):
    noise = Transferability(
        np.random.default_rng(0).random((4, 6, 6)), transfer.tasks, transfer.targets,
        transfer.n_questions, about={"guesses": "the model only guesses"},
    )  # fmt: skip
    warned = found("bento-sim", noise, 2)["warnings"]
    assert any("the matrix does not exceed noise" in said for said in warned)
    assert "the model only guesses" in warned
    shift = np.arange(6)[:, None] * 0.2 + noise.values * 0.01
    signal = Transferability(shift, transfer.tasks, transfer.targets, transfer.n_questions)
    warned = found("bento-sim", signal, 2)["warnings"]
    assert not any("exceed noise" in said for said in warned)


def test_random_questions_err_less_only_where_the_models_show_it(known, transfer):
    """One rule: the two-way interval of the difference, not the means alone."""
    values = found("bento-sim", transfer, results=known, given=transfer)
    judged = values["judgement"]["random_questions"]
    low, high = judged["difference"]["low"], judged["difference"]["high"]
    assert low < judged["difference"]["mean"] < high
    less = any("random questions have a lower error" in said for said in values["warnings"])
    about = any("random questions have about the same error" in said for said in values["warnings"])
    assert (less, about) == (low > 0, low <= 0 <= high)
