"""What cannot run here is said first: by methods, by audit and by start, not after the answers."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import fewbench
from fewbench.scores import save_scores
from fewbench.testing import simulate


@pytest.fixture
def without(monkeypatch):
    """Make modules seem not to be installed."""

    def hide(*modules):
        for module in modules:
            monkeypatch.setitem(sys.modules, module, None)

    return hide


@pytest.fixture
def saved(tmp_path):
    def save(n_models=30, **kind):
        scores = simulate(n_models, 40, seed=1, **kind)
        bare = replace(scores, items=scores.items.drop(columns="text"))
        return save_scores(bare, tmp_path / "scores.parquet")

    return save


def fit(ok, path, name):
    return next(
        m for m in json.loads(ok("audit", path, "--json"))["methods"] if m["method"] == name
    )


def test_an_extra_that_is_not_installed(ok, cli, saved, without, tmp_path):
    without("ot")
    path = saved()
    listed = {row["name"]: row["cannot"] for row in json.loads(ok("methods", "--json"))}
    assert listed["collaborative"] == (
        "POT is not installed (hint: pip install 'fewbench[transport]')"
    )
    assert listed["collaborative-no-transport"] is None
    assert listed["collaborative-low-rank"] is None
    assert "These cannot run here" in ok("methods")
    found = fit(ok, path, "collaborative")
    assert found["verdict"] == "cannot"
    assert found["because"] == ["POT is not installed: pip install 'fewbench[transport]'"]
    shown = ok("audit", path, "--details")
    assert "\nThese methods cannot run here:\n" in shown
    assert "\ncollaborative: POT is not installed: pip" in shown
    said = cli("start", path, "-m", "collaborative", "-n", 5, "-o", "run")
    assert said.code != 0
    assert "POT is not installed (hint: pip install 'fewbench[transport]')" in said.err
    assert not (tmp_path / "run").exists()


def test_items_without_texts_and_too_few_sources(ok, cli, saved):
    path = saved()
    assert "cannot run" not in ok("methods")
    listed = {r["name"]: r["cannot"] for r in json.loads(ok("methods", "--scores", path, "--json"))}
    assert "40 of 40 items have no text" in listed["bm25-sim"]
    assert listed["greedy-ridge"] is None
    said = cli("start", path, "-m", "bm25-sim", "-n", 5, "-o", "run")
    assert "40 of 40 items" in said.err
    few = saved(1)
    listed = {
        row["name"]: row["cannot"] for row in json.loads(ok("methods", "--scores", few, "--json"))
    }
    assert "there is 1 source model, and 2 are needed" in listed["fluid"]
    said = cli("start", few, "-m", "fluid", "-n", 5, "-o", "run")
    assert "there is 1 source model, and 2 are needed" in said.err


@pytest.mark.parametrize("n_models", [8, 40])
def test_a_short_list_of_methods_to_use(ok, saved, n_models):
    path = saved(n_models)
    use = json.loads(ok("audit", path, "--json"))["use"]
    when = [one["when"] for one in use]
    if n_models == 8:
        assert when == ["fewer than 20 independent source models"]
    else:
        assert when == [
            "targets like the source models",
            "targets stronger, newer or weaker than all source models",
        ]
    shown = ok("audit", path)
    assert len(shown.split("Use these methods")[1].splitlines()) < 20
    for one in use:
        assert f"\n{one['when']}: {', '.join(one['methods'])}" in shown
        assert one["reason"]
    command = shown.split("Next: ")[1].split()
    assert command[:3] == ["fewbench", "compare", str(path)]
    assert command[4].split(",") == list(dict.fromkeys(one["methods"][0] for one in use))
    assert command[-1] == "20"  # 50 items are more than there are
    rows = {row["name"]: row["use_for"] for row in json.loads(ok("methods", "--json"))}
    for one in use:
        assert all(one["when"] in rows[name] for name in one["methods"])


def test_no_method_is_told_to_use_itself():
    from fewbench.methods import find_method
    from fewbench.scores import from_arrays

    values = np.tile([[0.0], [1.0]], (4, 60))
    scores = from_arrays(values, models=[f"m{n}" for n in range(8)])
    for name, instead in {
        "disco-pds-rf": "use jsd",
        "disco-jsd-ridge": "use random items",
    }.items():
        session = find_method(name).start(scores, 5, 0, ["new"])
        (note,) = session.subset.notes
        assert instead in note
        assert fewbench.Evaluation(scores, name, 5, ["new"]).notes == (note,)  # not in silence
        selector = find_method(name).describe().partition("(")[0].partition("+")[0]
        assert selector not in note.lower().split("use ")[1]
