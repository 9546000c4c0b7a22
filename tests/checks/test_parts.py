"""Parts of a table that were not run, or are the same items under other ids."""

import numpy as np
import pytest

from fewbench.checks import audit, drop
from fewbench.scores import Scale, from_arrays


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("worst", [True, False])
def test_a_task_that_a_model_lost(make, worst, lower):
    """A strong model with only the worst score in a task; a weak one with only the best."""
    scale = Scale(0, 100, lower_is_better=lower)

    def plant(values, names):
        order = np.argsort(values.mean(axis=1))
        at = order[-3] if worst else order[2]
        values[at, 100:200] = not worst
        plant.model = names[at]
        values[:] = scale.from_unit(values)

    scores = make(plant, scale=scale)
    found = audit(scores)
    finding = found.of_kind("one-sided-part")
    assert finding.severity == "problem"
    assert finding.ids == (plant.model,)
    assert finding.table.rows[0][:4] == (plant.model, "task-1", 100, "worst" if worst else "best")
    assert f"Without them {plant.model} changes most" in finding.advice
    left, said = drop(scores, found, ["one-sided"])
    row = left.model_ids.index(plant.model)
    assert said == (f"one-sided: 100 scores left out, of {plant.model}",)
    assert np.flatnonzero(~left.is_run[row]).tolist() == [*range(100, 200)]
    assert left.is_run.sum() == scores.is_run.sum() - 100
    assert audit(left).of_kind("one-sided-part") is None


def test_a_run_that_stopped_and_went_on_as_zeros(make):
    def plant(values, names):
        row = values[np.argsort(values.mean(axis=1))[20]]
        row[249], row[250:] = 1, 0

    finding = audit(make(plant, tasks=1)).of_kind("one-sided-part")
    assert finding.table.rows[0][1:3] == ("task-0 (a part)", 150)


def test_weak_models_and_hard_tasks_lost_nothing(make):
    def plant(values, names):
        values[:, :100] *= np.random.default_rng(0).random((30, 100)) < 0.02  # hard
        values[np.argsort(values.mean(axis=1))[:2]] = 0
        values[0, 0] = values[1, 399] = 1

    assert audit(make(plant)).of_kind("one-sided-part") is None


def test_models_without_a_common_item(make):
    values = make().values
    both = np.full((30, 800), np.nan)
    both[:12, :400], both[12:, 400:] = values[:12], values[12:]
    items = [*(f"q{n}" for n in range(400)), *(f"Q{n}" for n in range(400))]
    names = [f"m{n:02}" for n in range(30)]
    finding = audit(from_arrays(both, models=names, items=items)).of_kind("no-common-items")
    assert finding.severity == "problem"
    assert [row[1:3] for row in finding.table.rows] == [(18, 400), (12, 400)]


def test_two_parts_of_one_run(make):
    def plant(values, names):
        values[1] = values[0]
        values[0, ::2] = values[1, 1::2] = np.nan

    finding = audit(make(plant)).of_kind("halves")
    assert finding.groups == (("lab/model-00", "lab/model-01"),)


def test_names_that_look_alike(make):
    def plant(values, names):
        names[3], names[4] = "lab/Some-Model-1.5", "lab/some_model-1-5"

    found = audit(make(plant)).of_kind("same-name-differs")
    assert found.groups == (("lab/Some-Model-1.5", "lab/some_model-1-5"),)


def test_scores_in_between_are_described():
    values = np.random.default_rng(0).choice([0, 0.25, 1], (20, 60), p=[0.5, 0.2, 0.3])
    finding = audit(from_arrays(values, models=[f"m{n}" for n in range(20)])).of_kind("in-between")
    assert finding.severity == "fact"
    assert "3 distinct values from 0% to 100%" in finding.what
    assert [row[0] for row in finding.table.rows] == ["0%", "100%", "25%"]
    assert sum(row[1] for row in finding.table.rows) == pytest.approx(1)
    assert audit(from_arrays(values == 1, models=[f"m{n}" for n in range(20)])).of_kind(
        "in-between"
    ) is None  # fmt: skip
