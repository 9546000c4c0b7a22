"""Numbers of evaluations whose items or scores changed: chances, weights and answers that count."""

import numpy as np
import pytest

from fewbench import Benchmark
from fewbench.errors import EvaluationError, RunError
from fewbench.evaluation import Evaluation, Stop
from fewbench.evaluation.entries import AnswerSet
from fewbench.evaluation.extending import extend
from fewbench.evaluation.scoring import Scoring
from fewbench.runners.uniting import unite_runs
from fewbench.scores import save_scores
from fewbench.scores.roles import as_sources
from fewbench.testing import simulate

NAME = "model-00"
OLD = np.arange(150)


@pytest.fixture(scope="module")
def table():
    table = simulate(7, 200, seed=3, n_tasks=3)
    texts = [f"question {at}" for at in range(200)]
    return table.changed(items=table.items.assign(question=texts, cost=1.0))


def finished(evaluation, table):
    while asked := evaluation.ask():
        for name, items in asked.items():
            right = dict(zip(table.item_ids, table.values[0], strict=True))
            evaluation.tell(name, {item: right[item] for item in items})
    return evaluation


def begun(table, folder, method="fewbench", n_sources=0, name=NAME, **limits):
    sources, path = table.take(items=OLD).benchmark, None
    if n_sources:
        sources = table.take(models=np.arange(1, 1 + n_sources), items=OLD)
        path = save_scores(sources, folder.parent / f"{folder.name}.parquet")
    evaluation = Evaluation(sources, method, targets=[name], stop=Stop(**limits or {"items": 40}))
    evaluation.save(folder, path)
    return evaluation


@pytest.mark.parametrize("method", ["fewbench", "random", "aipw"])
def test_new_items_are_drawn_before_anything_is_asked(table, tmp_path, method):
    begun(table, tmp_path / "run", method, 6)
    assert extend(tmp_path / "run", table.benchmark).asked == {}
    evaluation = finished(Evaluation.open(tmp_path / "run"), table)
    assert (evaluation.record.answered(NAME) >= 150).any()


def test_an_uneven_sample_has_no_exact_interval(table, tmp_path):
    values = np.where(np.arange(200) < 150, 1.0, 0.0) * np.ones((7, 1))
    values[:, :15] = 0.0
    odd = table.changed(values=values)
    finished(begun(odd, tmp_path / "run", "random"), odd)
    extend(tmp_path / "run", odd.take(items=np.arange(155)).benchmark)
    found = finished(Evaluation.open(tmp_path / "run"), odd).estimate(warn=False)[NAME]
    assert found.interval_kind == "sampled"
    assert found.interval.low < found.score < found.interval.high


def test_answers_to_corrected_items_stay_out(table, tmp_path):
    first = finished(begun(table, tmp_path / "run"), table)
    ran = first.scores.item_ids[first.record.answered(NAME)][:5]
    texts = table.items["question"].where(~table.items.index.isin(ran), "corrected")
    whole = Benchmark(table.items.assign(question=texts))
    corrected = as_sources(Benchmark(whole.items.iloc[OLD]))
    again = Evaluation.open(tmp_path / "run", corrected)
    assert len(again.record.answered(NAME)) == 35
    save_scores(corrected, tmp_path / "run" / "benchmark.parquet")
    extend(tmp_path / "run", whole)
    assert len(Evaluation.open(tmp_path / "run").record.answered(NAME)) == 35


def test_new_answers_to_corrected_items_count(table, tmp_path):
    first = finished(begun(table, tmp_path / "run"), table)
    ran = first.scores.item_ids[first.record.answered(NAME)][:5]
    texts = first.scores.items["question"].where(~first.scores.items.index.isin(ran), "corrected")
    corrected = as_sources(Benchmark(first.scores.items.assign(question=texts)))
    finished(Evaluation.open(tmp_path / "run", corrected), table)
    assert len(Evaluation.open(tmp_path / "run").record.answered(NAME)) == 40


def test_corrections_count_after_an_extension(table, tmp_path):
    first = finished(begun(table, tmp_path / "run", n_sources=6), table)
    ran = first.scores.item_ids[first.record.answered(NAME)][:5]
    sources = table.take(models=np.arange(1, 7))
    extend(tmp_path / "run", sources)
    texts = table.items["question"].where(~table.items.index.isin(ran), "corrected")
    corrected = sources.changed(items=table.items.assign(question=texts))
    assert len(Evaluation.open(tmp_path / "run", corrected).record.answered(NAME)) == 35


def test_weights_are_not_lost(table, tmp_path):
    weights = 1.0 + table.task_of
    weighed = table.changed(items=table.items.assign(weight=weights))
    finished(begun(weighed, tmp_path / "run"), table)
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "missing"):
        extend(tmp_path / "run", table.benchmark)


def test_a_larger_cost_keeps_the_items_of_an_extended_sample(table, tmp_path):
    finished(begun(table, tmp_path / "run", "random", cost=30), table)
    extend(tmp_path / "run", table.benchmark)
    evaluation = finished(Evaluation.open(tmp_path / "run", stop=Stop(cost=60)), table)
    chosen = evaluation.scores.positions(evaluation.subset.items)
    assert np.isin(evaluation.record.answered(NAME), chosen).all()


def test_further_items_count_in_memory_as_in_the_folder(table, tmp_path):
    for method in ("random", "fewbench"):
        evaluation = finished(begun(table, tmp_path / method, method), table)
        evaluation.ask_more({NAME: table.item_ids[20:80].tolist()})
        score = finished(evaluation, table).estimate(warn=False).score
        same = evaluation.on_items(evaluation.scores.item_ids)
        for other in (Evaluation.open(tmp_path / method), same):
            assert other.estimate(warn=False).score == pytest.approx(score, abs=1e-6)


def test_another_metric_is_averaged_over_the_same_items(table, tmp_path, monkeypatch):
    right = dict(zip(table.item_ids, table.values[0].tolist(), strict=True))

    def told(_, target, asked, *__):
        scores = tuple(right[item] for item in asked)
        return AnswerSet(target=target, items=tuple(asked), scores=scores), ()

    monkeypatch.setattr("fewbench.evaluation.evaluation.answers_in_logs", told)
    part = table.take(models=np.arange(1, 7), items=OLD).averaged("macro")
    evaluation = finished(Evaluation(part, "random", 150, [NAME]), table)
    norm = table.take(models=np.arange(1, 7))
    norm = norm.changed(items=norm.items.assign(metric="acc_norm"))
    found = evaluation.rescored(Scoring(metric="acc_norm"), norm).estimate(warn=False)[NAME]
    assert found.items_total == 150
    assert found.score == pytest.approx(table.take(items=OLD).averaged("macro").full_scores()[0])


def test_runs_of_other_items_do_not_join(table, tmp_path):
    finished(begun(table, tmp_path / "a", "aipw", 6), table)
    finished(begun(table, tmp_path / "b", "aipw", 6, name="b", cost=60), table)
    with pytest.raises(RunError, check=lambda error: error.kind == "changed"):
        unite_runs(tmp_path / "a", [tmp_path / "b"])


def test_a_target_that_joins_has_the_chances_of_the_one_that_it_follows(table, tmp_path):
    finished(begun(table, tmp_path / "run", n_sources=6), table)
    extend(tmp_path / "run", table.benchmark)
    evaluation = finished(Evaluation.open(tmp_path / "run"), table)
    evaluation.follow("second", NAME)
    score = finished(evaluation, table).estimate(warn=False)["second"].score
    again = Evaluation.open(tmp_path / "run").estimate(warn=False)
    assert again["second"].score == pytest.approx(score, abs=1e-6)
    assert again[NAME].score == pytest.approx(score, abs=1e-6), "the same answers to the same items"


def test_an_extension_goes_on_from_all_items_of_a_random_sample(table, tmp_path):
    evaluation = finished(begun(table, tmp_path / "run", "random"), table)
    others = np.setdiff1d(OLD, evaluation.scores.positions(evaluation.subset.items))
    evaluation.ask_more({NAME: table.item_ids[others[:50]].tolist()})
    finished(evaluation, table)
    assert extend(tmp_path / "run", table.benchmark).asked == {NAME: 30}  # 90 of 150 ran
    evaluation = finished(Evaluation.open(tmp_path / "run"), table)
    found = evaluation.estimate(warn=False)[NAME]
    assert found.score == pytest.approx(evaluation.record.answers(NAME).scores[0].mean(), abs=1e-9)


def test_answers_outside_an_uneven_sample_are_named(table, tmp_path):
    finished(begun(table, tmp_path / "run", "random"), table)
    extend(tmp_path / "run", table.take(items=np.arange(155)).benchmark)
    evaluation = finished(Evaluation.open(tmp_path / "run"), table)
    before = evaluation.estimate(warn=False)[NAME]
    others = np.setdiff1d(OLD, evaluation.scores.positions(evaluation.subset.items))
    evaluation.ask_more({NAME: table.item_ids[others[:3]].tolist()})
    found = finished(evaluation, table).estimate(warn=False)[NAME]
    assert found.score == pytest.approx(before.score)
    assert len(found.warnings) == len(before.warnings) + 1


def test_an_extension_of_unequal_random_samples_is_refused(table, tmp_path):
    evaluation = finished(begun(table, tmp_path / "run", "random"), table)
    evaluation.follow("other")
    finished(evaluation, table)
    others = np.setdiff1d(OLD, evaluation.scores.positions(evaluation.subset.items))
    evaluation.ask_more({NAME: table.item_ids[others[:50]].tolist()})
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "unsupported"):
        extend(tmp_path / "run", table.benchmark)
