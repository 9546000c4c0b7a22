"""Datasets of Inspect: files of samples, and tasks in Python files, read by Inspect itself."""

import json
import sys
from importlib.util import find_spec

import pytest

from fewbench.errors import MissingExtraError, ReaderError, TransferError
from fewbench_papers.bento.measurement.sources import read_tasks

# Looked for, not imported: it would take a second whenever tests are collected.
pytestmark = pytest.mark.skipif(not find_spec("inspect_ai"), reason="inspect-ai is not installed")
CHOICE = {"input": "2 + 2 =", "choices": ["3", "four"], "target": "B"}
OPEN = {"input": "2 + 2 =", "target": ["4", "four"]}
TASK_FILE = """
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from beside import WORDS

@task
def sums():
    return Task(dataset=[Sample(input="2 + 2 =", choices=["3", "4"], target="B", id="a"),
                         Sample(input="1 + 1 =", choices=["2", "4"], target="A", id=9,
                                metadata={"split": "train"})])

@task
def words(language="en"):
    return Task(dataset=MemoryDataset([Sample(input=word, target=word) for word in WORDS]))

@task
def broken():
    raise RuntimeError("no such data")

@task
def leaving():
    raise SystemExit(3)

@task
def asking(language):
    return Task(dataset=[])

number = 3
"""


def write(path, *samples):
    path.write_text("\n".join(json.dumps(sample) for sample in samples))
    return f"inspect:{path}"


def read(tmp_path, *samples):
    return read_tasks([write(tmp_path / "sums.jsonl", *samples)])[0]


@pytest.fixture
def task_file(tmp_path):
    (tmp_path / "beside.py").write_text('WORDS = ["one", "two"]')
    (tmp_path / "mine.py").write_text(TASK_FILE)
    yield f"inspect:{tmp_path / 'mine.py'}"
    sys.modules.pop("beside", None)


def test_samples_become_questions(tmp_path):
    task = read(
        tmp_path,
        CHOICE | {"id": 12},
        CHOICE | {"input": "1 + 1 =", "target": "four"},
        CHOICE | {"input": "0 =", "metadata": {"split": "pool"}},
    )
    assert (task.name, task.subject, task.instruction) == ("sums", "sums", None)
    assert [(one.id, one.text, one.answer) for one in task.questions] == [
        ("12", "2 + 2 =", 1),
        ("2", "1 + 1 =", 1),
    ]
    assert [(one.id, one.text) for one in task.pool] == [("pool-1", "0 =")]


def test_further_targets_of_an_open_sample_are_accepted_too(tmp_path):
    (question,) = read(tmp_path, OPEN).questions
    assert (question.answer, question.also, question.options) == ("4", ("four",), ())


def test_json_and_csv_are_read_too(tmp_path):
    (tmp_path / "list.json").write_text(json.dumps([CHOICE]))
    (tmp_path / "table.csv").write_text('input,target\n"2 + 2 =",4\n')
    one, two = read_tasks([f"inspect:{tmp_path / name}" for name in ("list.json", "table.csv")])
    assert (one.name, one.questions[0].answer) == ("list", 1)
    assert (two.name, two.questions[0].answer) == ("table", "4")


def test_the_texts_of_messages_are_joined(tmp_path):
    messages = [
        {"role": "system", "content": "Add."},
        {"role": "user", "content": [{"type": "text", "text": "2 + 2 ="}]},
    ]
    assert read(tmp_path, OPEN | {"input": messages}).questions[0].text == "Add.\n\n2 + 2 ="
    messages[1]["content"].append({"type": "image", "image": "data:image/png;base64,"})
    with pytest.raises((TransferError, ReaderError), match="sample 1"):
        read(tmp_path, OPEN | {"input": messages})


def test_a_task_in_a_python_file_is_called(task_file, capsys):
    path = list(sys.path)
    one, two = read_tasks([f"{task_file}@sums", f"{task_file}@words"])
    assert sys.path == path
    assert (one.name, one.questions[0].id, one.questions[0].answer) == ("sums", "a", 1)
    assert [question.id for question in one.pool] == ["9"]
    assert [question.text for question in two.questions] == ["one", "two"]


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("", r"no task is named.*mine\.py@TASK"),
        ("@", r"no such file|no task is named"),
        ("@absent", "has no function 'absent'"),
        ("@number", "has no function 'number'"),
        ("@broken", r"does not run \(RuntimeError: no such data\)"),
        ("@leaving", r"does not run \(SystemExit: 3\)"),
        ("@asking", r"does not run \(TypeError: .*work without arguments"),
    ],
)
def test_a_task_that_cannot_be_called_is_refused(task_file, rest, said):
    with pytest.raises((TransferError, ReaderError), match=said):
        read_tasks([task_file + rest])


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ([CHOICE | {"target": ["A", "B"]}], "sample 1: has 2 right options"),
        ([CHOICE, CHOICE | {"target": "C"}], "sample 2: the answer 'C' is none"),
        ([CHOICE | {"target": ""}], "sample 1: the answer '' is none"),
        ([OPEN | {"target": ""}], "sample 1: the answer is empty"),
        ([CHOICE, CHOICE], "appear twice.*1 = 2"),
        ([CHOICE | {"metadata": {"split": "train"}}], "no samples to score"),
        ([CHOICE, OPEN], "some have none"),
        ([CHOICE | {"id": 1}, CHOICE | {"id": 1, "input": "?"}], "two questions have the id '1'"),
        ([], "no samples to score"),
        ([{"target": "4"}], r"Inspect cannot read this dataset \(No input"),
    ],
)
def test_samples_that_cannot_be_asked_are_refused(tmp_path, samples, said):
    with pytest.raises((TransferError, ReaderError), match=rf"sums\.jsonl.*{said}"):
        read(tmp_path, *samples)


def test_files_that_are_no_datasets_are_refused(tmp_path):
    (tmp_path / "torn.jsonl").write_text('{"input": ')
    (tmp_path / "notes.txt").write_text("notes")
    for name, said in (
        ("torn.jsonl", "Inspect cannot read this dataset"),
        ("notes.txt", "not an Inspect dataset"),
        ("absent.csv", "no such file"),
        ("absent.py@x", "no such file"),
    ):
        with pytest.raises((TransferError, ReaderError), match=said):
            read_tasks([f"inspect:{tmp_path / name}"])


def test_without_inspect_the_hint_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai.dataset", None)
    with pytest.raises(MissingExtraError, match=r"fewbench\[inspect\]"):
        read(tmp_path, OPEN)
