"""Questions, tasks and the prompts that templates make of them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.errors import FieldError, ReaderError, TransferError
from fewbench.runners.questions import LETTERS, Question
from fewbench_papers.bento.measurement.prompts import MeasuredTask
from fewbench_papers.bento.measurement.templates import TEMPLATES, Template, read_template


def choice(name="1", text="2 + 2 =", options=("3", "4"), answer=1, **more):
    return Question(id=name, text=text, options=options, answer=answer, **more)


def opened(name="1", text="2 + 2 =", answer="4", **more):
    return Question(id=name, text=text, answer=answer, **more)


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
    with pytest.raises(FieldError, match=said):
        Question(**whole)


def test_two_questions_are_the_same_whatever_their_ids_spaces_and_order_of_options():
    one = choice("1", "2 + 2 =", ("3", "4"), 1)
    assert one.content == choice("2", "2 +\n2  =", ("4 ", "3"), 0).content
    assert one.content != choice("1", "2 + 2 =", ("3", "5"), 1).content
    assert one.content != opened("1", "2 + 2 =").content


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
    with pytest.raises(FieldError, match=said):
        MeasuredTask(name="sums", subject="sums", questions=questions, pool=pool)


PLANETS = Question(id="1", text="Nearest to the sun?", options=("Mars", "Mercury"), answer=1)
MOONS = Question(id="2", text="Moons of Mars?", options=("none", "one", "two"), answer=2)
OPEN = Question(id="3", text="The sun is a", answer="star")
TASK = MeasuredTask(name="sky", subject="the sky", questions=(PLANETS,), pool=(MOONS,))
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def test_the_prompt_of_mmlu():
    template = TEMPLATES["mmlu"]
    assert template.context(TASK, [MOONS]) + template.ask(PLANETS) == (
        "The following are multiple choice questions (with answers) about the sky.\n\n"
        "Moons of Mars?\nA. none\nB. one\nC. two\nAnswer: C\n\n"
        "Nearest to the sun?\nA. Mars\nB. Mercury\nAnswer:"
    )
    assert template.continuations(MOONS) == [" A", " B", " C"]
    assert template.continuation(PLANETS) == " B"


def test_the_prompt_of_flan():
    template = TEMPLATES["flan"]
    task = MeasuredTask(name="sky", subject="the sky", questions=(OPEN,))
    assert template.context(task, [OPEN, OPEN]) + template.ask(OPEN) == (
        "You are a helpful AI assistant. Here are some example input-output pairs that you "
        "should follow.\n\n"
        "Input:\nThe sun is a\nOutput: star\n\n"
        "Input:\nThe sun is a\nOutput: star\n\n"
        "Input:\nThe sun is a\nOutput:"
    )
    assert template.continuation(OPEN) == " star"
    assert template.continuations(OPEN) == []


def test_each_template_asks_both_kinds_of_questions():
    assert TEMPLATES["flan"].ask(PLANETS) == (
        "Input:\nNearest to the sun?\nA. Mars\nB. Mercury\nOutput:"
    )
    assert TEMPLATES["mmlu"].ask(OPEN) == "The sun is a\nAnswer:"


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("{options}\n{question}:", "The sun is a:"),
        ("{question}\n{options}", "The sun is a"),
        ("{question}\nOptions: {options}\nso?", "The sun is a\nso?"),
        ("{question}\n{{options}}\nso?", "The sun is a\n{options}\nso?"),
    ],
)
def test_the_options_and_their_line_are_left_out_where_there_are_none(question, asked):
    assert Template(question=question).ask(OPEN) == asked


def test_options_that_the_text_shows_are_not_shown_again():
    shown = Question(
        id="1", text="Which?\nA. x\nB. y", options=("x", "y"), answer=0, options_in_text=True
    )
    assert TEMPLATES["mmlu"].ask(shown) == "Which?\nA. x\nB. y\nAnswer:"
    assert TEMPLATES["mmlu"].continuations(shown) == [" A", " B"]
    assert Template(question="Q {question} A").ask(shown) == "Q Which?\nA. x\nB. y A"


def test_a_template_without_options_refuses_questions_with_some():
    with pytest.raises((TransferError, ReaderError), match=r"question '1'.*\{options\}"):
        Template(question="{question}").ask(PLANETS)


@pytest.mark.parametrize(
    ("own", "begins"),
    [
        ("Stars of {subject} {x}.", "Stars of {subject} {x}.\n\n"),
        ("Stars.\n", "Stars.\n\n"),
        ("Stars.\n\n", "Stars.\n\n"),
        ("Stars.\n\n\n", "Stars.\n\n\n"),
        ("", ""),
    ],
)
@pytest.mark.parametrize("name", TEMPLATES)
def test_a_task_s_own_instruction_is_used_word_for_word(own, begins, name):
    task = TASK.model_copy(update={"instruction": own})
    assert TEMPLATES[name].context(task, []) == begins


@given(text=texts, options=st.lists(texts, min_size=2, max_size=26), subject=texts)
@pytest.mark.parametrize("name", TEMPLATES)
def test_texts_come_through_whatever_braces_and_breaks_they_hold(name, text, options, subject):
    """Also texts that look like placeholders, of this field or of another."""
    for extra in ("", "{question}{options}{x}{{}}", "{letter}. {option} {answer} {subject}"):
        question = Question(
            id="1", text=text + extra, options=[o + extra for o in options], answer=0
        )
        task = MeasuredTask(name="t", subject=subject + extra, questions=(question,))
        template = TEMPLATES[name]
        listed = "\n".join(
            f"{letter}. {option}{extra}" for letter, option in zip(LETTERS, options, strict=False)
        )
        asked = template.ask(question)
        head, tail = ("Input:\n", "\nOutput:") if name == "flan" else ("", "\nAnswer:")
        assert asked == f"{head}{text}{extra}\n{listed}{tail}"
        context = template.context(task, [question])
        assert context.endswith(f"{asked} A\n\n")
        assert name == "flan" or context.startswith(
            f"The following are multiple choice questions (with answers) about {subject}{extra}."
        )
        answered = Question(id="2", text=text + extra, answer="a" + text + extra)
        assert template.continuation(answered) == f" a{text}{extra}"


@given(fields=st.fixed_dictionaries({"instruction": texts, "between": texts}))
def test_braces_of_a_template_are_doubled_to_be_shown(fields):
    doubled = {name: text.replace("{", "{{").replace("}", "}}") for name, text in fields.items()}
    template = Template(question="{question}", **doubled)
    task = MeasuredTask(name="t", subject="s", questions=(OPEN,))
    shown = template.context(task, [OPEN])
    assert shown == fields["instruction"] + "The sun is a star" + fields["between"]


def test_templates_are_read_from_json_and_toml(tmp_path):
    fields = {"question": "F: {question}\n{options}\nA:", "answer": " ({answer})"}
    (tmp_path / "a.json").write_text(json.dumps(fields))
    (tmp_path / "a.toml").write_text(
        'question = """F: {question}\n{options}\nA:"""\nanswer = " ({answer})"\n'
    )
    for name in ("a.json", "a.toml"):
        template = read_template(str(tmp_path / name))
        assert template.ask(PLANETS) == "F: Nearest to the sun?\nA. Mars\nB. Mercury\nA:"
        assert template.continuations(PLANETS) == [" (A)", " (B)"]
        assert template.context(TASK, []) == ""
    assert read_template("mmlu") is TEMPLATES["mmlu"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"question": "{question} {subject}"}, r"question: .*\{subject\} is unknown; .*\{options"),
        ({"question": "Answer:"}, r"question: \{question\} is missing"),
        ({"question": "{{question}}"}, r"question: \{question\} is missing"),
        ({"question": "{question} {options}"}, r"question: .*its own"),
        ({"question": "{question}", "answer": "yes"}, r"answer: \{answer\} is missing"),
        ({"question": "{question}", "option": "- {option}"}, r"option: \{letter\} is missing"),
        ({"question": "{question}", "between": "{n}"}, r"between: .*allowed here: none"),
        ({"question": "{question}", "instruction": "{task}"}, r"instruction: .*\{subject\}"),
        ({"question": "{question}", "system": "x"}, "system: Extra.*fields are instruction"),
        ({"question": 3}, "question: .*valid string"),
        ({}, "question: Field required"),
        ([], "the file: "),
    ],
)
def test_a_wrong_template_is_refused_with_file_and_field(tmp_path, fields, said):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(fields))
    with pytest.raises((TransferError, ReaderError), match=rf"(?s)template .*mine\.json: {said}"):
        read_template(str(path))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("absent.json", None, "cannot be read"),
        ("torn.json", '{"question": ', "not valid JSON"),
        ("torn.toml", "question = ", "not valid TOML"),
        ("latin.json", b'{"question": "\xe9"}', "not valid JSON"),
        ("mine.txt", "{question}", r"no template .*one of mmlu, flan"),
    ],
)
def test_a_file_that_holds_no_template_is_refused(tmp_path, name, text, said):
    if text is not None:
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises((TransferError, ReaderError), match=said):
        read_template(str(tmp_path / name))
