"""Copies, near-duplicates and kin: planted ones are found, names are told apart."""

import numpy as np
import pytest

from fewbench.checks import audit
from fewbench.checks.duplicates import kinship
from fewbench.scores import from_arrays
from fewbench.testing import simulate


def kinds(found):
    return {finding.kind for finding in found.findings}


def near(values, at, of, changed=0.06):
    other = np.random.default_rng(at).random(values.shape[1]) < changed
    values[at] = np.where(other, 1 - values[of], values[of])


def test_the_same_name_twice(make):
    def plant(values, names):
        names[1], names[3], names[5] = "lab/model-00#2", "LAB__model-02", " lab/model-04"
        values[[1, 3]] = values[[0, 2]]

    found, found_in = audit(make(plant)), make(plant).values
    finding = found.of_kind("same-name")
    assert finding.severity == "problem"
    assert finding.groups == (
        ("lab/model-00", "lab/model-00#2"),
        ("lab/model-02", "LAB__model-02"),
    )
    assert finding.what.startswith("2 models listed several times")
    assert finding.what.endswith("and identical rows")
    assert finding.spare == ("lab/model-00#2", "LAB__model-02")
    other = found.of_kind("same-name-differs")
    assert other.severity == "caution"
    assert other.groups == (("lab/model-04", " lab/model-04"),)
    assert other.spare == ()
    assert other.table.rows[0][2] == (found_in[4] != found_in[5]).sum() > 0


def test_checkpoints_of_one_name_are_no_duplicates(make):
    def plant(values, names):
        names[:] = [f"step#{100 * m}" for m in range(30)]
        values[9] = values[3]

    found = audit(make(plant))
    assert found.of_kind("same-name").spare == ("step#900",)
    (group,) = found.of_kind("same-name-differs").groups
    assert len(group) == 29


def test_parts_of_one_run_are_to_be_imported_as_one(make):
    """Two halves that share nothing, or some items with the same answers: neither is to spare."""
    for first, second in ((slice(200, None), slice(0, 200)), (slice(250, None), slice(0, 200))):

        def plant(values, names, first=first, second=second):
            names[:2] = ["a", "a#2"]
            values[1] = values[0]
            values[0, first] = np.nan
            values[1, second] = np.nan

        found = audit(make(plant))
        finding = found.of_kind("same-name-parts")
        assert finding.groups == (("a", "a#2"),)
        assert finding.spare == ()
        assert "import them under one name" in finding.advice
        assert found.of_kind("same-name") is None
        assert found.of_kind("same-name-differs") is None
        assert ("a", "a#2") in found.alike


def test_of_three_of_one_name_only_what_is_covered_is_to_spare(make):
    def plant(values, names):
        names[:3] = ["a", "a#2", "a#3"]
        values[1] = values[0]
        values[1, 50:] = np.nan  # part of the first
        values[2] = 1 - values[0]

    found = audit(make(plant))
    assert found.of_kind("same-name").spare == ("a#2",)
    assert found.of_kind("same-name-differs").groups == (("a", "a#3"),)


def test_identical_rows_under_other_names(make):
    def plant(values, names):
        values[[7, 8]] = values[2]

    scores = make(plant)
    found = audit(scores)
    assert found.of_kind("identical").groups == (("lab/model-02", "lab/model-07", "lab/model-08"),)
    assert found.of_kind("same-name") is None
    assert found.of_kind("near-duplicates") is None  # said once
    assert kinship(scores).distinct == pytest.approx(28, abs=0.7)
    assert found.table["independent"] == 28


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_models_that_are_all_right_are_no_copies(make, level):
    def plant(values, names):
        values[[3, 4, 5]] = level

    assert not kinds(audit(make(plant))) & {"identical", "near-duplicates", "same-name"}


def test_few_items_make_no_copies():
    """Of 40 models on 6 items many have the same row by chance."""
    for seed in range(5):
        assert not kinds(audit(simulate(40, 6, 2, seed=seed))) & {"identical", "near-duplicates"}


def test_near_duplicates(make):
    def plant(values, names):
        rng = np.random.default_rng(1)
        for at, of in ((11, 10), (12, 10), (21, 20)):
            other = rng.random(400) < 0.06
            values[at] = np.where(other, 1 - values[of], values[of])

    found = audit(make(plant))
    finding = found.of_kind("near-duplicates")
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
    assert max(len(group) for group in found.of_kind("near-duplicates").groups) <= 4


def test_kin_in_other_families_are_named(make):
    def plant(values, names):
        rng = np.random.default_rng(1)
        for at in range(1, 5):
            values[at] = np.where(rng.random(400) < 0.7, values[0], values[at])

    families = [f"f{m // 3}" for m in range(30)]
    finding = audit(make(plant, families=families)).of_kind("related")
    assert set(finding.groups[0]) == {f"lab/model-0{m}" for m in range(5)}
    assert "1 group spans several families" in finding.what


def test_families_that_hold_the_near_duplicates_settle_the_matter(make):
    def plant(values, names):
        near(values, 11, 10)
        near(values, 21, 20)

    own = [f"f{m}" for m in range(30)]
    held = [*own]
    held[11], held[21] = "f10", "f20"
    finding = audit(make(plant, families=held)).of_kind("near-duplicates")
    assert finding.severity == "fact"
    assert "each group is in one family" in finding.what
    assert "--families" not in finding.advice
    for families in (own, [*held[:11], "", *held[12:]], [""] * 30):
        finding = audit(make(plant, families=families)).of_kind("near-duplicates")
        assert finding.severity == "caution"
        assert "hold them together" not in finding.what


def test_families_come_from_copies_and_near_duplicates_not_from_kin(make):
    """A lineage at a correlation of about 0.4 is named, but is no family."""

    def plant(values, names):
        rng = np.random.default_rng(1)
        for at in range(1, 6):
            values[at] = np.where(rng.random(400) < 0.65, values[0], values[at])
        near(values, 21, 20)
        values[25] = values[24]
        names[28:] = ["lab/x", "lab/x#2"]

    found = audit(make(plant))
    kin = {frozenset(group) for group in found.of_kind("related").groups}
    twins = {frozenset(group) for group in found.of_kind("near-duplicates").groups}
    assert kin - twins
    assert {frozenset(group) for group in found.alike} == twins | {
        frozenset(("lab/x", "lab/x#2")),
        frozenset(("lab/model-24", "lab/model-25")),
    }


def test_a_model_with_many_copies_does_not_hide_the_others(make):
    """Twenty copies would pass for what items are like, and others for their opposite."""

    def plant(values, names):
        values[1:21] = values[0]
        near(values, 29, 28, 0.1)

    scores = make(plant, items=1000)
    found = audit(scores)
    assert ("lab/model-28", "lab/model-29") in found.of_kind("near-duplicates").groups
    assert kinship(scores).distinct == pytest.approx(9.4, abs=0.4)


def test_copies_among_scores_in_between():
    """Wherever in the range the scores lie, and also where most are the lowest or the highest."""
    rng = np.random.default_rng(0)
    bleu = np.clip(rng.beta(2, 8, (20, 300)), 0, 0.49)
    for values in (
        bleu,
        1 - bleu,
        bleu + 0.25,
        np.maximum(bleu - 0.2, 0),
        np.minimum(bleu + 0.8, 1),
    ):
        scores = values.copy()
        scores[1] = scores[0]
        found = audit(from_arrays(scores, models=[f"m{i}" for i in range(20)]))
        assert found.of_kind("identical").groups == (("m0", "m1"),)
