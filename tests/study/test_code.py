"""The key of a finished cell: it changes with the code that its method uses, and no other."""

import pytest

from fewbench.evaluation.auto import Auto
from fewbench.methods import CATALOGUE, find_method
from fewbench.study import code

CACHED = (code._hash, code._imports, code._passed_on, code._digest)


@pytest.fixture
def edited(monkeypatch):
    """Replace the source of modules: `edited(name, source)`."""
    real, changed = code.source_of, {}

    def edit(name, source):
        changed[name] = source
        for one in CACHED:
            one.cache_clear()

    monkeypatch.setattr(code, "source_of", lambda name: changed.get(name) or real(name))
    yield edit
    for one in CACHED:
        one.cache_clear()


def hashes(names, **how):
    how = {"intervals": False} | how
    return {name: code.code_of(find_method(name), **how) for name in names}


@pytest.mark.parametrize("intervals", [False, True])
def test_no_method_rests_on_what_is_around_it(intervals):
    """Commands, pages, readers and the list of methods change no number."""
    rooms = {"cli", "report", "readers", "public", "packs", "executors", "runners", "audit"}
    for name in CATALOGUE:
        found = code.modules_of(find_method(name), intervals=intervals)
        assert "fewbench" not in found
        assert not {one.split(".")[1] for one in found} & rooms, name
        assert not found & {"fewbench.methods.catalogue", "fewbench.methods.parts"}, name


def test_a_method_s_own_modules_are_among_its_code():
    for name, own, not_own in (
        ("greedy-ridge", "methods.selection.core_sets", "algorithms.kriging.run"),
        ("fewbench", "algorithms.kriging.run", "methods.selection.core_sets"),
        ("clustering", "algorithms.clustering.kmeans", "algorithms.irt.steps"),
        ("bm25-sim", "tasks.matrix", "algorithms.kriging.run"),
    ):
        found = code.modules_of(find_method(name), intervals=False)
        assert f"fewbench.{own}" in found, name
        assert f"fewbench.{not_own}" not in found, name
    assert "fewbench.evaluation.intervals" in code.modules_of(
        find_method("fewbench"), intervals=True
    )
    assert "fewbench.methods.catalogue" in code.modules_of(Auto(), intervals=False)


def test_an_edit_voids_those_that_reach_it(edited):
    names = ["fewbench", "clustering", "greedy-ridge"]
    before, source = hashes(names), code.source_of("fewbench.algorithms.kriging.run")
    edited("fewbench.algorithms.kriging.run", source + b"\n# a comment\n")
    assert hashes(names) == before
    edited("fewbench.algorithms.kriging.run", source + b"\nMORE = 1\n")
    after = hashes(names)
    assert [after[name] == before[name] for name in names] == [False, True, True]


def test_a_new_method_leaves_the_others_as_they_are(edited):
    names = ["fewbench", "clustering"]
    before = hashes(names, intervals=True) | {"auto": code.code_of(Auto(), intervals=True)}
    edited("fewbench.methods.adaptive.newest", b"from fewbench.methods.base import Method\n")
    listed = code.source_of("fewbench.methods.catalogue")
    edited(
        "fewbench.methods.catalogue",
        b"from fewbench.methods.adaptive.newest import Method as Newest\n" + listed,
    )
    assert hashes(names, intervals=True) == {name: before[name] for name in names}
    assert code.code_of(Auto(), intervals=True) != before["auto"]  # it may choose the new one
