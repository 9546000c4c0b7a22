"""What is planted is found, what is not there is not, and order says nothing."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.checks import audit
from fewbench.checks.duplicates import kinship
from fewbench.scores import Scale, from_arrays
from fewbench.testing import simulate

ABOUT_MODELS = {
    "same-name", "identical", "near-duplicates", "related", "other-range", "unlike-all",
    "one-option", "answer-alike",
}  # fmt: skip


def kinds(found):
    return {finding.kind for finding in found.findings}


def test_nothing_is_found_among_independent_models(make):
    wrong = kin = 0
    for seed in range(20):
        scores = make(seed=seed)
        found = audit(scores)
        assert not kinds(found) & (ABOUT_MODELS - {"related"})
        assert not [f for f in found.findings if f.severity == "problem" and f.kind != "wrong-way"]
        wrong += "wrong-way" in kinds(found)
        kin += "related" in kinds(found)
        assert kinship(scores).distinct > 27
        assert found.table["independent"] == 30
    assert wrong <= 3
    assert kin <= 2


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


def test_copies_are_no_sources_of_their_own(make):
    """Thirty rows of ten models are ten, for what is said and for every method."""

    def plant(values, names):
        values[10:20] = values[20:] = values[:10]

    found = audit(make(plant))
    (why,) = next(fit.because for fit in found.methods if fit.method == "random-ridge")
    assert why.startswith("10 of 20 independent source models: ")
    said = found.of_kind("independent-sources")
    assert said.severity == "caution"
    assert "30 models of 10 families count as 10 independent source models" in said.what
    assert audit(make()).of_kind("independent-sources").severity == "fact"


@pytest.mark.parametrize(("models", "severity"), [(19, "caution"), (20, "fact")])
def test_twenty_independent_sources_are_enough(make, models, severity):
    assert audit(make(models=models)).of_kind("independent-sources").severity == severity


def test_a_method_says_once_what_it_lacks(make):
    """Each lack once, at its strictest, with what becomes of all parts."""
    (options, few) = next(
        fit.because for fit in audit(make()).methods if fit.method == "disco-pds-rf"
    )
    assert options == (
        "no option probabilities: PDS of right and wrong alone has two values: use JSD, "
        "and the signature is right and wrong alone"
    )
    assert few.startswith("30 of 40 independent source models: ")
    for fit in audit(make(models=3)).methods:
        lacks = [why.split(":")[0] for why in fit.because]
        assert len(set(lacks)) == len(lacks)
        assert sum("independent source models" in lack for lack in lacks) <= 1


def test_small_tasks_are_named():
    sizes = [29, 30, 141]
    tasks = [name for name, n in zip("abc", sizes, strict=True) for _ in range(n)]
    values = (np.random.default_rng(0).random((12, 200)) < 0.5).astype(float)
    found = audit(from_arrays(values, models=[f"m{i}" for i in range(12)], tasks=tasks))
    assert found.of_kind("tasks").ids == ("a",)
    assert "3 tasks of 29 to 141 items, the largest c" in found.of_kind("tasks").what
    assert found.of_kind("tasks").what.endswith("1 task has fewer than 30 items")


def test_one_and_equal_are_said_as_such():
    one = audit(from_arrays([[1.0], [0.0]], models=["a", "b"]))
    assert one.of_kind("tasks").what == "1 item of one task, all"
    two = audit(from_arrays([[1.0, 1.0]] * 3, models=list("abc"), tasks=["x", "y"]))
    assert two.of_kind("tasks").what.startswith("2 tasks of 1 item each")
    assert two.of_kind("range").what == "all models score 100.0%"


@pytest.mark.parametrize(("score", "near"), [(0.94, False), (0.96, True)])
def test_the_ceiling_is_nineteen_of_twenty(score, near):
    values = np.zeros((6, 100))
    values[0, : int(100 * score)] = 1.0
    values[1:, :50] = 1.0
    found = audit(from_arrays(values, models=[f"m{i}" for i in range(6)]))
    assert ("near the ceiling" in found.of_kind("range").advice) == near


def test_no_number_has_an_exponent():
    values = 10_000 * np.random.default_rng(0).random((12, 40))
    scale = Scale(0, 10_000, lower_is_better=True)
    found = audit(from_arrays(values, models=[f"m{i}" for i in range(12)], scale=scale))
    low = f"{values.mean(axis=1).min():,.0f}"
    assert found.of_kind("range").what.startswith(f"scores range from {low} to ")
    assert not [f for f in found.findings if "e+" in f.what + f.advice]


def test_advice_on_unequal_options_can_be_followed():
    from fewbench.methods import find_method

    advice = audit(simulate(20, 60, options=5)).of_kind("unequal-options").advice
    find_method(next(word for word in advice.split() if word.startswith("jsd")))


def test_a_method_that_cannot_does_refuse(make):
    from fewbench.errors import MethodError, MissingExtraError
    from fewbench.methods import CATALOGUE
    from fewbench.uncertainty.replay import replay

    table = make(models=3, items=40)
    one, target = table.take(models=[0]), table.take(models=[2])
    for fit in audit(one).methods:
        method = CATALOGUE[fit.method].method
        if fit.verdict == "cannot":
            with pytest.raises((MethodError, MissingExtraError)):
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
    assert f"best model is {best}" in found.of_kind("range").what
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
    assert not {"identical", "near-duplicates", "wrong-way"} & kinds(found)
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
