"""Families of native sources, where they are planted and where they are not."""

from dataclasses import replace

import numpy as np
import pytest

from fewbench.errors import StudyError
from fewbench_papers.tailoredbench.tailored import Tailored
from tailoredbench.methods import of_methods
from tailoredbench.native_sources import (
    affinity,
    families_of,
    families_to_try,
    native_families,
    without_family,
)
from tailoredbench.trials import measure, open_trial

from .conftest import halves, planted, without


def named(scores, families):
    return replace(scores, models=scores.models.assign(family=families))


def trial_of(scores, budget=20, method=None):
    return open_trial(scores, halves(scores), method or Tailored(), budget, 0)


def test_planted_families_choose_their_own(families):
    counted = native_families(families)
    assert set(counted.groupby("target")["natives"].sum()) == {len(families.natives[0])}
    assert np.allclose(
        counted.groupby("target")["chance"].sum(), counted.groupby("target")["natives"].sum()
    )
    found = affinity(counted)
    kin = found.pairs[found.pairs["family"] == found.pairs["source_family"]]
    assert (kin["natives"] > 0.8 * kin[["sources", "natives"]].min(axis=1)).all()
    assert found.ratio["chance"] > 2
    assert found.ratio["chance"] > 1.5
    assert found.ratio["by_strength"] > 1.2
    assert found.own["targets"].tolist() == [12, 12, 12]


def test_families_that_differ_in_strength_only_are_no_more_than_that():
    scores = planted(n_families=3, size=30, n_items=200, skill=[-2.0, 0.0, 2.0], own=0.0)
    found = affinity(native_families(trial_of(scores, 25)))
    assert found.ratio["chance"] > 1.5
    assert found.ratio["by_strength"] == pytest.approx(1.0, abs=0.15)


def test_models_without_a_family_are_nobody_s_kin():
    scores = planted()
    some = scores.models["family"].where(np.arange(scores.n_models) % 4 > 0, None)
    trial = trial_of(named(scores, some))
    counted = native_families(trial)
    assert "" not in {*counted["family"], *counted["source_family"]}
    assert counted["target"].nunique() == int((families_of(trial.targets) != "").sum())
    # Those without a family are among the sources that chance draws from.
    n = counted.groupby("target")["chance"].sum() / len(trial.natives[0])
    assert np.allclose(n, (families_of(trial.sources) != "").mean())


def test_without_families_the_error_says_what_to_do():
    scores = without(planted(), "family")
    for make in (native_families, without_family):
        with pytest.raises(StudyError, match="families of the models are not known") as error:
            make(trial_of(scores))
        assert "import --models" in error.value.hint


def test_families_that_are_never_on_both_sides():
    scores = planted()
    split = halves(scores)
    own = scores.models["family"].to_numpy(object)
    own[split.targets] = [f"new-{f}" for f in own[split.targets]]
    trial = trial_of(named(scores, own))
    with pytest.raises(StudyError, match="no target has a source of its own family"):
        affinity(native_families(trial))
    with pytest.raises(StudyError, match="3 targets"):
        without_family(trial)


def test_losing_one_s_family_hurts_where_families_think_for_themselves():
    scores = planted(n_families=3, size=30, n_items=240, seed=2, skill=[-0.5, 0.0, 0.5])
    trial = trial_of(scores, 25)
    runs = without_family(trial)
    assert set(runs["family"]) == {"f0", "f1", "f2"}
    sizes = runs.groupby("step")["sources"].agg(["min", "max"]).to_numpy()
    assert np.ptp(sizes) == 0  # as many sources on both sides, in all families alike
    found = measure(runs.assign(repeat=0), "with", within=("repeat", "family")).steps
    assert found.at["without", "mae_gap"] > 0.01


def test_other_methods_estimate_the_same_targets_from_the_same_sources():
    scores = planted(n_families=3, size=30, n_items=240, seed=2, skill=[-0.5, 0.0, 0.5])
    runs = without_family(trial_of(scores, 25), others=["random", "kmedoids-ridge"])
    own = runs[runs["method"] == "tailored"].reset_index(drop=True)
    for method in ("random", "kmedoids-ridge"):
        other = runs[runs["method"] == method].reset_index(drop=True)
        same = ["step", "target", "truth", "family", "sources", "own"]
        assert other[same].equals(own[same])
    found = of_methods(runs.assign(repeat=0)).set_index("method")
    assert found.index.tolist() == ["tailored", "random", "kmedoids-ridge"]
    whole = measure(own.assign(repeat=0), "with", within=("repeat", "family")).steps
    assert found.at["tailored", "mae_without"] == whole.at["without", "mae"]
    assert found.at["random", "mae_gap"] == 0  # it has no use for sources
    assert found.at["kmedoids-ridge", "mae_gap"] > 0


def test_a_family_larger_than_all_others_is_left_out():
    scores = planted(n_families=3, size=24)
    names = ["big" if f != "f2" else "small" for f in scores.models["family"]]
    trial = trial_of(named(scores, names))
    assert families_to_try(trial.sources, trial.targets) == ["small"]
    assert families_to_try(trial.sources, trial.targets, most=0) == []
