"""Two processes on one folder, lost lines, and changed engines: nothing is lost or wrong."""

import os
from dataclasses import replace

import numpy as np
import pytest

from fewbench.errors import AnswersError
from fewbench.evaluation import Evaluation
from fewbench.testing import simulate
from fewbench_papers.fluid.fluid import Fluid

from .test_journal import finished

TABLE = simulate(26, 80, 3, options=4, seed=3)
SOURCES, TARGETS = TABLE.take(models=range(24)), TABLE.take(models=[24, 25])
NAME, OTHER = TARGETS.model_ids


def opened(folder, method="random", budget=20, targets=(NAME,)):
    Evaluation(SOURCES, method, budget, targets).save(folder)
    return Evaluation.open(folder, SOURCES), Evaluation.open(folder, SOURCES)


def test_a_contradiction_from_another_process_is_refused(tmp_path):
    first, second = opened(tmp_path)
    item = first.ask()[NAME][0]
    second.ask()
    first.tell(NAME, {item: 1.0})
    with pytest.raises(AnswersError, check=lambda error: error.kind == "taken"):
        second.tell(NAME, {item: 0.0})
    with pytest.raises(AnswersError, check=lambda error: error.kind == "unknown"):
        second.skip(NAME, [item])
    assert Evaluation.open(tmp_path, SOURCES).record.answered(NAME).tolist() == [
        int(SOURCES.positions([item])[0])
    ]


def test_two_processes_that_tell_the_same_round_lose_no_items(tmp_path):
    first, second = opened(tmp_path, "collaborative(transport=false)")
    assert first.ask() == second.ask()
    first.tell_table(TARGETS, NAME)
    second.tell_table(TARGETS, NAME)
    again = Evaluation.open(tmp_path, SOURCES)
    assert finished(again, TARGETS)[NAME].items_run == 20


def test_an_ask_that_was_not_written_is_written_later(tmp_path, monkeypatch):
    evaluation = Evaluation(SOURCES, "tailored(probe=5)", 12, [NAME])
    evaluation.save(tmp_path)
    evaluation.ask()
    write = os.write
    told = evaluation.record.open(NAME)
    full = lambda handle, line: write(handle, line[:9] if b"targets" in line else line)  # noqa: E731
    monkeypatch.setattr(os, "write", full)
    items = SOURCES.item_ids[told]
    with pytest.raises(OSError, match="No space"):
        evaluation.tell_table(TARGETS.take(items=TARGETS.positions(items)), NAME)
    monkeypatch.setattr(os, "write", write)
    assert finished(evaluation, TARGETS)[NAME].items_run == 12
    assert Evaluation.open(tmp_path, SOURCES).estimate() == evaluation.estimate()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Fluid(step=4), Fluid(step=4, random=1.0)),
    ],
)
def test_a_changed_engine_asks_no_more_than_the_budget(tmp_path, before, after):
    evaluation = Evaluation(SOURCES, before, 20, [NAME])
    evaluation.save(tmp_path)
    evaluation.ask()
    evaluation.tell_table(TARGETS, NAME)
    again = Evaluation.open(tmp_path, SOURCES, after)
    assert finished(again, TARGETS)[NAME].items_run == 20
    assert again.notes


def test_a_corrected_answer_loses_its_option_probabilities():
    evaluation = Evaluation(SOURCES, "random", 5, [NAME])
    item = evaluation.ask()[NAME][0]
    evaluation.tell(NAME, {item: 1.0}, {item: [1.0, 0.0, 0.0, 0.0]})
    assert evaluation.record.answers(NAME).probabilities is not None
    evaluation.tell(NAME, {item: 0.0}, correct=True)
    assert evaluation.record.answers(NAME).probabilities is None


def test_a_target_that_answers_no_probe_item_changes_nothing_for_the_others():
    method = "tailored(probe=5)"
    both = Evaluation(SOURCES, method, 12, [NAME, OTHER])
    alone = Evaluation(SOURCES, method, 12, [NAME])
    both.skip(OTHER, both.ask()[OTHER])
    finished(both, TARGETS), finished(alone, TARGETS)
    assert both.estimate()[NAME].score == pytest.approx(alone.estimate()[NAME].score)


def test_a_table_that_does_not_fit_for_one_target_is_not_taken_for_another():
    evaluation = Evaluation(SOURCES, "random", 5, [NAME, OTHER])
    evaluation.ask()
    values = TARGETS.values.copy()
    values[1] = 0.5
    table = replace(TARGETS, values=values, probabilities=None)
    with pytest.raises(AnswersError, match=OTHER):
        evaluation.tell_table(table)
    assert not len(evaluation.record.answered(NAME))


def test_a_lost_ask_in_the_middle_is_said(tmp_path):
    evaluation = Evaluation(SOURCES, "tailored(probe=5)", 12, [NAME])
    evaluation.save(tmp_path)
    finished(evaluation, TARGETS)
    path = tmp_path / "answers.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    asked = [at for at, line in enumerate(lines) if b"targets" in line]
    path.write_bytes(b"".join(line for at, line in enumerate(lines) if at != asked[1]))
    again = Evaluation.open(tmp_path, SOURCES)
    assert again.estimate()[NAME].items_run == 12
    assert np.isfinite(again.estimate()[NAME].score)


@pytest.mark.filterwarnings("ignore::fewbench.EstimateWarning")
def test_targets_on_the_items_of_a_far_weaker_one_are_as_sure_as_on_random_ones():
    """They tell less of them than their own, and no less than random ones: nothing to warn of."""
    table = simulate(60, 400, 4, seed=5)
    order = np.argsort(table.full_scores())
    sources = table.take(models=[model for model in order[:40] if model != order[20]])
    strong = {f"strong {at}": order[at] for at in (45, 54)}
    off = []
    for name, model in strong.items():
        evaluation = Evaluation(sources, "fewbench", 50, ["weak", name])
        answers = {"weak": table.values[order[20]], name: table.values[model]}
        for each, row in answers.items():
            right = dict(zip(table.item_ids, row, strict=True))
            while items := evaluation.ask(targets=[each]).get(each):
                evaluation.tell(each, {item: right[item] for item in items})
        estimate = evaluation.estimate(targets=[name])[name]
        half = (estimate.interval.high - estimate.interval.low) / 2
        off.append((estimate.score - table.full_scores()[model]) / half)
        assert half < estimate.random.half_width
        assert not estimate.warnings
    # The root mean square of errors over half widths at 90% is 0.61.
    assert np.sqrt(np.mean(np.square(off))) < 0.8
