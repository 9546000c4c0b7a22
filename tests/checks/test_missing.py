"""Random gaps are called random, patterned ones are not."""

import numpy as np
import pytest

from fewbench.checks import audit
from fewbench.scores import Scale, from_arrays


def kinds(found):
    return {finding.kind for finding in found.findings}


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
    assert "task-0: lab/model-02 lacks 90% of it" in finding.what
    where = found.of_kind("missing").what
    assert "90 cells (0.8%) were not run, in 1 model of 30 and on 90 items of 400" in where
    assert "lab/model-02 lacks most: 22% of the items, 100% of all missing cells" in where


def test_gaps_on_hard_items(make):
    def plant(values, names):
        hard = np.argsort(np.delete(values, 2, axis=0).mean(axis=0))[:60]
        values[2, hard] = np.nan

    what = audit(make(plant)).of_kind("missing-not-at-random").what
    assert (
        "lab/model-02 lacks is harder for the others than what it ran: they score 38.2 pp" in what
    )
    assert what.endswith("worse there")


@pytest.mark.slow
def test_a_few_gaps_are_called_random(make):
    """One to three cells of each model, on a benchmark where most items are right from all."""
    patterned = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p = 1 / (1 + np.exp(-(rng.normal(4, 1, (20, 1)) - rng.normal(0, 1, 1000))))
        values = (rng.random(p.shape) < p).astype(float)
        for row in values:
            row[rng.choice(1000, rng.integers(1, 4), replace=False)] = np.nan
        found = audit(from_arrays(values, models=[f"m{i}" for i in range(20)]))
        patterned += "missing-not-at-random" in kinds(found)
    assert patterned <= 3


def test_a_model_that_lacks_a_twentieth_is_judged(make):
    def plant(values, names):
        values[2, ::20] = np.nan
        values[3, 5::19] = np.nan

    finding = audit(make(plant)).of_kind("missing")
    assert finding.severity == "caution"
    assert "1 model lacks more than 5%: methods learn from such models" in finding.advice


def test_an_item_that_no_model_ran_is_named(make):
    def plant(values, names):
        values[:, 7] = np.nan

    found = audit(make(plant)).of_kind("missing")
    assert found.severity == "caution"
    assert "; no model ran 1 item: 'item-7'" in found.what
    assert "counts as the mean of its task, except with fewbench" in found.advice


@pytest.mark.parametrize(
    ("scale", "shown"),
    [
        (Scale(0, 1), "they score 29.8 pp"),
        (Scale(0, 10_000, lower_is_better=True), "they score 2,"),
        (Scale(1, 7), "they score 1."),
    ],
)
def test_differences_are_told_on_the_user_s_scale(scale, shown):
    rng = np.random.default_rng(0)
    unit = rng.random((12, 400))
    hard = np.argsort(unit.mean(axis=0))[:60]
    unit[:, hard] *= 0.6
    unit[2, hard] = np.nan
    names = [f"m{i}" for i in range(12)]
    found = audit(from_arrays(scale.from_unit(unit), models=names, scale=scale))
    what = found.of_kind("missing-not-at-random").what
    assert "what m2 lacks is harder for the others than what it ran: " in what
    assert shown in what
    assert what.endswith(" worse there")
    ((_, _, _, difference, _),) = found.of_kind("missing").table.rows
    others = np.delete(scale.from_unit(unit), 2, axis=0).mean(axis=0)
    expected = others[hard].mean() - np.delete(others, hard).mean()
    assert difference == pytest.approx(expected, abs=1e-3)
    assert (difference > 0) == scale.lower_is_better


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("binary", [True, False])
def test_items_and_pairs_without_answers_bring_no_warning_of_numpy(binary):
    chance = np.random.default_rng(4)
    values = chance.random((12, 60))
    values = (values > 0.4).astype(float) if binary else values.round(3)
    values[:, 5] = np.nan  # an item that no model ran
    values[10:] = values[0]
    values[10, :30] = values[11, 30:] = np.nan  # alike to the first, never on the same item
    found = audit(from_arrays(values, models=[f"m{at}" for at in range(12)]))
    assert str(found)
    assert found.to_json()


def test_groups_of_items_that_the_same_models_ran_are_named(make):
    def plant(values, names):
        values[4:, 100:150] = np.nan

    what = audit(make(plant)).of_kind("missing").what
    names = "lab/model-00, lab/model-01, lab/model-02 and 1 more"
    assert f"item-100, item-101, item-102 and 47 more only by {names}" in what
