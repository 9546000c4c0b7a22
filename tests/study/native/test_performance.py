"""Errors, rankings and their intervals."""

import math

import numpy as np
import pandas as pd
import pytest

from fewbench.errors import StudyError
from fewbench.methods.adaptive.tailored import Tailored
from fewbench.scores import from_arrays
from fewbench.study import Split
from fewbench.study.metrics import point_metrics
from fewbench.study.native import (
    by_count,
    by_nearness,
    by_share,
    counts_to_try,
    measure,
    open_trial,
)
from fewbench.testing import simulate

from .conftest import halves, planted


def runs_of(estimates, truth, repeat=0):
    return pd.concat(
        [
            pd.DataFrame(
                {"step": step, "repeat": repeat, "target": [f"t{k}" for k in range(len(truth))],
                 "truth": truth, "estimate": said}
            )
            for step, said in estimates.items()
        ],
        ignore_index=True,
    )  # fmt: skip


def test_numbers_are_those_of_compare_and_repeats_weigh_the_same():
    rng = np.random.default_rng(0)
    truth = rng.random(30).round(1)  # with ties
    said = {"a": rng.random(30).round(1), "b": truth}
    two = {"a": rng.random(30), "b": truth}
    three = {"a": rng.random(30), "b": truth}
    every = (said, two, three)
    found = measure(pd.concat([runs_of(one, truth, r) for r, one in enumerate(every)]), "b").steps
    each = [point_metrics(truth, one["a"], truth) for one in every]
    for name in ("mae", "kendall_tau"):
        assert found.at["a", name] == pytest.approx(np.mean([m[name] for m in each]))
    assert found.at["b", "mae"] == 0
    assert found.at["b", "kendall_tau"] == 1
    assert found.at["a", "mae_gap"] == pytest.approx(found.at["a", "mae"])
    assert found.loc["b", ["mae_gap", "mae_gap_low", "kendall_tau_gap_high"]].tolist() == [0, 0, 0]


def test_intervals_cover_the_mean_error_where_errors_of_a_repeat_move_together():
    """Each repeat's errors share a factor, as they share the items drawn."""
    rng = np.random.default_rng(1)
    inside = 0
    for k in range(60):
        truth = rng.random(40)
        runs = [
            runs_of({"a": truth + rng.exponential(0.05, 40) * rng.uniform(0.4, 1.6)}, truth, r)
            for r in range(6)
        ]
        row = measure(pd.concat(runs), "a", seed=k).steps.loc["a"]
        inside += row["mae_low"] <= 0.05 <= row["mae_high"]
    assert inside >= 48  # of 60, 90 % stated; targets alone resampled hold it in about 25


def test_two_repeats_have_no_intervals():
    truth = np.linspace(0.1, 0.9, 9)
    runs = pd.concat([runs_of({"a": truth, "b": truth + 0.1}, truth, r) for r in (0, 1)])
    steps = measure(runs, "a").steps
    assert steps.at["b", "mae_gap"] == pytest.approx(0.1)
    assert steps[[c for c in steps if c.endswith(("_low", "_high"))]].isna().all(axis=None)


def test_gaps_are_paired():
    rng = np.random.default_rng(2)
    truth = rng.random(40)
    miss = rng.exponential(0.1, 40)
    said = {"a": truth + miss, "b": truth + miss + 0.01}
    steps = measure(pd.concat([runs_of(said, truth, r) for r in range(3)]), "a").steps
    assert steps.at["b", "mae_gap_low"] == pytest.approx(0.01)
    assert steps.at["b", "mae_gap_high"] == pytest.approx(0.01)
    assert steps.at["b", "mae_high"] - steps.at["b", "mae_low"] > 0.02


def test_one_target_has_an_error_and_no_ranking():
    row = measure(runs_of({"a": np.array([0.4])}, np.array([0.5])), "a").steps.loc["a"]
    assert row["mae"] == pytest.approx(0.1)
    assert math.isnan(row["kendall_tau"])
    assert math.isnan(row["mae_low"])


def test_repeats_with_other_targets():
    one = runs_of({"a": np.array([0.1, 0.2]), "b": np.array([0.2, 0.2])}, np.array([0.1, 0.3]))
    two = runs_of({"a": np.array([0.5]), "b": np.array([0.9])}, np.array([0.5]), 1)
    steps = measure(pd.concat([one, two.assign(target="else")]), "a").steps
    assert steps.at["a", "mae"] == pytest.approx((0.05 + 0.0) / 2)
    assert steps.at["b", "kendall_tau_gap"] != steps.at["b", "kendall_tau_gap"]  # b ties all


def test_where_families_think_alike_the_nearest_part_is_the_best():
    """With as many sources in each part as the family has, the nearest part is the family."""
    runs = []
    for seed in range(4):
        scores = planted(n_families=3, size=36, n_items=240, seed=seed, skill=[-0.8, 0.0, 0.8])
        part = by_nearness(open_trial(scores, halves(scores), Tailored(), 25, 0), 3)
        runs.append(part.assign(repeat=seed, target=part["target"] + f"-{seed}"))
    found = measure(pd.concat(runs), "0–33%").steps
    assert found["agreement"].iloc[0] > found["agreement"].iloc[1:].max() + 0.2
    assert (found["mae_gap_low"].iloc[1:] > 0).all()
    assert (found["natives"] == 18).all()


def test_where_all_sources_are_alike_neither_number_nor_nearness_matters_much():
    """Sources drawn from one distribution: more are not worse, and no part is better."""
    rng = np.random.default_rng(6)
    n_models, n_items = 90, 300
    easy = rng.normal(size=n_items) * 1.5
    skill = rng.normal(size=n_models) * 0.05
    chance = 1 / (1 + np.exp(-(easy + skill[:, None])))
    values = (rng.random(chance.shape) < chance).astype(float)
    scores = from_arrays(values, models=[f"m{k}" for k in range(n_models)])
    trial = open_trial(scores, Split(np.arange(60), np.arange(60, 90)), Tailored(), 30, 0)
    counts = measure(by_count(trial, [2, 60]).assign(repeat=0), "60").steps
    assert counts.at["2", "mae_gap"] > 0
    shares = measure(by_share(trial, (0.1, 1.0)).assign(repeat=0), "100%").steps
    assert shares.at["10%", "mae_gap"] > 0
    parts = measure(by_nearness(trial).assign(repeat=0), "0–20%").steps
    assert np.ptp(parts["agreement"]) < 0.04
    # In τ, for noise about the level is common to all targets.
    assert abs(parts["kendall_tau_gap"].iloc[-1]) < 0.25


def test_too_few_sources_and_impossible_numbers_are_said():
    scores = simulate(14, 40)
    trial = open_trial(scores, Split(np.arange(8), np.arange(8, 14)), Tailored(), 12, 0)
    with pytest.raises(StudyError, match="8 sources cannot be divided by nearness into 5 parts"):
        by_nearness(trial)
    with pytest.raises(StudyError, match="9 native sources, where there are 8"):
        by_count(trial, [9])
    assert counts_to_try(8) == [1, 2, 3, 5, 6, 8]
    assert counts_to_try(1) == [1]
