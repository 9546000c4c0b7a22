"""Scores that change after a run began: what the answers need decides, and the rest is said."""

import numpy as np
import pytest

from fewbench import add
from fewbench.errors import EvaluationError, MethodError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.journal import Journal
from fewbench.scores import save_scores
from fewbench.testing import simulate

NAME = "new"


@pytest.fixture(scope="module")
def table():
    made = simulate(12, 120, seed=3, n_tasks=3)
    return made.changed(items=made.items.assign(content_hash=[f"h{at}" for at in range(120)]))


@pytest.fixture
def sources(table):
    return table.take(models=np.arange(1, 12))


def answer(evaluation, table, n=None):
    right = dict(zip(table.item_ids, table.values[0], strict=True))
    for items in evaluation.ask(n).values():
        evaluation.tell(NAME, {item: right[item] for item in items})
    return evaluation


def begun(sources, table, folder, method="fewbench", items=30):
    evaluation = Evaluation(sources, method, items, [NAME])
    evaluation.save(folder / "run", save_scores(sources, folder / "scores.parquet"))
    while evaluation.ask():
        answer(evaluation, table)
    return evaluation


def opened(folder, scores):
    path = folder / "scores.parquet"
    path.unlink()
    save_scores(scores, path)
    return Evaluation.open(folder / "run")


def test_a_table_that_only_grows_changes_nothing(table, sources, tmp_path):
    part = sources.take(models=np.arange(9), items=np.arange(100))
    before = begun(part, table, tmp_path).estimate(warn=False)[NAME]
    evaluation = opened(tmp_path, sources)
    assert evaluation.estimate(warn=False)[NAME].score == before.score
    (note,) = evaluation.read_notes
    assert "20 new items of the scores: 'item-100'" in note
    assert "fewbench extend" in note


@pytest.mark.parametrize("method", ["fewbench", "random", "random-ridge", "anchor-points"])
def test_models_that_leave_or_change_their_names_or_answers_are_said(
    table, sources, tmp_path, method
):
    before = begun(sources, table, tmp_path, method)
    values = sources.values.copy()
    values[5] = 1 - values[5]
    names = {"model-02": "other"}
    now = sources.changed(values=values, models=sources.models.rename(index=names))
    evaluation = opened(tmp_path, now.take(models=[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]))
    ours, theirs = (each.estimate(warn=False)[NAME] for each in (evaluation, before))
    (note,) = evaluation.notes
    assert "'model-01' left the scores" in note
    assert "'model-02' is called 'other' now" in note
    assert "'model-06' answered otherwise" in note
    assert note in ours.warnings
    assert ours.items_run == 30
    if method == "random":
        assert (ours.score, ours.interval) == (theirs.score, theirs.interval)


def test_answers_to_items_that_left_or_were_corrected_do_not_count(table, sources, tmp_path):
    evaluation = begun(sources, table, tmp_path)
    ran = evaluation.record.answered(NAME)
    hashes = sources.items["content_hash"].copy()
    hashes.iloc[ran[0]] = "another"
    left = np.setdiff1d(np.arange(120), ran[1:3])
    changed = sources.changed(items=sources.items.assign(content_hash=hashes)).take(items=left)
    now = opened(tmp_path, changed)
    estimate = now.estimate(warn=False)[NAME]
    assert (estimate.items_run, estimate.items_total) == (27, 118)
    said = " ".join(estimate.warnings)
    assert "2 items left the scores" in said
    assert f"1 item changed since the evaluation was started: {table.item_ids[ran[0]]!r}" in said
    assert f"{NAME}: 3 of 30 answers left the score" in said
    assert table.item_ids[ran[0]] in now.ask()[NAME], "the corrected item is asked again"
    answer(now, table)
    again = Evaluation.open(tmp_path / "run")
    assert table.item_ids[ran[0]] not in again.ask().get(NAME, [])
    assert "2 of 30 answers" in " ".join(again.notes)
    assert again.estimate(warn=False)[NAME].items_run >= 28


def test_a_change_that_could_not_be_noted_brings_no_answer_back(
    table, sources, tmp_path, monkeypatch
):
    """The items of now are kept only once the folder says which of them were corrected."""
    ran = begun(sources, table, tmp_path).record.answered(NAME)
    hashes = sources.items["content_hash"].copy()
    hashes.iloc[ran[0]] = "another"
    now = opened(tmp_path, sources.changed(items=sources.items.assign(content_hash=hashes)))

    def fail(*_):
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "append", fail)
        with pytest.raises(OSError, match="no space left"):
            answer(now, table)
    again = Evaluation.open(tmp_path / "run")
    assert ran[0] not in again.record.answered(NAME)


def test_what_cannot_go_on_is_refused(table, sources, tmp_path):
    begun(sources, table, tmp_path)
    other = simulate(6, 120, seed=9)
    renamed = other.changed(items=other.items.rename(index=lambda item: f"x{item}"))
    with pytest.raises(EvaluationError, match="120 items"):
        opened(tmp_path, renamed)


def test_a_run_whose_sources_grew_by_runs_keeps_its_own(table, sources, tmp_path):
    begun(sources, table, tmp_path)
    grown = add(tmp_path / "run", sources, names={str(tmp_path / "run"): "first"})
    second = Evaluation(grown, "random", 20, ["second"])
    second.save(tmp_path / "second", save_scores(grown, tmp_path / "grown.parquet"))
    assert Evaluation.open(tmp_path / "second", grown).notes == ()


def test_weights_of_chosen_items_stay_in_proportion_when_items_are_retired(
    table, sources, tmp_path
):
    before = begun(sources, table, tmp_path, "anchor-points", 10).subset
    others = [item for item in sources.item_ids if item not in before.items[:2]]
    now = opened(tmp_path, sources.take(items=sources.positions(others)))
    assert now.subset.items == before.items[2:]
    left = np.array(before.weights[2:])
    assert now.subset.weights == pytest.approx(left / left.sum())
    estimate = now.estimate(warn=False)[NAME]
    assert estimate.items_run == 8
    assert any("2 of 10 answers left" in warning for warning in estimate.warnings)
    heavier = others[-1]
    weights = [2.0 if item == heavier else 1.0 for item in sources.item_ids]
    reweighed = sources.changed(items=sources.items.assign(weight=weights))
    with pytest.raises(MethodError, check=lambda error: error.kind == "changed"):
        opened(tmp_path, reweighed)
