"""JSON lines are read strictly, and every mistake is named by line."""

import json

import pytest

from fewbench.errors import ReaderError, TransferError
from fewbench_papers.bento.measurement.sources import passed_over, read_tasks

CHOICE = {"question": "2 + 2 =", "options": ["3", "four"], "answer": "B"}
OPEN = {"question": "2 + 2 =", "answer": "4"}


def write(path, *lines):
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    )
    return str(path)


def read(tmp_path, *lines):
    return read_tasks([write(tmp_path / "sums.jsonl", *lines)])


def test_a_file_is_a_task_of_its_name(tmp_path):
    lines = [CHOICE, CHOICE | {"question": "1 + 1 =", "split": "train"}]
    (task,) = read(tmp_path, *lines, CHOICE | {"question": "3 + 3 =", "split": "test"})
    assert (task.name, task.subject, task.instruction) == ("sums", "sums", None)
    assert [question.id for question in task.questions] == ["1", "2"]
    assert [question.id for question in task.pool] == ["pool-1"]
    assert task.questions[0].text == "2 + 2 ="
    assert (task.questions[0].options, task.questions[0].answer) == (("3", "four"), 1)


def test_a_file_may_hold_many_tasks_with_their_own_instructions(tmp_path):
    one, two = read(
        tmp_path,
        OPEN | {"task": "long_sums", "subject": "sums", "id": 7},
        "",
        OPEN | {"task": "words", "also": ["four", "vier"], "id": "x"},
        OPEN | {"task": "long_sums", "question": "0 + 0 =", "instruction": "Add {x}."},
    )
    assert (one.name, one.subject, one.instruction) == ("long_sums", "sums", "Add {x}.")
    assert [question.id for question in one.questions] == ["7", "2"]
    assert (two.name, two.subject, two.instruction) == ("words", "words", None)
    assert two.questions[0].also == ("four", "vier")
    assert read(tmp_path, OPEN | {"task": "high_school"})[0].subject == "high school"


@pytest.mark.parametrize(
    ("options", "answer", "right"),
    [
        (["3", "four"], "B", 1),
        (["3", "four"], 1, 1),
        (["3", "four"], "four", 1),
        (["3", "four"], 3, 0),  # no position, but an option's text
        (["0", "1"], 1, 1),  # position and text agree
        ({"A": "3", "B": "four"}, "A", 0),
        ({"B": "four", "A": "3"}, "four", 1),
        (["A", "B"], "B", 1),
    ],
)
def test_letter_position_and_text_name_the_right_option(tmp_path, options, answer, right):
    (task,) = read(tmp_path, {"question": "?", "options": options, "answer": answer})
    assert task.questions[0].answer == right


@pytest.mark.parametrize(("answer", "text"), [(4, "4"), (4.5, "4.5"), ("B", "B"), (" 4\n", " 4\n")])
def test_an_open_answer_is_its_text(tmp_path, answer, text):
    (task,) = read(tmp_path, OPEN | {"answer": answer})
    assert task.questions[0].answer == text
    assert read(tmp_path, OPEN | {"options": []})[0].has_options is False


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"question": "?", "options": ["1", "2"], "answer": 1}, r"could be option A.*or B"),
        ({"question": "?", "options": ["B", "A"], "answer": "A"}, r"could be option A.*or B"),
        ({"question": "?", "options": ["x", "x "], "answer": "A"}, "two options are the same: 'x'"),
        ({"question": "?", "options": {"A": "x", "B": "x"}, "answer": "A"}, "the same: 'x'"),
        (CHOICE | {"answer": "C"}, r"'C' is none of the 2 options.*A to B.*'3', 'four'"),
        (CHOICE | {"answer": 2}, "2 is none of the 2 options"),
        (CHOICE | {"answer": "b"}, "'b' is none of the 2 options"),
        (CHOICE | {"answer": True}, "'answer' is not as expected"),
        (CHOICE | {"answer": 1.0}, "1.0 is not the position of an option"),
        (CHOICE | {"answer": ["B"]}, "'answer' is not as expected.*letter"),
        (CHOICE | {"options": ["4"]}, "1 option .*2 to 26"),
        (CHOICE | {"options": ["x"] * 27}, "27 options"),
        (CHOICE | {"options": [3, 4]}, "'options' is not as expected.*texts, .*; put numbers into"),
        (CHOICE | {"options": {"A": 3.5, "B": "4"}}, "'options' is not as .*numbers into quotes"),
        (CHOICE | {"options": {"1": "3", "2": "4"}}, "are named '1', '2'.*A to B"),
        (CHOICE | {"also": ["four"]}, "'also' is for open answers"),
        (OPEN | {"answer": ""}, "the answer is empty"),
        (OPEN | {"question": ""}, "'question' is not as expected"),
        (OPEN | {"question": "\ud800"}, "'question' is not as expected"),
        ({"answer": "4"}, "'question' is missing.*a text"),
        ({"question": "?"}, "'answer' is missing"),
        (OPEN | {"split": "dev"}, "'split' is not as expected.*train"),
        (OPEN | {"id": 1.5}, "'id' is not as expected"),
        (
            OPEN | {"level": 1, "choices": []},
            "unknown fields 'choices', 'level'.*'choices' is called 'options' here.*remove 'level'",
        ),
        ({"prompt": "?", "label": "4"}, "'label' is called 'answer' here, 'prompt' .* 'question'"),
        ({"input": "?", "target": "4"}, "'input' is called 'question' here, 'target' .* 'answer'"),
        (OPEN | {"level": 1}, "unknown field 'level' .*remove 'level'"),
        ([1], r"not an object.*one object per line, without \[ \]"),
        ("[", r"not a whole JSON object.*one object per line, without \[ \]"),
        (json.dumps(OPEN) + ",", r"not a whole JSON object.*one object per line.*commas"),
        (4, "not an object.*the fields are"),
        ('{"question": "a", "question": "b", "answer": "c"}', "has the key 'question' twice"),
        ('{"question": "a"', "not a whole JSON object"),
        ("[" * 100_000, "not a whole JSON object"),
        (OPEN | {"subject": "words"}, "the subject differs from the one in line 1"),
        (OPEN | {"instruction": "Subtract."}, "the instruction differs from the one in line 1"),
        (OPEN | {"id": "1"}, r"line 1 has the id '1' too"),
    ],
)
def test_a_wrong_line_is_named_with_what_was_expected(tmp_path, line, said):
    first = OPEN | {"question": "first", "subject": "sums", "instruction": "Add."}
    with pytest.raises((TransferError, ReaderError), match=rf"sums\.jsonl, line 3: .*{said}"):
        read(tmp_path, first, "", line, OPEN)


def test_a_file_that_is_no_text_or_empty_is_refused(tmp_path):
    path = tmp_path / "latin.jsonl"
    path.write_bytes(b'{"question": "\xe9", "answer": "x"}')
    with pytest.raises((TransferError, ReaderError), match=r"line 1: not UTF-8 text \(byte 15"):
        read_tasks([str(path)])
    with pytest.raises((TransferError, ReaderError), check=lambda error: error.kind == "too-few"):
        read(tmp_path, "", "")


def test_questions_with_and_without_options_do_not_mix(tmp_path):
    with pytest.raises((TransferError, ReaderError), match=r"sums\.jsonl.*'sums'"):
        read(tmp_path, CHOICE, OPEN)


def test_a_task_of_exemplars_alone_is_refused(tmp_path):
    with pytest.raises((TransferError, ReaderError), match="'sums'"):
        read(tmp_path, OPEN | {"split": "pool"})


def test_an_exemplar_that_is_scored_too_is_refused(tmp_path):
    twin = CHOICE | {"question": "2 + 2  =", "split": "train", "id": "shown"}
    with pytest.raises((TransferError, ReaderError), match=r"lines 2.*1"):
        read(tmp_path, CHOICE, twin)
    with pytest.raises((TransferError, ReaderError), match=r"lines 1.*3"):
        read(tmp_path, CHOICE, CHOICE | {"question": "1"}, CHOICE)
    # with a pool, none of the questions is an exemplar: equal ones do no harm
    (task,) = read(tmp_path, CHOICE, CHOICE, twin | {"question": "1"})
    assert len(task.questions) == 2


def test_folders_and_files_are_read_in_order(tmp_path):
    write(tmp_path / "all" / "b.jsonl", OPEN)
    write(tmp_path / "all" / "a.jsonl", OPEN)
    write(tmp_path / "all" / "notes.txt", "not read")
    other = write(tmp_path / "0.jsonl", OPEN)
    names = [task.name for task in read_tasks([str(tmp_path / "all"), other])]
    assert names == ["a", "b", "0"]


def test_hidden_files_are_not_read_and_others_are_named(tmp_path):
    folder = tmp_path / "all"
    write(folder / "a.jsonl", OPEN)
    write(folder / ".b.jsonl", "junk")
    write(folder / "._a.jsonl", "junk")
    assert [task.name for task in read_tasks([str(folder)])] == ["a"]
    assert passed_over([str(folder)]) == []
    write(folder / "c.json", OPEN)
    (folder / "more").mkdir()
    (note,) = passed_over([str(folder), "lm-eval:x", str(folder / "a.jsonl")])
    assert note.endswith("files that do not end in .jsonl are not read: 'c.json'")
    (folder / "a.jsonl").unlink()
    with pytest.raises((TransferError, ReaderError), check=lambda error: error.kind == "missing"):
        read_tasks([str(folder)])


def test_two_tasks_of_one_name_are_refused_with_both_origins(tmp_path):
    one = write(tmp_path / "one.jsonl", OPEN | {"task": "sums"})
    two = write(tmp_path / "sums.jsonl", OPEN)
    with pytest.raises((TransferError, ReaderError), match=r"'sums'.*one\.jsonl.*sums\.jsonl"):
        read_tasks([one, two])
    with pytest.raises((TransferError, ReaderError), check=lambda error: error.kind == "repeated"):
        read_tasks([one, one])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("absent", "no such file or folder.*lm-eval:NAME"),
        ("hf:sums", "no such file or folder.*lm-eval:NAME"),
        ("here.json", "not a .jsonl file"),
        ("empty", "the folder has no .jsonl files.*nothing"),
        ("full", "the folder has no .jsonl files.*'x.csv'"),
    ],
)
def test_a_name_without_tasks_says_what_it_may_be(tmp_path, name, said):
    (tmp_path / "empty").mkdir()
    write(tmp_path / "here.json", "{}")
    write(tmp_path / "full" / "x.csv", "")
    with pytest.raises((TransferError, ReaderError), match=said):
        read_tasks([str(tmp_path / name)])


def test_no_names_are_refused():
    with pytest.raises((TransferError, ReaderError), check=lambda error: error.kind == "too-few"):
        read_tasks([])
