"""A trial sees what the method sees; natives of one's choice, their errors and intervals."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from fewbench.errors import StudyError
from fewbench.study import Split
from fewbench.study.metrics import point_metrics
from fewbench.testing import simulate
from fewbench.uncertainty.replay import replay
from fewbench_papers.tailoredbench.tailored import Tailored
from papers.methods.tailored import TailoredVariant
from tailoredbench.trials import (
    by_count,
    by_nearness,
    by_share,
    counts_to_try,
    measure,
    open_trial,
)

from .conftest import halves, planted

METHODS = [
    Tailored(),
    Tailored(printed=True),
    Tailored(company="sources"),
    TailoredVariant(natives="own", calibrate=False),
    TailoredVariant(natives="dynamic", metric="cosine"),
    TailoredVariant(natives="all", metric="correlation", anchored=False),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.describe())
@pytest.mark.parametrize("kind", [{}, {"missing": 0.1}], ids=str)
def test_with_the_method_s_own_natives_a_run_is_the_method_s(method, kind):
    whole = simulate(40, 120, seed=5, **{k: v for k, v in kind.items() if k != "missing"})
    sources = simulate(40, 120, seed=5, **kind).take(np.arange(28))
    values = np.concatenate([sources.values, whole.values[28:]])
    scores = replace(whole, values=values)
    split = Split(np.arange(28), np.arange(28, 40))
    trial = open_trial(scores, split, method, 18, 4)
    ran = trial.run("own", trial.natives)
    said = replay(method, trial.sources, trial.targets, 18, 4)
    assert ran["estimate"].tolist() == said.scores.tolist()
    assert ran["truth"].tolist() == trial.targets.full_scores().tolist()
    for own, row in zip(trial.natives, trial.order, strict=True):
        assert np.array_equal(own, np.sort(row[: len(own)]))
        assert np.array_equal(np.sort(row), np.arange(28))


def test_agreement_is_on_all_items(plain):
    ran = plain.run("x", [np.array([2])] * 20)
    same = (plain.sources.values[2] == plain.targets.values).mean(axis=1)
    assert ran["agreement"].tolist() == pytest.approx(same.tolist())


def test_the_last_steps_are_the_method_itself(plain):
    own = plain.run("own", plain.natives)["estimate"].tolist()
    shares, counts = by_share(plain), by_count(plain, [3, 30])
    assert shares[shares["step"] == "100%"]["estimate"].tolist() == own
    assert counts[counts["step"] == "as found"]["estimate"].tolist() == own


def test_shares_are_nested_parts_of_the_natives(plain, monkeypatch):
    steps = []

    def note(_, step, natives):
        steps.append(natives)
        return pd.DataFrame({"step": [step]})

    monkeypatch.setattr(type(plain), "run", note)
    by_share(plain)
    for small, large in pairwise(steps):
        assert all(set(a) < set(b) for a, b in zip(small, large, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(steps[-1], plain.natives, strict=True))
    # At random: neither the first of the table nor the nearest.
    few = len(steps[0][0])
    assert any(not np.array_equal(a, b[:few]) for a, b in zip(steps[0], plain.natives, strict=True))
    assert any(not np.array_equal(a, b) for a, b in zip(steps[0], plain.nearest(few), strict=True))


@pytest.mark.parametrize("make", [by_nearness])
def test_the_same_seed_gives_the_same_and_the_order_of_targets_does_not_matter(make):
    scores = simulate(36, 100, seed=1)
    split = Split(np.arange(26), np.arange(26, 36))
    turned = Split(split.sources, split.targets[::-1].copy())
    one, again, other = (
        make(open_trial(scores, s, Tailored(), 16, 7)) for s in (split, split, turned)
    )
    assert one.equals(again)
    key = ["step", "target"]
    a, b = (f.set_index(key)["estimate"].sort_index() for f in (one, other))
    assert np.allclose(a, b, atol=1e-12)
    another = make(open_trial(scores, split, Tailored(), 16, 8))
    assert not np.allclose(one["estimate"], another["estimate"])


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


@pytest.mark.slow
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


def test_repeats_with_other_targets():
    one = runs_of({"a": np.array([0.1, 0.2]), "b": np.array([0.2, 0.2])}, np.array([0.1, 0.3]))
    two = runs_of({"a": np.array([0.5]), "b": np.array([0.9])}, np.array([0.5]), 1)
    steps = measure(pd.concat([one, two.assign(target="else")]), "a").steps
    assert steps.at["a", "mae"] == pytest.approx((0.05 + 0.0) / 2)
    assert steps.at["b", "kendall_tau_gap"] != steps.at["b", "kendall_tau_gap"]  # b ties all


@pytest.mark.slow
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


def test_too_few_sources_and_impossible_numbers_are_said():
    scores = simulate(14, 40)
    trial = open_trial(scores, Split(np.arange(8), np.arange(8, 14)), Tailored(), 12, 0)
    with pytest.raises(StudyError, match=r"8 sources.*5 parts"):
        by_nearness(trial)
    with pytest.raises(StudyError, match=r"9 native.*8"):
        by_count(trial, [9])
    assert counts_to_try(8) == [1, 2, 3, 5, 6, 8]
    assert counts_to_try(1) == [1]
