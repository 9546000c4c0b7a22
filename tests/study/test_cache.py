"""Finished cells are kept in a file: they are run once, and never taken for others."""

import sys

import numpy as np
import pytest

from fewbench.errors import StudyError
from fewbench.methods import find_method
from fewbench.study import Split, SplitSettings, cell, compare
from fewbench.study.cache import Cache
from fewbench.study.cell import Cell
from fewbench.testing import simulate

TIMES = ["seconds_fit", "seconds_predict"]


@pytest.fixture
def ran(monkeypatch):
    """The cells of `random-linear` that were really run."""
    module = sys.modules["fewbench.study.compare"]
    real, cells = module.try_cell, []

    def try_cell(scores, cell, key):
        if cell.name == "random-linear":
            cells.append(cell)
        return real(scores, cell, key)

    monkeypatch.setattr(module, "try_cell", try_cell)
    return cells


def test_finished_cells_are_not_run_again(scores, tmp_path, ran, assert_same):
    cache = tmp_path / "deep" / "cells.jsonl"

    def study(budgets=(5,), **settings):
        settings = {"repeats": 2, "level": None} | settings
        return compare(scores, ["random-linear"], budgets, cache=cache, **settings)

    first = study()
    assert len(ran) == 2
    again = study()
    assert len(ran) == 2
    assert_same(first, again)
    assert again.cells[TIMES].equals(first.cells[TIMES])
    study(repeats=3)  # only the new repeat
    assert len(ran) == 3
    study(budgets=[5, 6])
    assert len(ran) == 5


def test_a_method_of_ones_own_is_always_run(scores, tmp_path, first_items):
    """Its name does not say whether its code changed."""
    cache, method = tmp_path / "cells.jsonl", first_items()
    for runs in (1, 2):
        compare(scores, [method], [5], repeats=1, level=None, cache=cache)
        assert method.starts == runs
    assert b"first" not in cache.read_bytes()
    assert len(cache.read_bytes().splitlines()) == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 1},
        {"level": 0.9},
        {"split": SplitSettings("performance")},
        {"split": SplitSettings(targets=0.4)},
        {"budgets": [6]},
        {"scores": simulate(20, 40, seed=4)},
    ],
)
def test_cells_of_other_settings_are_not_used(scores, tmp_path, ran, changed, assert_same):
    settings = {"scores": scores, "budgets": [5], "repeats": 1, "level": None}
    settings |= {"methods": ["random-linear"], "cache": tmp_path / "cells.jsonl"}
    compare(**settings)
    fresh = compare(**settings | changed)
    assert len(ran) > 1
    without = compare(**settings | changed | {"cache": None})
    assert_same(fresh, without)


def test_cells_of_other_targets_are_not_used():
    method, sources = find_method("random"), np.arange(3)
    splits = [Split(sources, np.array([target])) for target in (4, 5)]
    one, other = (Cell("m", method, 5, "given", of, 0, 0, 0.9, True).key("scores") for of in splits)
    assert one != other


def test_an_edit_of_a_checkout_voids_its_cells(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "src" / "fewbench").mkdir(parents=True)
    monkeypatch.setattr(cell, "PACKAGE", tmp_path / "src" / "fewbench")
    keys = set()
    for source in ("a = 1", "a = 2", "a = 1"):
        (cell.PACKAGE / "x.py").write_text(source)
        cell.made_with.cache_clear()
        keys.add(cell.made_with())
    cell.made_with.cache_clear()
    assert len(keys) == 2


def test_an_edit_of_a_package_that_adds_methods_voids_its_cells(tmp_path, monkeypatch, install):
    entries = {"fewbench.methods": {"mine": "my_methods:mine"}}
    install({"name": "my-methods", "version": "1", "entry-points": entries}, tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    keys = set()
    for source in ("a = 1", "a = 2", "a = 1"):
        (tmp_path / "my_methods.py").write_text(source)
        cell.made_with.cache_clear()
        keys.add(cell.made_with())
    cell.made_with.cache_clear()
    assert len(keys) == 2


@pytest.mark.parametrize("kept", [0.5, 0.999])
def test_a_torn_line_is_run_again(scores, tmp_path, ran, kept, assert_same):
    cache, methods = tmp_path / "cells.jsonl", ["random-linear"]
    settings = {"budgets": [5], "repeats": 3, "level": None, "cache": cache}
    whole = compare(scores, methods, **settings)
    lines = cache.read_bytes().splitlines(keepends=True)
    assert len(lines) == 9
    torn = lines[-1][: int(len(lines[-1]) * kept)].rstrip(b"\n}")
    cache.write_bytes(b"".join(lines[:-1]) + torn)
    resumed = compare(scores, methods, **settings)
    assert len(ran) == 4
    assert_same(whole, resumed)
    compare(scores, methods, **settings)  # what was appended after the tear is whole
    assert len(ran) == 4


def test_a_stopped_study_goes_on(scores, tmp_path):
    def stop(done, total):
        if done == 5:
            raise KeyboardInterrupt

    methods = ["random-linear", "random+mean"]
    settings = {"budgets": [5], "repeats": 3, "level": None, "cache": tmp_path / "cells.jsonl"}
    with pytest.raises(KeyboardInterrupt):
        compare(scores, methods, progress=stop, **settings)
    seen = []
    compare(scores, methods, progress=lambda *at: seen.append(at), **settings)
    assert seen[0] == (5, 9)  # random+mean is random by another name, and is not run twice
    assert seen[-1] == (9, 9)
    assert len(seen) == 5


def test_several_processes_share_a_folder(scores, tmp_path, ran, assert_same):
    settings = {"budgets": [5], "repeats": 2, "level": None}
    first = compare(scores, ["random-linear"], cache=f"{tmp_path}/cells/", **settings)
    again = compare(scores, ["random-linear"], cache=f"{tmp_path}/cells/", **settings)
    assert len(ran) == 2
    assert_same(first, again)
    (kept,) = (tmp_path / "cells").iterdir()
    kept.rename(tmp_path / "cells" / "cells-other-1.jsonl")  # as if another machine had written it
    ran.clear()
    compare(scores, ["random-linear"], cache=tmp_path / "cells", **settings | {"repeats": 3})
    assert len(ran) == 1


def test_an_unusable_place_is_named(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("a")
    with pytest.raises(StudyError, check=lambda error: error.kind == "taken"):
        Cache(tmp_path / "notes")
    with pytest.raises(StudyError, match="at a URL"):
        Cache("s3://bucket/cells")
