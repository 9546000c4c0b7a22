"""What is planted is found, what is not there is not, and order says nothing."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.audit import audit
from fewbench.scores import Scale, from_arrays
from fewbench.testing import simulate

ABOUT_MODELS = {"same-name", "identical", "near-twins", "kin", "unlike-all", "one-option"}


def kinds(found):
    return {finding.kind for finding in found.findings}


def test_nothing_is_found_among_independent_models(make):
    wrong = kin = 0
    for seed in range(20):
        found = audit(make(seed=seed))
        assert not kinds(found) & (ABOUT_MODELS - {"kin"})
        assert not [f for f in found.findings if f.severity == "problem" and f.kind != "wrong-way"]
        wrong += "wrong-way" in kinds(found)
        kin += "kin" in kinds(found)
        assert found.table["distinct"] > 27
    assert wrong <= 3
    assert kin <= 2


def test_the_same_name_twice(make):
    def plant(values, names):
        names[1], names[3], names[5] = "lab/model-00#2", "LAB__model-02", " lab/model-04"
        values[[1, 3]] = values[[0, 2]]

    finding = audit(make(plant)).of_kind("same-name")
    assert finding.severity == "problem"
    assert finding.groups == (
        ("lab/model-00", "lab/model-00#2"),
        ("lab/model-02", "LAB__model-02"),
        ("lab/model-04", " lab/model-04"),
    )
    assert finding.what.startswith("3 models more than once under one name")
    assert finding.what.endswith("2 with identical rows")
    assert finding.spare == ("lab/model-00#2", "LAB__model-02", " lab/model-04")
    assert [row[3] > 0 for row in finding.table.rows] == [False, False, True]


def test_identical_rows_under_other_names(make):
    def plant(values, names):
        values[[7, 8]] = values[2]

    found = audit(make(plant))
    assert found.of_kind("identical").groups == (("lab/model-02", "lab/model-07", "lab/model-08"),)
    assert found.of_kind("same-name") is None
    assert found.of_kind("near-twins") is None  # said once
    assert found.table["distinct"] == pytest.approx(28, abs=0.7)


def test_identical_on_what_both_ran(make):
    def plant(values, names):
        values[7] = values[2]
        values[2, :40] = np.nan
        values[7, 300:] = np.nan

    assert audit(make(plant)).of_kind("identical").groups == (("lab/model-02", "lab/model-07"),)


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_models_that_are_all_right_are_no_copies(make, level):
    def plant(values, names):
        values[[3, 4, 5]] = level

    assert not kinds(audit(make(plant))) & {"identical", "near-twins", "same-name"}


def test_few_items_make_no_copies():
    """Of 40 models on 6 items many have the same row by chance."""
    for seed in range(5):
        assert not kinds(audit(simulate(40, 6, 2, seed=seed))) & {"identical", "near-twins"}


def test_near_twins(make):
    def plant(values, names):
        rng = np.random.default_rng(1)
        for at, of in ((11, 10), (12, 10), (21, 20)):
            other = rng.random(400) < 0.06
            values[at] = np.where(other, 1 - values[of], values[of])

    found = audit(make(plant))
    finding = found.of_kind("near-twins")
    assert finding.groups == (
        ("lab/model-10", "lab/model-11", "lab/model-12"),
        ("lab/model-20", "lab/model-21"),
    )
    assert finding.spare == ("lab/model-11", "lab/model-12", "lab/model-21")
    assert set(found.alike) == set(finding.groups)
    assert found.of_kind("identical") is None


def test_a_chain_does_not_join_its_ends(make):
    """Each model takes two thirds of the one before: neighbours are alike, ends are not."""

    def plant(values, names):
        rng = np.random.default_rng(3)
        for at in range(1, 8):
            values[at] = np.where(rng.random(400) < 0.7, values[at - 1], values[at])

    found = audit(make(plant))
    assert max(len(group) for group in found.of_kind("near-twins").groups) <= 4


def test_kin_in_other_families_are_named(make):
    def plant(values, names):
        rng = np.random.default_rng(1)
        for at in range(1, 5):
            values[at] = np.where(rng.random(400) < 0.7, values[0], values[at])

    families = [f"f{m // 3}" for m in range(30)]
    finding = audit(make(plant, families=families)).of_kind("kin")
    assert set(finding.groups[0]) == {f"lab/model-0{m}" for m in range(5)}
    assert "1 group holds more than one named family" in finding.what


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


def test_a_model_that_guesses(make):
    def plant(values, names):
        values[4] = np.random.default_rng(9).random(400) < 0.3

    finding = audit(make(plant)).of_kind("unlike-all")
    assert finding.ids == ("lab/model-04",)


def test_a_model_that_always_says_the_same():
    scores = simulate(20, 200, seed=1, options=4)
    array = np.stack([scores.probabilities.of_model(m) for m in range(20)])
    array[5] = 0.0
    array[5, :, 1] = 1.0
    table = from_arrays(
        scores.values, models=scores.model_ids, probabilities=array, n_options=[4] * 200
    )
    finding = audit(table).of_kind("one-option")
    assert finding.table.rows == (("model-05", 2, 1.0),)


def test_random_gaps_are_random_and_patterned_ones_are_not(make):
    def at_random(values, names):
        values[np.random.default_rng(0).random(values.shape) < 0.05] = np.nan

    def patterned(values, names):
        values[2, :90] = np.nan

    found = audit(make(at_random))
    assert {"missing", "missing-at-random"} <= kinds(found)
    found = audit(make(patterned))
    finding = found.of_kind("missing-not-at-random")
    assert finding.severity == "caution"
    assert "'task-0': lab/model-02 lacks 90% of it" in finding.what
    where = found.of_kind("missing").what
    assert "90 cells (0.8%) were not run, in 1 model of 30 and on 90 items of 400" in where
    assert "lab/model-02 lacks most: 22% of the items, 100% of all missing cells" in where


def test_gaps_on_hard_items(make):
    def plant(values, names):
        hard = np.argsort(np.delete(values, 2, axis=0).mean(axis=0))[:60]
        values[2, hard] = np.nan

    what = audit(make(plant)).of_kind("missing-not-at-random").what
    assert "what lab/model-02 lacks is harder for the others than what it ran, by" in what


def test_what_methods_need(make):
    fits = {fit.method: fit for fit in audit(make(models=30)).methods}
    assert fits["random"].verdict == "fits"
    assert fits["kmedoids-ridge"].verdict == "fits"
    assert fits["disco-pds-rf"].verdict == "works, but"
    assert any("no option probabilities" in why for why in fits["disco-pds-rf"].because)
    fits = {fit.method: fit for fit in audit(make(models=8, tasks=1)).methods}
    assert fits["random"].verdict == "fits"
    assert "one task" in fits["random-stratified"].because[0]
    assert fits["kmedoids-ridge"].verdict == "works, but"
    fits = {fit.method: fit for fit in audit(make(models=1)).methods}
    assert fits["random-ridge"].verdict == "cannot"
    assert fits["random"].verdict == "fits"


def test_a_method_that_cannot_does_refuse(make):
    from fewbench.errors import MethodError
    from fewbench.evaluation.replay import replay
    from fewbench.methods import CATALOGUE

    table = make(models=3, items=40)
    one, target = table.take(models=[0]), table.take(models=[2])
    for fit in audit(one).methods:
        method = CATALOGUE[fit.method].method
        if fit.verdict == "cannot":
            with pytest.raises(MethodError):
                replay(method, one, target, 5, 0)
        else:
            replay(method, one, target, 5, 0)


def test_dates_and_families(make):
    dates = ["2024-01-31"] * 28 + ["soon", ""]
    found = audit(make(dates=dates, families=["a"] * 20 + ["b"] * 8 + [""] * 2))
    said = found.of_kind("dates")
    assert said.what == "dates for 28 of 30 models, 2024-01-31 to 2024-01-31; 1 date cannot be read"
    assert said.ids == ("lab/model-28",)
    assert found.of_kind("families").what == (
        "2 families, the largest a (20), b (8); 2 models without one"
    )


def test_unequal_option_counts():
    finding = audit(simulate(20, 60, options=5)).of_kind("unequal-options")
    assert finding.what.startswith("items have 2 to 5 options")
    assert sum(n for _, n in finding.table.rows) == 60


def test_scores_are_shown_on_the_user_s_scale():
    values = 100 * np.random.default_rng(0).random((12, 40))
    names = [f"m{i}" for i in range(12)]
    best = names[int(values.mean(axis=1).argmin())]
    found = audit(from_arrays(values, models=names, scale=Scale(0, 100, lower_is_better=True)))
    assert f"best is {best}" in found.of_kind("spread").what
    np.testing.assert_allclose(found.numbers["scores"], values.mean(axis=1), atol=1e-4)
    np.testing.assert_allclose(found.numbers["item_mean"], values.mean(axis=0), atol=1e-4)


@given(st.integers(0, 10_000), st.booleans())
def test_the_order_of_models_and_items_changes_no_finding(seed, continuous):
    scores = simulate(14, 60, seed=seed, missing=0.05, continuous=continuous)
    values = scores.values.copy()
    values[3], values[:, 5] = values[8], 1.0
    scores = replace(scores, values=values)
    rng = np.random.default_rng(seed)
    other = scores.take(models=rng.permutation(14), items=rng.permutation(60))
    for one, two in zip(
        sorted(audit(scores).findings, key=lambda f: f.kind),
        sorted(audit(other).findings, key=lambda f: f.kind),
        strict=True,
    ):
        assert (one.kind, one.severity, one.what, one.advice) == (
            two.kind, two.severity, two.what, two.advice,
        )  # fmt: skip
        assert set(one.ids) == set(two.ids)
        assert set(one.spare) == set(two.spare)
        assert {frozenset(g) for g in one.groups} == {frozenset(g) for g in two.groups}


@pytest.mark.parametrize(
    "values",
    [
        [[1.0]],
        [[0.0, 1.0, 1.0]],
        [[1.0], [0.0], [1.0]],
        [[1.0, 1.0], [1.0, 1.0]],
        [[0.0] * 5] * 12,
        [[0.5, 0.5], [0.25, np.nan], [np.nan, 1.0]],
        [[np.nan, 1.0], [0.0, np.nan]],
    ],
)
def test_tiny_and_constant_tables(values):
    found = audit(from_arrays(values, models=[f"m{i}" for i in range(len(values))]))
    assert not {"identical", "near-twins", "wrong-way"} & kinds(found)
    assert "NaN" not in json.dumps(found.to_dict(), allow_nan=False)
    assert found.methods


def test_json_is_plain_and_nothing_is_cut(make):
    def plant(values, names):
        values[:, :150] = 0.0
        values[1] = values[0]
        values[2, 200:230] = np.nan

    found = audit(make(plant))
    read = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert read["format"] == 1
    constant = next(f for f in read["findings"] if f["kind"] == "constant")
    assert len(constant["ids"]) >= 150
    assert len(read["numbers"]["item_mean"]) == len(read["numbers"]["items"]) == 400
    order = [finding["severity"] for finding in read["findings"]]
    assert order == sorted(order, key=["problem", "caution", "fact"].index)
