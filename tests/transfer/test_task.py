"""Questions and tasks: what they refuse."""

import pytest
from pydantic import ValidationError

from fewbench.transfer.task import LETTERS, Question, Task


def choice(name="1", text="2 + 2 =", options=("3", "4"), answer=1, **more):
    return Question(id=name, text=text, options=options, answer=answer, **more)


def opened(name="1", text="2 + 2 =", answer="4", **more):
    return Question(id=name, text=text, answer=answer, **more)


def test_an_answer_is_shown_as_its_letter_or_its_text():
    assert choice().shown == "B"
    assert opened(answer=" 4").shown == " 4"
    assert choice(options=tuple("abcdefghijklmnopqrstuvwxyz"), answer=25).shown == "Z"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"answer": 2}, "option 2 of 2"),
        ({"answer": -1}, "option -1 of 2"),
        ({"answer": "4"}, "position"),
        ({"options": ()}, "option 1 of 0"),
        ({"options": (), "answer": " \n"}, "empty"),
        ({"options": tuple("x" * (len(LETTERS) + 1)), "answer": 0}, "26"),
        ({"text": ""}, "at least 1"),
        ({"id": ""}, "at least 1"),
        ({"colour": "red"}, "Extra"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(fields, said):
    whole = {"id": "1", "text": "2 + 2 =", "options": ("3", "4"), "answer": 1} | fields
    with pytest.raises(ValidationError, match=said):
        Question(**whole)


def test_two_questions_are_the_same_whatever_their_ids_spaces_and_order_of_options():
    one = choice("1", "2 + 2 =", ("3", "4"), 1)
    assert one.content == choice("2", "2 +\n2  =", ("4 ", "3"), 0).content
    assert one.content != choice("1", "2 + 2 =", ("3", "5"), 1).content
    assert one.content != opened("1", "2 + 2 =").content


def test_a_task_knows_whether_it_has_options():
    assert Task(name="sums", subject="sums", questions=(choice(),)).has_options
    assert not Task(name="sums", subject="sums", questions=(opened(),)).has_options


@pytest.mark.parametrize(
    ("questions", "pool", "said"),
    [
        ((), (choice(),), "at least 1"),
        ((choice("a"), choice("a")), (), "two questions have the id 'a'"),
        ((choice("a"),), (choice("a"),), "two questions have the id 'a'"),
        ((choice("a"), opened("b")), (), "some have none"),
        ((choice("a"),), (opened("b"),), "some have none"),
    ],
)
def test_a_task_whose_questions_do_not_fit_is_refused(questions, pool, said):
    with pytest.raises(ValidationError, match=said):
        Task(name="sums", subject="sums", questions=questions, pool=pool)


def test_a_task_comes_back_from_its_json():
    task = Task(
        name="sums",
        subject="sums",
        questions=(choice("1", "{x}\n\u2028é"), choice("2", options_in_text=True)),
        pool=(choice("3"),),
    )
    assert Task.model_validate_json(task.model_dump_json()) == task
