"""Transferability: what is written is read, and what is no matrix is refused in one sentence."""

import json

import numpy as np
import pytest

from fewbench.errors import MethodError
from fewbench_papers.bento import Transferability
from fewbench_papers.bento.transferability import is_transferability

ABC = ("a", "b", "c")


def made(values=None, tasks=ABC, targets=ABC, sizes=(4, 5, 6), **more):
    values = np.arange(18.0).reshape(2, 3, 3) / 20 if values is None else values
    return Transferability(values, tasks, targets, np.array(sizes), **more)


def assert_same(one, other):
    assert np.array_equal(one.values, other.values, equal_nan=True)
    assert (one.tasks, one.targets, one.metric) == (other.tasks, other.targets, other.metric)
    assert np.array_equal(one.n_questions, other.n_questions)
    assert dict(one.about) == dict(other.about)


@pytest.mark.parametrize("as_folder", [False, True])
def test_what_is_saved_is_loaded(tmp_path, as_folder):
    values = np.arange(12.0).reshape(2, 3, 2) / 20
    values[1, 0, 1] = np.nan
    names = ("ä, (b)", "log|loss", "c+d")
    one = made(
        values, names, (names[2], names[0]), metric="loss", about={"model": "toy", "tasks": "x"}
    )
    path = one.save(tmp_path / "matrix.npz")
    assert_same(Transferability.load(tmp_path if as_folder else path), one)
    assert [file.name for file in tmp_path.iterdir()] == ["matrix.npz"]


@pytest.mark.parametrize("shape", [(2, 3, 3), (3, 3)])
@pytest.mark.parametrize("key", ["acc", "transferability"])
def test_other_npz_files(tmp_path, shape, key):
    values = np.arange(np.prod(shape)).reshape(shape) / 20
    np.savez(tmp_path / "m.npz", **{key: values}, tasks=np.array(ABC), seeds=np.arange(2))
    found = Transferability.load(tmp_path / "m.npz")
    assert np.array_equal(found.values, values.reshape(-1, 3, 3))
    assert (found.tasks, found.targets, found.metric) == (ABC, ABC, "accuracy")
    assert found.n_questions.tolist() == [1, 1, 1]


def test_csv_has_sources_as_rows_and_names_as_they_stand(tmp_path):
    (tmp_path / "m.csv").write_text("source,NA,01\n01,0.1,0.2\nNA,0.3,\n", encoding="utf-8")
    found = Transferability.load(tmp_path / "m.csv")
    assert (found.tasks, found.targets) == (("01", "NA"), ("NA", "01"))
    np.testing.assert_array_equal(found.values, [[[0.1, 0.2], [0.3, np.nan]]])
    assert not found.is_square
    assert found.n_questions.tolist() == [1, 1]


def test_means_are_over_the_seeds_that_were_measured():
    values = np.full((3, 3, 3), 0.5)
    values[:, 0, 1] = [0.1, np.nan, 0.4]
    found = made(values)
    assert found.mean[0, 1] == 0.25
    assert found.mean_over(np.array([0, 0, 2]))[0, 1] == pytest.approx(0.2)
    assert found.difficulty[1] == pytest.approx((0.25 + 0.5 + 0.5) / 3)
    assert found.mean_over(np.array([1, 1]))[0, 1] == 0.25
    assert found.mean_over(np.arange(3)).tolist() == found.mean.tolist()


def test_a_pair_that_was_never_measured_is_named():
    values = np.full((2, 3, 3), 0.5)
    values[:, 2, 0] = values[:, 1, 1] = np.nan
    with pytest.raises(MethodError, match=r"\(2 such pairs\)"):
        _ = made(values).mean


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"values": np.ones((2, 3, 2))}, r"shape \(2, 3, 2\); seeds × sources × targets is"),
        ({"values": np.ones((3, 3))}, "shape"),
        ({"values": np.ones((0, 3, 3))}, "shape"),
        ({"values": np.full((1, 3, 3), np.inf)}, "infinite"),
        ({"tasks": ("a", "b", "b"), "targets": ABC}, "named twice: 'b'"),
        ({"targets": ("a", "b", "x")}, "targets that are not tasks: 'x'"),
        ({"targets": ("a", "b", "b")}, "named twice: 'b'"),
        ({"values": np.ones((2, 3, 0)), "targets": ()}, "no task was a target"),
        ({"values": np.ones((2, 1, 1)), "tasks": ("a",), "targets": ("a",)}, "one task"),
        ({"sizes": (4, 0, 6)}, "at least 1"),
        ({"sizes": (4, 6)}, "number of questions"),
    ],
)
def test_what_does_not_fit(changes, said):
    with pytest.raises(MethodError, match=said):
        made(**changes)


ACC = np.full((2, 3, 3), 0.5)
WRONG = {
    "text where numbers stand": {"acc": np.full((3, 3), "x")},
    "complex numbers": {"acc": ACC + 1j},
    "objects": {"acc": np.full((3, 3), None)},
    "truth values": {"acc": ACC > 0},
    "one row": {"acc": ACC[0, 0]},
    "one number": {"acc": np.array(0.5)},
    "four dimensions": {"acc": ACC[None]},
    "infinite": {"acc": ACC * np.inf},
    "tasks as one text": {"tasks": np.array("abc")},
    "tasks in a table": {"tasks": np.array([["a", "b", "c"]])},
    "tasks as fractions": {"tasks": np.arange(3) / 2},
    "too few tasks": {"tasks": np.array(["a", "b"])},
    "other targets": {"targets": np.array(["a", "b", "x"])},
    "sizes as text": {"n_questions": np.array(["4", "5", "6"])},
    "sizes unknown": {"n_questions": np.array([4, np.nan, 6])},
    "sizes in halves": {"n_questions": np.array([4.5, 5, 6])},
    "sizes beyond numbers": {"n_questions": np.array([1e300, 5, 6])},
    "too few sizes": {"n_questions": np.array([4, 5])},
    "a single size": {"n_questions": np.array(4)},
    "facts that are no JSON": {"facts": np.array("{")},
    "facts that are a list": {"facts": np.array("[1]")},
    "facts about a list": {"facts": np.array(json.dumps({"about": [1]}))},
}


@pytest.mark.parametrize("kind", WRONG)
def test_npz_files_that_are_no_matrix(tmp_path, kind):
    path = tmp_path / "m.npz"
    np.savez(path, **({"acc": ACC, "tasks": np.array(ABC)} | WRONG[kind]))
    with pytest.raises(MethodError, match=r"m\.npz: "):
        Transferability.load(path)


def test_npz_files_without_the_arrays(tmp_path):
    np.savez(tmp_path / "m.npz", scores=ACC, tasks=np.array(ABC))
    with pytest.raises(MethodError, match=r"m\.npz.*'scores'.*'tasks'"):
        Transferability.load(tmp_path / "m.npz")
    assert not is_transferability(tmp_path / "m.npz")


@pytest.mark.parametrize("name", ["m.npz", "m.csv", "m"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04 and no more",
        b"\x93NUMPY\x01\x00",
        b"\xff\xfe\x00",
        b"hello\n",
        b",,\n,,\n",
    ],
)
def test_files_of_anything(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(MethodError, match=rf"{name}: "):
        Transferability.load(tmp_path / name)
    assert is_transferability(tmp_path / name) == name.endswith(".csv")


@pytest.mark.parametrize(
    "text",
    [
        ",a,b\na,x,1\nb,1,1\n",
        ",a,b\na,1,1,1\nb,1,1\n",
        ",a,b\n,1,1\nb,1,1\n",
        ",a,\na,1,1\nb,1,1\n",
        ",a,a\na,1,1\nb,1,1\n",
        ",a,b\na,1,1\na,1,1\n",
        ",a,b\na,inf,1\nb,1,1\n",
        ",a,b\n",
        "a,b\n",
        "task\na\nb\n",
    ],
)
def test_csv_files_that_are_no_matrix(tmp_path, text):
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(MethodError, match=r"m\.csv: "):
        Transferability.load(tmp_path / "m.csv")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(MethodError, match=r"nope\.npz"):
        Transferability.load(tmp_path / "nope.npz")
    with pytest.raises(MethodError, match=r"matrix\.npz"):
        Transferability.load(tmp_path)
    assert not is_transferability(tmp_path)
    made().save(tmp_path / "matrix.npz")
    assert is_transferability(tmp_path)
    assert is_transferability(tmp_path / "matrix.npz")
