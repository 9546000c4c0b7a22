"""All analyses together: the same seeds, what is absent and why, words that fit the numbers."""

import json
import math
from dataclasses import replace

import pytest

from fewbench.errors import MethodError, StudyError
from fewbench.scores import save_scores
from fewbench.study import SplitSettings, compare
from fewbench.testing import simulate
from native_sources import main
from papers.methods import find
from tailoredbench.analysis import analyze

from .conftest import planted, without


@pytest.fixture(scope="module")
def found():
    scores = planted(n_families=3, size=24, n_items=150, skill=[-0.8, 0.0, 0.8])
    return analyze(scores, budget=20, repeats=3, split=SplitSettings(targets=0.5))


def test_the_method_itself_is_as_in_compare(found):
    scores = simulate(40, 80, seed=2)
    own = analyze(scores, budget=15, repeats=3, seed=5).counts.at("as found")
    study = compare(scores, ["tailored"], [15], repeats=3, seed=5, level=None)
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


def test_trials_spread_as_the_repeats_of_compare_do():
    scores, methods = simulate(40, 60, seed=1), ["tailored", "random"]
    kind = {"repeats": 3, "seed": 1, "budgets": [12, 20], "others": ["random"], "parts": ()}
    found = analyze(scores, budget=15, **kind).trials.set_index(["method", "budget"])
    study = compare(scores, methods, [12, 20], repeats=3, seed=1, level=None).repeats
    for at, row in found.iterrows():
        mine = study[(study["method"] == at[0]) & (study["budget"] == at[1])]
        assert row["mae_sd"] == pytest.approx(mine["mae"].std(ddof=1))
        assert row["kendall_tau"] == pytest.approx(mine["kendall_tau"].mean())
    assert found.index.tolist() == [(m, n) for m in methods for n in (12, 20)]


def test_nearness_by_probabilities_is_refused():
    with pytest.raises(MethodError, match="nearness is measured by scores"):
        analyze(simulate(30, 40, options=4), "tailored(values=probabilities)", 12, repeats=1)


def test_roles_tell_the_split_and_families_may_be_missing():
    scores = without(simulate(40, 60), "family")
    role = ["source"] * 25 + ["target"] * 15
    named = replace(scores, models=scores.models.assign(role=role))
    found = analyze(named, budget=15, repeats=1)
    assert found.facts["split"] == "given"
    assert (found.facts["sources"], found.facts["targets"]) == (25, 15)
    assert set(found.absent) == {"affinity", "absence", "trials"}
    assert "families of the models are not known" in found.absent["absence"]
    assert found.affinity is found.absence is found.by_family is None


def test_few_sources_leave_out_what_they_cannot_tell():
    found = analyze(simulate(12, 40), budget=12, repeats=1, split=SplitSettings(targets=0.3))
    assert "cannot be divided by nearness" in found.absent["nearness"]
    assert found.nearness is None
    assert found.counts is not None
    assert any("only 4 targets" in warning for warning in found.warnings)


def test_one_target():
    found = analyze(simulate(30, 40), budget=12, repeats=1, split=SplitSettings(targets=0.01))
    assert "one target is too few for a map" in found.absent["items"]
    assert math.isnan(found.counts.at("as found")["kendall_tau"])
    assert "τ –" in found.findings["counts"]
    json.dumps(found.to_dict(), allow_nan=False)


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
    assert found.facts["full score"] == "macro average"
    assert any("are missing" in w for w in found.warnings) == ("missing" in kind)
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
    with pytest.raises(MethodError, match="'kmedoids-ridge' has no native sources"):
        analyze(scores, "kmedoids-ridge", budget=10)
    with pytest.raises(MethodError, match="budget of 61"):
        analyze(scores, budget=61)
    with pytest.raises(StudyError, match="repeats=0"):
        analyze(scores, budget=10, repeats=0)
    with pytest.raises(StudyError, match="no column 'role'"):
        analyze(scores, budget=10, split=SplitSettings("given"))


def test_the_script_prints_the_findings_and_writes_the_numbers(tmp_path, capsys):
    path = save_scores(simulate(40, 60, seed=2), tmp_path / "s.parquet")
    words = [str(path), "--budget", "14", "--repeats", "1", "--split", "every", "--budgets", ""]
    parts = ["--parts", "nearness,affinity", "--families", "model-00+model-02,model-01+model-03"]
    main([*words, *parts, "-o", str(tmp_path / "out.json")])
    said = capsys.readouterr().out
    assert "nearness: From the nearest to the farthest fifth" in said
    assert "affinity: A target has" in said
    assert "absence: not asked for" in said
    written = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert written["findings"]["nearness"] in said
    assert len(written["nearness"]["steps"]) == 5
