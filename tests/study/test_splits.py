"""Who is a source and who a target, in every kind of split."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbench.errors import StudyError
from fewbench.study import KINDS, SplitSettings, make_split
from fewbench.testing import simulate

TABLE = simulate(21, 12, seed=5)
ROLES = ["target" if m in (2, 9, 20) else "source" for m in range(21)]


@pytest.fixture
def roles(with_models):
    return with_models(TABLE, role=ROLES)


@pytest.fixture
def holes(with_models):
    """Two models with missing cells: the strongest and the youngest."""
    table = with_models(TABLE, role=["source"] * 20 + ["target"])
    values = table.values.copy()
    values[[TABLE.full_scores().argmax(), TABLE.models["date"].argmax()], :3] = np.nan
    return replace(table, values=values)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("resample", [False, True])
def test_sources_and_targets_never_overlap(roles, kind, resample):
    for repeat in range(5):
        split = make_split(roles, SplitSettings(kind, resample=resample), 0, repeat)
        assert not set(split.sources) & set(split.targets)
        assert len(split.sources) >= 2
        assert len(split.targets) >= 1
        for side in (split.sources, split.targets):
            assert side.tolist() == sorted(set(side.tolist()))
            assert set(side.tolist()) <= set(range(21))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("resample", [False, True])
def test_splits_follow_from_seed_and_repeat(roles, kind, resample):
    def draw(seed, repeat):
        split = make_split(roles, SplitSettings(kind, resample=resample), seed, repeat)
        return split.sources.tolist(), split.targets.tolist()

    assert draw(1, 2) == draw(1, 2)
    draws_anew = resample or kind in ("random", "group")
    assert (len({str(draw(0, repeat)) for repeat in range(6)}) > 1) == draws_anew
    assert (len({str(draw(seed, 0)) for seed in range(6)}) > 1) == draws_anew


@pytest.mark.parametrize(("share", "count"), [(0.25, 5), (0.5, 10), (0.01, 1), (0.9, 19)])
def test_shares_are_of_all_models(share, count):
    for kind in ("random", "chronological", "performance"):
        split = make_split(TABLE, SplitSettings(kind, share), 0, 0)
        assert (len(split.sources), len(split.targets)) == (21 - count, count)


def test_every_takes_every_kth():
    split = make_split(TABLE, SplitSettings("every", 0.1), 0, 0)
    assert split.targets.tolist() == [9, 19]
    assert len(split.sources) == 19


def test_given_follows_the_roles(roles):
    split = make_split(roles, SplitSettings("given"), 0, 0)
    assert split.targets.tolist() == [2, 9, 20]


def test_performance_takes_the_strongest():
    full = TABLE.full_scores()
    split = make_split(TABLE, SplitSettings("performance", 0.3), 0, 0)
    assert full[split.targets].min() >= full[split.sources].max()


def test_the_gap_is_between_sources_and_targets():
    full = TABLE.full_scores()
    split = make_split(TABLE, SplitSettings("performance", 0.3, gap=0.2), 0, 0)
    assert (len(split.sources), len(split.targets)) == (21 - 6 - 4, 6)
    left = np.setdiff1d(np.arange(21), np.concatenate([split.sources, split.targets]))
    assert full[split.sources].max() <= full[left].min()
    assert full[left].max() <= full[split.targets].min()


def test_a_gap_that_leaves_no_sources_is_an_error():
    with pytest.raises(StudyError, match="0 sources"):
        make_split(simulate(4, 4), SplitSettings("performance", 0.1, gap=0.89), 0, 0)


def test_only_the_performance_split_has_a_gap():
    with pytest.raises(StudyError, match="split random cannot have a gap"):
        SplitSettings("random", 0.3, gap=0.2)


def test_chronological_takes_the_newest():
    dates = TABLE.models["date"].to_numpy(dtype=str)
    split = make_split(TABLE, SplitSettings("chronological", 0.2), 0, 0)
    assert len(split.targets) == 4
    assert max(dates[split.sources]) <= min(dates[split.targets])


def test_groups_stay_whole():
    families = TABLE.models["family"].to_numpy()
    for repeat in range(10):
        split = make_split(TABLE, SplitSettings("group", 0.25), 0, repeat)
        assert not set(families[split.sources]) & set(families[split.targets])
        assert len(split.sources) + len(split.targets) == 21
        assert 4 <= len(split.targets) <= 6  # families of two, a share of about 5


def test_groups_by_another_column(with_models):
    table = with_models(TABLE, lab=["a"] * 7 + ["b"] * 7 + ["c"] * 7)
    split = make_split(table, SplitSettings("group", 0.3, group_by="lab"), 0, 0)
    assert split.targets.tolist() in (list(range(7)), list(range(7, 14)), list(range(14, 21)))


def test_a_group_larger_than_the_share_is_taken_whole_or_not_at_all(with_models):
    table = with_models(TABLE, family=["a"] * 15 + ["b"] * 3 + ["c"] * 3)
    sizes = {len(make_split(table, SplitSettings("group"), 0, r).targets) for r in range(20)}
    assert sizes <= {3, 6, 15}


def test_resampling_keeps_to_its_side():
    whole = make_split(TABLE, SplitSettings("chronological", 0.4), 0, 0)
    drawn = make_split(TABLE, SplitSettings("chronological", 0.4, resample=True), 0, 0)
    assert set(drawn.sources) < set(whole.sources)
    assert set(drawn.targets) <= set(whole.targets)


@pytest.mark.parametrize("kind", KINDS)
def test_models_with_a_few_holes_are_targets(with_models, kind):
    table = simulate(21, 100, seed=5)
    values = table.values.copy()
    values[:, ::25] = np.nan
    values[:, 3] = table.values[:, 3]
    values[3, :] = np.nan
    values[3, 3] = 1.0
    table = with_models(replace(table, values=values), role=ROLES)
    split = make_split(table, SplitSettings(kind, 0.4), 0, 0)
    assert len(split.targets) >= 3
    assert 3 not in split.targets


@pytest.mark.parametrize("kind", KINDS)
def test_incomplete_models_are_never_targets(holes, kind):
    incomplete = np.flatnonzero(np.isnan(holes.values).any(axis=1))
    assert len(incomplete) >= 1
    for repeat in range(8):
        split = make_split(holes, SplitSettings(kind, 0.4), 0, repeat)
        assert not set(split.targets) & set(incomplete)
        if kind == "random":
            assert set(incomplete) <= set(split.sources)


def test_a_given_target_with_missing_cells_is_an_error(holes, with_models):
    at = int(np.flatnonzero(np.isnan(holes.values).any(axis=1))[0])
    roles = ["target" if m == at else "source" for m in range(21)]
    with pytest.raises(StudyError, match=holes.model_ids[at]):
        make_split(with_models(holes, role=roles), SplitSettings("given"), 0, 0)


@pytest.mark.parametrize(
    ("kind", "columns", "said"),
    [
        ("given", {}, "no column 'role'"),
        ("given", {"role": ["source"] * 20 + ["tarqet"]}, "'tarqet'"),
        ("given", {"role": ["source"] * 21}, "0 complete targets"),
        ("given", {"role": ["target"] * 20 + ["source"]}, "1 sources"),
        ("chronological", {"date": ["2024-01-01"] * 20 + [" "]}, "1 models have no date"),
        ("group", {"family": ["a"] * 21}, "one group"),
        ("group", {"family": ["a"] * 20 + [""]}, "no group"),
    ],
)
@pytest.mark.parametrize("resample", [False, True])
def test_what_a_split_needs_is_named(with_models, kind, columns, said, resample):
    with pytest.raises(StudyError, match=said):
        make_split(with_models(TABLE, **columns), SplitSettings(kind, resample=resample), 0, 0)


@pytest.mark.parametrize(("kind", "lost"), [("chronological", "date"), ("group", "family")])
def test_a_missing_column_is_named(kind, lost):
    table = replace(TABLE, models=TABLE.models.drop(columns=lost))
    with pytest.raises(StudyError, match=f"no column '{lost}'") as error:
        make_split(table, SplitSettings(kind), 0, 0)
    assert error.value.hint


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "nope"},
        {"targets": 0.0},
        {"targets": 1.0},
        {"targets": float("nan")},
        {"gap": -0.1},
        {"gap": 0.8},
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(StudyError):
        SplitSettings(**wrong)


@given(
    st.integers(4, 30),
    st.floats(0.01, 0.9),
    st.floats(0, 0.9),
    st.sampled_from(["random", "every", "chronological", "performance", "group"]),
    st.integers(0, 50),
)
@settings(max_examples=80, deadline=None)
def test_any_share_gives_two_sides_or_an_error(n_models, targets, gap, kind, seed):
    if gap >= 1 - targets:
        return
    table = simulate(n_models, 4, seed=seed)
    try:
        split = make_split(table, SplitSettings(kind, targets, gap), seed, 0)
    except StudyError:
        return
    assert not set(split.sources) & set(split.targets)
    if kind == "performance":
        left = n_models - len(split.sources) - len(split.targets)
        assert left == round(gap * n_models)


def test_settings_are_described():
    assert SplitSettings().describe() == "random, 25% targets"
    assert (
        SplitSettings("performance", 0.3, 0.2, resample=True).describe()
        == "performance, 30% targets, gap 20%, resampled"
    )
    assert SplitSettings("group", group_by="lab").describe() == "group, 25% targets, by lab"
    assert SplitSettings("given").describe() == "given"
