"""From answers to the matrix: means by hand, and nothing made up where nothing was answered."""

import numpy as np
import pytest

from fewbench.errors import TransferError
from fewbench_papers.bento.measurement.answers import (
    EMPTY,
    MeasuredAnswer,
    MeasuredAnswers,
    check_not_smaller,
    guesses,
    notes_on,
    transferability,
)


def filled(made, value_of, skip=lambda request: False):
    answers = MeasuredAnswers(made)
    for request in made.requests():
        if not skip(request):
            answers.add(request, value_of(request))
    return answers


def scored(request):
    return MeasuredAnswer((request.place * 7919 % 11) / 11, "A")


def long(request):
    return MeasuredAnswer(None, "too long")


@pytest.mark.parametrize("settings", [{}, {"columns": ("b", "c")}, {"questions": None, "seeds": 3}])
def test_means_are_over_the_questions(design, task, settings):
    made = design(tasks=[task("a", 9), task("b", 12), task("c", 20, pool=3)], **settings)
    matrix = transferability(filled(made, scored), {"model": "m"})
    by_cell = {}
    for request in made.requests():
        cell = request.seed, request.source, made.targets.index(request.target)
        by_cell.setdefault(cell, []).append(scored(request).value)
    assert matrix.values.shape == (made.seeds, 3, len(made.targets))
    for cell, values in by_cell.items():
        assert matrix.values[cell] == pytest.approx(np.mean(values), abs=1e-15)
    assert len(by_cell) == matrix.values.size
    assert matrix.tasks == ("a", "b", "c")
    assert matrix.targets == tuple(made.names[at] for at in made.targets)
    assert matrix.n_questions.tolist() == [9, 12, 20]
    assert matrix.about == {"model": "m"}


def test_what_is_not_answered_is_left_out(design):
    made = design()
    missing = filled(made, scored, lambda r: (r.seed, r.source, r.target) == (1, 2, 0))
    partly = transferability(missing)
    assert np.argwhere(np.isnan(partly.values)).tolist() == [[1, 2, 0]]
    one_less = filled(made, scored, lambda r: r.place == 5)
    assert np.isfinite(transferability(one_less).values).all()


def test_prompts_that_do_not_fit_are_left_out_of_means_and_named(design):
    made = design()
    first = made.first(0, 1, 2)

    def value_of(request):
        if request.place == first or (request.seed, request.source, request.target) == (1, 2, 0):
            return long(request)
        return MeasuredAnswer(1.0, "A")

    answers = filled(made, value_of)
    matrix = transferability(answers)
    assert np.argwhere(np.isnan(matrix.values)).tolist() == [[1, 2, 0]]
    assert set(matrix.values[np.isfinite(matrix.values)]) == {1.0}
    notes = " ".join(notes_on(answers))
    assert "5 prompts do not fit" in notes
    assert "with exemplars of 'c', 'b'" in notes
    assert "1 entry of the matrix has no score" in notes


def test_nothing_at_all_is_no_matrix(design):
    made = design()
    with pytest.raises(TransferError, match=f"{len(made)} prompts do not fit"):
        transferability(filled(made, long))
    with pytest.raises(TransferError, match="no question has an answer"):
        transferability(MeasuredAnswers(made))


def test_answers_that_name_no_option_are_noted(design):
    answers = filled(design(), lambda r: MeasuredAnswer(0.0, "A" if r.source else None))
    assert "24 answers name none of the options" in " ".join(notes_on(answers))
    assert "with exemplars of 'a'" in " ".join(notes_on(answers))


def test_empty_answers_are_noted(design, task):
    made = design(tasks=[task("a", options=()), task("b", options=())], metric="exact-match")
    answers = filled(made, lambda r: MeasuredAnswer(0.0, " \n" if r.place == 3 else "x"))
    assert answers.count(EMPTY) == 1
    assert "1 answer is empty and counts as wrong, with exemplars of 'a'" in notes_on(answers)


def test_what_is_missing_of_a_part_is_noted(design):
    made = design()
    part = filled(made, scored, lambda r: (r.seed, r.source, r.target) == (1, 2, 0))
    notes = notes_on(part, partial=True)
    assert not any("missing" in note or "entry" in note for note in notes_on(part))
    assert f"4 answers of {len(made)} missing" in notes
    assert any(note.startswith("1 entry of the matrix has no score") for note in notes)


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({}, True),
        ({"seeds": 3, "questions": 5}, True),
        ({"seeds": 1}, False),
        ({"columns": ("a", "b")}, False),
        ({"questions": 3}, False),
    ],
)
def test_a_smaller_matrix_does_not_take_a_fuller_one_s_place(design, tmp_path, change, fits):
    about = {"most questions": "4"}
    kept = transferability(filled(design(), scored), about).save(tmp_path / "matrix.npz")
    if fits:
        check_not_smaller(kept, design(**change))
        return
    with pytest.raises(TransferError, match=r"2 seeds.*3 targets.*4 questions"):
        check_not_smaller(kept, design(**change))


@pytest.mark.parametrize(("right", "warned"), [(0.0, True), (0.52, True), (0.9, False)])
def test_a_model_that_guesses_is_warned_of(design, task, right, warned):
    """The tasks' questions have two options or more: half right is guessing."""
    made = design(tasks=[task("a", 60), task("b", 60), task("c", 60)], questions=30)
    options = {len(q.options) for one in made.tasks for q in one.questions}
    level = right if right != 0.52 else 1 / max(options) + 0.02

    def said(request):
        return MeasuredAnswer(float(request.place * 7919 % 1000 < 1000 * level), "A")

    answers = filled(made, said)
    assert ("guessing" in " ".join(notes_on(answers))) == bool(guesses(answers)) == warned
