"""All analyses together: the same seeds, what is absent and why, words that fit the numbers."""

import math
from dataclasses import replace

import pytest

from fewbench.errors import MethodError, StudyError
from fewbench.study import SplitSettings, compare
from fewbench.testing import simulate
from papers.methods import find
from tailoredbench.analysis import analyze

from .conftest import planted, without


@pytest.fixture(scope="module")
def found():
    scores = planted(n_families=3, size=24, n_items=150, skill=[-0.8, 0.0, 0.8])
    return analyze(scores, budget=20, repeats=3, split=SplitSettings(targets=0.5))


def test_the_method_itself_is_as_in_compare(found):
    scores = simulate(24, 40, seed=2)
    own = analyze(scores, budget=12, repeats=2, seed=5).counts.at("as found")
    study = compare(scores, ["tailored"], [12], repeats=2, seed=5, level=None)
    row = study.cells.set_index("method").loc["tailored"]
    assert own["mae"] == pytest.approx(row["mae"])
    assert own["kendall_tau"] == pytest.approx(row["kendall_tau"])


def test_what_is_found_where_families_are_planted(found):
    assert found.affinity.ratio["by_strength"] > 1
    assert found.absence.at("without")["mae_gap"] > 0
    assert math.isfinite(found.absence.at("without")["mae_gap_low"])
    said = found.findings
    # Three families are few: they are what is resampled.
    assert "Without them it is" in said["absence"]
    assert "The farthest fifth is" in said["nearness"]
    fifths = found.nearness.steps
    assert f"{100 * fifths['mae'].iloc[-1]:.1f} pp" in said["nearness"]
    assert f"{fifths['kendall_tau'].iloc[0]:.2f}" in said["nearness"]


def test_nearness_by_probabilities_is_refused():
    with pytest.raises(MethodError, match="nearness is measured by scores"):
        analyze(simulate(30, 40, options=4), "tailored(values=probabilities)", 12, repeats=1)


def test_roles_tell_the_split_and_families_may_be_missing():
    scores = without(simulate(40, 60), "family")
    role = ["source"] * 25 + ["target"] * 15
    named = replace(scores, models=scores.models.assign(role=role))
    found = analyze(named, budget=15, repeats=1)
    assert set(found.absent) == {"affinity", "absence"}
    assert "families of the models are not known" in found.absent["absence"]
    assert found.affinity is found.absence is found.by_method is None
    other = analyze(scores, budget=15, repeats=1)
    assert found.counts.at("as found") != other.counts.at("as found")  # of a random split


def test_few_sources_leave_out_what_they_cannot_tell():
    found = analyze(simulate(12, 40), budget=12, repeats=1, split=SplitSettings(targets=0.3))
    assert "cannot be divided by nearness" in found.absent["nearness"]
    assert found.nearness is None
    assert found.counts is not None


def test_one_target():
    found = analyze(simulate(30, 40), budget=12, repeats=1, split=SplitSettings(targets=0.01))
    assert math.isnan(found.counts.at("as found")["kendall_tau"])
    assert "τ –" in found.findings["counts"]


@pytest.mark.parametrize(
    "settings",
    [
        "tailored(natives=dynamic,metric=cosine)",
        "tailored(probe=5,ties=shared)",
    ],
    ids=str,
)
def test_other_settings_run(settings):
    found = analyze(simulate(40, 60), find(settings), budget=12, repeats=1)
    assert 0 <= found.counts.at("as found")["mae"] < 0.3


@pytest.mark.parametrize("kind", [{"missing": 0.002}], ids=str)
def test_other_tables_run(kind):
    scores = simulate(60, 80, seed=3, **kind)
    found = analyze(scores.averaged("macro"), budget=15, repeats=1)
    assert found.spread is not None


def test_a_budget_below_the_probe_and_one_of_all_items():
    scores = simulate(40, 30)
    few = analyze(scores, budget=4, repeats=1)
    assert few.shares.steps["mae"].notna().all()
    whole = analyze(scores, budget=30, repeats=1)
    assert whole.counts.steps["mae"].max() == pytest.approx(0.0, abs=1e-12)
    assert whole.spread.shares["targets"] == 0


def test_mistakes_are_said():
    scores = simulate(40, 60)
    with pytest.raises(MethodError, match="'kmedoids-ridge'"):
        analyze(scores, "kmedoids-ridge", budget=10)
    with pytest.raises(MethodError, match="budget of 61"):
        analyze(scores, budget=61)
    with pytest.raises(StudyError, match="repeats=0"):
        analyze(scores, budget=10, repeats=0)
    with pytest.raises(StudyError, match="'role'"):
        analyze(scores, budget=10, split=SplitSettings("given"))
