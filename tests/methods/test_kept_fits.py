"""Fits of the sources in an evaluation's folder: made once, the same to the last digit."""

import shutil

import numpy as np
import pytest

from fewbench._arrays import to_arrays
from fewbench.evaluation import Evaluation
from fewbench.methods import kriging
from fewbench.scores import files, save_scores
from fewbench.testing import simulate

TABLE = simulate(61, 80, 3, missing=0.05, seed=1)
SOURCES = TABLE.take(models=np.arange(60))
SOURCES = SOURCES.changed(models=SOURCES.models.assign(size="7B"))
ANSWERS = dict(zip(SOURCES.item_ids, TABLE.filled[60].round(), strict=True))


@pytest.fixture
def fits(monkeypatch):
    made, fit = [], kriging.fit_kriging
    monkeypatch.setattr(kriging, "fit_kriging", lambda *given: made.append(given) or fit(*given))
    return made


def step(evaluation):
    """Tell the next round; return whether there was one."""
    asked = evaluation.ask()
    for name, items in asked.items():
        evaluation.tell(name, {item: ANSWERS[item] for item in items})
    return bool(asked)


def predicted(evaluation):
    found = evaluation.prediction("target")
    return to_arrays(evaluation.record.answers("target")), found.scores, found.tasks, found.spread


@pytest.mark.parametrize("method", ["fewbench", "fewbench-static"])
def test_what_goes_on_neither_fits_nor_reads_cells_nor_changes_a_digit(
    method, tmp_path, fits, monkeypatch
):
    whole = Evaluation(SOURCES, method, 20)
    while step(whole):
        pass
    expected = predicted(whole)
    path, folder = save_scores(SOURCES, tmp_path / "scores.parquet"), tmp_path / "run"
    Evaluation(SOURCES, method, 20).save(folder, path)
    reads, read = [], files._read_cells
    monkeypatch.setattr(files, "_read_cells", lambda *of: reads.append(of) or read(*of))
    fits.clear()
    while step(Evaluation.open(folder)):
        pass
    assert not fits + reads
    predicted(Evaluation.open(folder))  # the predictor of a static method learns now
    fits.clear()
    reads.clear()
    np.testing.assert_equal(predicted(Evaluation.open(folder)), expected)
    assert not fits + reads


@pytest.mark.parametrize("damage", ["deleted", "empty", "torn", "array", "other seed"])
def test_a_fit_that_does_not_belong_there_is_made_again(damage, tmp_path, fits):
    evaluation = Evaluation(SOURCES, "fewbench", 20)
    evaluation.save(tmp_path / "run")
    step(evaluation)
    expected = predicted(evaluation)
    (path,) = (tmp_path / "run").glob("kriging-*.npz")
    content = path.read_bytes()
    if damage == "array":
        np.save(path.open("wb"), np.ones(3))
    elif damage == "other seed":
        Evaluation(SOURCES, "fewbench", 20, seed=1).save(tmp_path / "other")
        shutil.copy(tmp_path / "other" / path.name, path)
    else:
        path.write_bytes({"empty": b"", "torn": content[: len(content) // 2]}.get(damage, b""))
    if damage == "deleted":
        path.unlink()
    fits.clear()
    np.testing.assert_equal(predicted(Evaluation.open(tmp_path / "run", SOURCES)), expected)
    assert len(fits) == 1
    assert path.read_bytes() == content
