"""Items that go the wrong way, tell nothing or are solved by all."""

from dataclasses import replace

import numpy as np
import pytest

from fewbench.checks import audit
from fewbench.checks.duplicates import kinship
from fewbench.scores import Scale, from_arrays
from fewbench.testing import simulate


def kinds(found):
    return {finding.kind for finding in found.findings}


def test_wrong_keys(make):
    planted = {f"item-{i}" for i in (3, 50, 51, 399)}

    def plant(values, names):
        at = [3, 50, 51, 399]
        rng = np.random.default_rng(0)  # clear items: the better half is right
        order = np.argsort(np.argsort(values.mean(axis=1)))
        for i in at:
            values[:, i] = (order < len(values) / 2) ^ (rng.random(len(values)) < 0.05)

    found = audit(make(plant, models=80))
    finding = found.of_kind("wrong-way")
    assert planted <= set(finding.ids)
    assert len(finding.ids) <= 6
    assert finding.severity == "problem"
    assert finding.table.header[:2] == ("item", "task")


def test_wrong_keys_show_what_strong_models_choose():
    scores = simulate(80, 120, seed=3, options=4)
    values = scores.values.copy()
    values[:, 100] = 1 - (scores.full_scores() > np.median(scores.full_scores()))
    found = audit(replace(scores, values=values)).of_kind("wrong-way")
    row = next(row for row in found.table.rows if row[0] == "item-100")
    assert found.table.header[-1] == "strong models choose"
    assert row[-1].startswith("option ")


def test_constant_and_saturated_items(make):
    def plant(values, names):
        values[:, :5] = 0.0
        values[:, 5:7] = 1.0
        values[:, 7] = 1.0
        values[3, 7] = 0.0

    found = audit(make(plant))
    assert set(found.of_kind("constant").ids) >= {f"item-{i}" for i in range(7)}
    assert found.of_kind("constant").what.endswith(
        "7 that no model gets right, 2 that every model gets right"  # two by themselves
    )
    assert "item-7" in found.of_kind("saturated").ids
    assert "item-7" not in found.of_kind("constant").ids


def test_nearly_saturated_is_nineteen_of_twenty(make):
    def plant(values, names):
        values[:, :3] = 1.0
        values[0, 0] = values[:2, 1] = values[:3, 2] = 0.0

    saturated = audit(make(plant, models=40)).of_kind("saturated")
    assert {"item-0", "item-1"} <= set(saturated.ids)
    assert "item-2" not in saturated.ids
    assert "a mean of 95% or better, but not the same from all" in saturated.what


def test_items_that_tell_nothing_are_not_listed_as_suspects():
    """Where no item agrees with the others, those that agree least are not worth a look."""
    for seed in range(5):
        values = (np.random.default_rng(seed).random((60, 1000)) < 0.5).astype(float)
        found = audit(from_arrays(values, models=[f"m{i}" for i in range(60)]))
        suspects = found.of_kind("suspect-keys")
        assert suspects is None
        assert found.numbers["item_suspect"] == []


def test_items_that_agree_least_are_listed_worst_first(make):
    """Keys turned of items that tell little: too weak for a verdict, but to be looked at."""

    def plant(values, names):
        order = np.argsort(np.argsort(values.mean(axis=1)))
        rng = np.random.default_rng(3)
        for i in range(12):
            values[:, i] = rng.random(30) < np.where(order < 15, 0.75, 0.25)

    found = audit(make(plant, seed=3))
    finding = found.of_kind("suspect-keys")
    r = [float(row[3]) for row in finding.table.rows]
    assert len({f"item-{i}" for i in range(12)} & {*finding.ids[:12]}) > 8
    assert len(finding.ids) <= 30
    assert r == sorted(r)
    assert r != sorted(r, key=lambda value: -value)
    assert [f"item-{i}" for i in found.numbers["item_suspect"]] == list(finding.ids)


def test_quirks_of_a_lineage_are_no_wrong_keys():
    """Twenty lineages of ten models, half the items unrelated to ability, every key right."""
    named = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        ability = rng.normal(0, 1.2, (20, 1)).repeat(10, 0) + rng.normal(0, 0.2, (200, 1))
        quirk = rng.normal(0, 1.2, (20, 400)).repeat(10, 0)
        slope = np.where(np.arange(400) < 200, 0.0, 1.0)
        p = 1 / (1 + np.exp(-(slope * ability + quirk - rng.normal(0, 1, 400))))
        values = (rng.random(p.shape) < p).astype(float)
        scores = from_arrays(values, models=[f"m{i}" for i in range(200)])
        named += audit(scores).of_kind("wrong-way") is not None
        kin = kinship(scores)
        assert kin.independent.sum() < kin.distinct
    assert named <= 1


@pytest.mark.parametrize("lower", [False, True])
def test_constant_items_are_worst_or_best_on_any_scale(lower):
    values = 10_000 * np.random.default_rng(0).random((12, 40))
    values[:, 0], values[:, 1:3], values[:, 3] = 0, 10_000, 5_000
    scale = Scale(0, 10_000, lower_is_better=lower)
    found = audit(from_arrays(values, models=[f"m{i}" for i in range(12)], scale=scale))
    worst, best = (2, 1) if lower else (1, 2)
    assert found.of_kind("constant").what.endswith(
        f": {worst} worst from all, {best} best from all, 1 in between"
    )
    assert "gets right" not in found.of_kind("constant").advice


def test_new_items_that_few_models_ran_are_not_constant():
    values = simulate(40, 100, seed=1).values.copy()
    values[:, :5] = 1.0
    values[2:, 60:] = np.nan
    values[:2, 60:] = 0.0
    found = audit(from_arrays(values, models=[f"m{i}" for i in range(40)])).of_kind("constant")
    assert {"item-60", "item-99"}.isdisjoint(found.ids)
    assert len(found.ids) >= 5
