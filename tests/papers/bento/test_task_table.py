"""Tables of models by tasks."""

import pytest

from fewbench.errors import ReaderError
from fewbench_papers.bento.task_tables import read_task_table

TABLE = "model,algebra,origin,poetry\ngpt,0.5,x,0.25\n007,1,y,0\n"


@pytest.fixture
def write(tmp_path):
    def write(content, name="results.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_columns_are_taken_by_name_in_the_order_asked(write):
    table, notes = read_task_table(write(TABLE), ["poetry", "algebra"])
    assert list(table.columns) == ["poetry", "algebra"]
    assert list(table.index) == ["gpt", "007"]
    assert table.to_numpy().tolist() == [[0.25, 0.5], [0.0, 1.0]]
    assert len(notes) == 1
    assert "skipped: 'origin'" in notes[0]
    assert "results.csv" in notes[0]


def test_a_table_of_nothing_else_has_no_notes(write):
    content = "\ufeffmodel,a b\r\nm,1\r\n"
    table, notes = read_task_table(write(content), ["a b"])
    assert table.loc["m", "a b"] == 1.0
    assert notes == ()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "the file is empty"),
        (b"\xff\xfe\x00", "UTF-16 text, not UTF-8"),
        (b"model,\xe9\n", "not UTF-8 text"),
        ('model,algebra,poetry\n"a,1,2\n', "cannot be read as csv"),
        ("name,algebra,poetry\na,1,1\n", "no column 'model'; it has 'name', 'algebra', 'poetry'"),
        ("model,algebra\na,1\n", "no column for 1 of 2 tasks: 'poetry'"),
        ("model,algebra,poetry\n", "no models"),
        ("model,algebra,poetry\na,1,1\n,1,1\n", "row 3 names no model"),
        ("model,algebra,poetry\na,1,1\nb,1,1\na,1,0\na,0,0\n", "models named twice: 'a'"),
        ("model,algebra,poetry\na,1,1\nb,1,\n", "b has .* for poetry, not a number"),
        ("model,algebra,poetry\na,1,good\n", "a has 'good' for poetry, not a number"),
        ("model,algebra,poetry\na,1,50%\n", "a has '50%' for poetry, not a number"),
    ],
)
def test_what_is_no_such_table(write, content, said):
    with pytest.raises(ReaderError, match=said) as error:
        read_task_table(write(content), ["algebra", "poetry"])
    assert "results.csv: " in error.value.message


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ReaderError, match=r"nope\.csv"):
        read_task_table(tmp_path / "nope.csv", ["a"])
    with pytest.raises(ReaderError, check=lambda error: error.kind == "format"):
        read_task_table(tmp_path, ["a"])
