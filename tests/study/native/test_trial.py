"""A trial sees what the method sees, and runs it with natives of one's choice."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from fewbench.errors import MethodError
from fewbench.evaluation.replay import replay
from fewbench.methods.adaptive.tailored import AS_PRINTED, Tailored
from fewbench.study import Split
from fewbench.study.native import by_count, by_nearness, by_share, open_trial
from fewbench.testing import simulate

METHODS = [
    Tailored(),
    AS_PRINTED,
    Tailored(company="sources"),
    Tailored(natives="own", inclusive=False),
    Tailored(natives="dynamic", metric="cosine"),
    Tailored(natives="all", metric="correlation", anchored=False),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.describe())
@pytest.mark.parametrize("kind", [{}, {"continuous": True}, {"missing": 0.1}], ids=str)
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


def test_other_natives_make_another_estimate(plain):
    near, far = plain.order[:, :6], plain.order[:, -6:]
    one, other = plain.run("near", list(near)), plain.run("far", list(far))
    assert (one["estimate"] - other["estimate"]).abs().max() > 0.01
    assert one["agreement"].mean() > other["agreement"].mean()


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


@pytest.mark.parametrize("make", [by_share, by_nearness, lambda t: by_count(t, [4])])
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


def test_a_budget_that_does_not_fit_is_said():
    scores = simulate(30, 20)
    with pytest.raises(MethodError, match="a budget of 21 items"):
        open_trial(scores, Split(np.arange(20), np.arange(20, 30)), Tailored(), 21, 0)
