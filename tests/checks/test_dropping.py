"""Only what is named is left out, and it is said."""

import numpy as np
import pytest

from fewbench.checks import DROPS, audit, drop, with_families
from fewbench.errors import ScoresError
from fewbench.scores import from_arrays


def dirty(values, names):
    values[1] = values[0]
    names[1] = "lab/model-00#2"
    values[5] = values[4]
    values[4, :10] = np.nan
    values[:, 20:23] = 1.0
    other = np.random.default_rng(2).random(400) < 0.05
    values[8] = np.where(other, 1 - values[7], values[7])


def test_duplicates_leave_the_most_complete_of_each(make):
    scores = make(dirty)
    left, said = drop(scores, audit(scores), ["duplicates"])
    assert set(scores.model_ids) - set(left.model_ids) == {"lab/model-00#2", "lab/model-04"}
    assert said == ("duplicates: 2 models left out: lab/model-00#2, lab/model-04",)
    assert left.n_items == 400
    again = audit(left)
    assert again.of_kind("same-name") is None
    assert again.of_kind("identical") is None
    assert again.of_kind("near-duplicates") is not None


def test_all_kinds_together(make):
    scores = make(dirty)
    left, said = drop(scores, audit(scores), list(DROPS))
    constant = np.ptp(scores.values, axis=0) == 0
    assert constant[20:23].all()
    assert left.n_models == 27
    assert set(scores.item_ids) - set(left.item_ids) >= {"item-20", "item-21", "item-22"}
    assert audit(left.take(models=range(27))).of_kind("wrong-way") is None
    assert len(said) == 8
    assert said[-1] == f"a full score is now of {left.n_items} items, not 400"
    assert said[-3:-1] == ("odd: none found", "incomplete: nothing left out")


def test_nothing_named_nothing_dropped(make):
    scores = make(dirty)
    left, said = drop(scores, audit(scores), [])
    assert left.equals(scores)
    assert said == ()


def test_items_that_only_a_dropped_model_ran_go_with_it(make):
    def plant(values, names):
        values[1] = values[0]
        values[1, :10] = 1 - values[0, :10]
        values[:, 17] = np.nan
        values[1, 17] = 1.0
        values[1, 100:120] = np.nan

    scores = make(plant)
    left, said = drop(scores, audit(scores), ["near-duplicates"])
    assert "lab/model-01" not in left.model_ids
    assert "item-17" not in left.item_ids
    assert said[1] == "1 item left out that no remaining model ran: item-17"


def test_a_model_that_ran_only_dropped_items_goes_with_them(make):
    def plant(values, names):
        values[:, :30] = 1.0
        values[5, 30:] = np.nan

    scores = make(plant)
    left, said = drop(scores, audit(scores), ["constant"])
    assert "lab/model-05" not in left.model_ids
    assert said[-2] == "1 model left out that ran no remaining item: lab/model-05"


def test_incomplete_says_what_it_costs(make):
    """The audit says it before, and what is left has every cell, whatever the order of words."""

    def plant(values, names):
        values[[1, 2], [7, 9]] = np.nan
        values[4, 50:90] = np.nan  # a tenth: it is never judged, and would cost 40 items
        values[:, 20] = 1.0

    scores = make(plant)
    found = audit(scores)
    cost = "1 of 30 models and 2 of 400 items"
    assert found.of_kind("missing").advice.endswith(f"--drop incomplete would leave out {cost}")
    left, said = drop(scores, found, ["incomplete", "constant"])
    assert said[1] == f"incomplete: {cost} left out"
    assert not left.has_missing
    assert "lab/model-04" not in left.model_ids
    assert not {"item-7", "item-9", "item-20"} & set(left.item_ids)


def test_duplicates_with_cells_of_their_own_stay(make):
    """Copies that complement each other, rows of one name that differ: nothing is thrown away."""

    def plant(values, names):
        names[:6] = ["a", "a#2", "b", "b#2", "c", "d"]
        values[1] = values[0]
        values[0, :200] = values[1, 200:] = np.nan  # two halves
        values[5] = values[4]
        values[4, :20] = values[5, -20:] = np.nan  # each has what the other lacks
        names[10:] = [f"step#{100 * m}" for m in range(20)]

    scores = make(plant)
    left, said = drop(scores, audit(scores), ["duplicates"])
    assert left.equals(scores)
    assert said == ("duplicates: none found",)


def test_of_near_duplicates_none_are_left(make):
    """Leaving some out changes what items are like, and with that who is a twin of whom."""
    rng = np.random.default_rng(1)
    again = 0
    for seed in range(4):

        def plant(values, names, seed=seed):
            for at in range(1, 22):  # a chain, each a little further from the first
                values[at] = np.where(rng.random(400) < 0.72, values[at - 1], values[at])

        scores = make(plant, seed=seed)
        found = audit(scores)
        left, said = drop(scores, found, ["near-duplicates"])
        assert audit(left).of_kind("near-duplicates") is None
        gone = scores.n_models - left.n_models
        assert said[0].startswith(f"near-duplicates: {gone} models left out: ")
        again += gone > len(found.of_kind("near-duplicates").spare)
    assert again > 0


def test_mistakes_are_named():
    scores = from_arrays([[1, 1], [1, 1]], models=["a", "b"])
    with pytest.raises(ScoresError, match="'dupes'"):
        drop(scores, audit(scores), ["dupes"])
    with pytest.raises(ScoresError, check=lambda error: error.kind == "too-few"):
        drop(scores, audit(scores), ["constant"])


def test_training_runs_become_families(make):
    def run(values, names):
        names[:5] = [f"A/step-{step}" for step in range(5)]
        values[5] = values[0]  # a copy of a checkpoint, under another name

    named, said = with_families(scores := make(run), audit(scores))
    assert named.models["family"].tolist()[:7] == ["A"] * 6 + ["lab/model-06"]
    assert said == "families: 1 of more than one model, 24 models in families of one"


def test_groups_become_families(make):
    scores = make(dirty)
    named, said = with_families(scores, audit(scores))
    family = named.models["family"]
    assert family["lab/model-00#2"] == family["lab/model-00"] == "lab/model-00"
    assert family["lab/model-05"] == "lab/model-04"
    assert family["lab/model-08"] == "lab/model-07"
    assert family["lab/model-20"] == "lab/model-20"
    assert said == "families: 3 of more than one model, 24 models in families of one"
    with pytest.raises(ScoresError, check=lambda error: error.kind == "taken"):
        with_families(named, audit(named))
