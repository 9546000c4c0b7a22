import numpy as np
import pytest

from fewbench.readers import import_results
from fewbench.readers.npz import read_npz
from fewbench.scores import Scale

SCORES = np.array([[1, 0, 1], [0, 1, 1]])


@pytest.fixture
def save(tmp_path):
    def save(**arrays):
        np.savez_compressed(
            tmp_path / "t.npz", **({"scores": SCORES, "models": ["a", "b"]} | arrays)
        )
        return tmp_path / "t.npz"

    return save


def chances(scores):
    return np.stack(list(scores.probabilities.by_model()))


def test_least_that_is_needed(save):
    scores = read_npz(save()).scores
    assert scores.values.tolist() == SCORES.tolist()
    assert scores.item_ids.tolist() == ["item-0", "item-1", "item-2"]
    assert scores.tasks == ["all"]


def test_everything(save):
    of_one = [[0.9, 0.1, 0.0], [0.2, 0.3, 0.5], [0.4, 0.6, 0.0]]
    options = np.array([of_one, of_one], dtype=np.float16)
    scores = read_npz(
        save(
            items=["007", "7", "q"],
            tasks=["x", "y", "y"],
            role=["source", "target"],
            dates=["2024-01-01", "2025-01-01"],
            families=["f", "g"],
            probabilities=options,
            n_options=[2, 3, 2],
        )
    ).scores
    assert scores.item_ids.tolist() == ["007", "7", "q"]
    assert scores.tasks == ["x", "y"]
    assert scores.models["role"].tolist() == ["source", "target"]
    assert scores.items["n_options"].tolist() == [2, 3, 2]
    assert np.array_equal(chances(scores), options)


def test_probabilities_are_kept_unless_tables_are_joined(save, tmp_path):
    path = save(items=["x", "y", "z"], probabilities=np.full((2, 3, 2), 0.5))
    alone = import_results(path)
    assert alone.scores.probabilities is not None
    assert not alone.notes
    other = path.rename(tmp_path / "other.npz")
    assert import_results([other, save(models=["c", "d"])]).notes == (
        "option probabilities of joined tables are not kept",
    )


def test_ids_as_bytes_and_numbers(save):
    scores = read_npz(save(models=np.array([b"a", "ä".encode()]), items=np.array([7, 8, 9]))).scores
    assert scores.model_ids == ["a", "ä"]
    assert scores.item_ids.tolist() == ["7", "8", "9"]


@pytest.mark.parametrize("lower", [False, True])
def test_scales(save, lower):
    scores = read_npz(save(scores=SCORES * 100.0), scale=Scale(0, 100, lower)).scores
    assert scores.values.tolist() == (1 - SCORES if lower else SCORES).tolist()


class TestAnswers:
    def test_become_certain_probabilities(self, save):
        scores = read_npz(save(answers=np.array([[0, 1, -1], [2, 1, -2]]))).scores
        assert scores.items["n_options"].tolist() == [4, 3, 1]  # "none" is an option of its own
        assert chances(scores)[0].tolist() == [[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]]
        assert chances(scores)[1, 0].tolist() == [0, 0, 0, 1]
        assert np.isnan(chances(scores)[1, 2]).all()

    def test_more_options_than_were_chosen(self, save):
        answers = np.array([[0, 1, 3], [0, 1, 0]])
        reading = read_npz(save(answers=answers, n_options=[4, 4, 2]))
        assert reading.scores.items["n_options"].tolist() == [5, 5, 5]
        (note,) = reading.notes
        assert note.endswith(
            "than the file's 2 to 4, or more where answers are above its last option (1 do)"
        )
