"""Intervals: exact where they say so, and fitted on none of those they are judged on."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from fewbench.errors import FewbenchError, MethodError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.intervals import (
    MOST_JUDGED,
    Calibration,
    _folds,
    cross_fit,
    exact_interval,
    expected_random_error,
    sampling_interval,
    source_groups,
    wilson_interval,
)
from fewbench.methods import Prediction, Subset, find_method
from fewbench.methods.prediction.mean import Mean
from fewbench.methods.static import StaticSession
from fewbench.testing import simulate


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("n_items", [1, 2, 5, 8, 12])
def test_the_exact_interval_covers_at_its_level_whatever_the_population(n_items, level):
    for n in range(1, n_items + 1):
        ends = [sampling_interval(h / n, n, n_items, level, binary=True) for h in range(n + 1)]
        low, high = np.array(ends).T
        for right in range(n_items + 1):
            covered = (low <= right / n_items + 1e-12) & (high >= right / n_items - 1e-12)
            chance = hypergeom.pmf(np.arange(n + 1), n_items, right, n)
            assert chance @ covered >= level - 1e-9, (n, right)


@given(st.integers(1, 60), st.floats(0, 1), st.floats(0, 1), st.sampled_from([0.01, 0.9, 0.99]))
def test_the_exact_interval_is_what_neither_test_rejects(n_items, share, hit, level):
    n = max(1, round(share * n_items))
    hits = round(hit * n)
    tail = (1 - level) / 2
    kept = [
        right
        for right in range(hits, n_items - n + hits + 1)
        if hypergeom.sf(hits - 1, n_items, right, n) > tail
        and hypergeom.cdf(hits, n_items, right, n) > tail
    ]
    low, high = exact_interval(hits, n, n_items, level)
    assert (round(low * n_items), round(high * n_items)) == (kept[0], kept[-1])


def test_wilson_is_that_of_textbooks():
    # Brown, Cai & DasGupta 2001; the values of statsmodels' proportion_confint(method="wilson").
    for hits, n, low, high in [
        (8, 10, 0.4901625, 0.9433178),
        (0, 10, 0.0, 0.2775328),
        (50, 100, 0.4038315, 0.5961685),
    ]:
        said = wilson_interval(hits / n, n, 10**12, 0.95)
        np.testing.assert_allclose(said, (low, high), atol=1e-6)


@given(st.floats(0, 1), st.integers(1, 99), st.floats(0.05, 0.99))
def test_wilson_holds_the_mean_and_narrows_with_the_share_that_was_run(mean, n, level):
    ends = [wilson_interval(mean, n, n_items, level) for n_items in (100, 200, 10**9)]
    for low, high in ends:
        assert 0 <= low <= mean + 1e-12
        assert mean - 1e-12 <= high <= 1
    widths = [high - low for low, high in ends]
    assert widths == sorted(widths)
    # Half of a benchmark of 100 tells as much of it as 99 of an endless one.
    half, endless = wilson_interval(mean, 50, 100, level), wilson_interval(mean, 99, 10**12, level)
    np.testing.assert_allclose(half, endless, atol=1e-9)


@given(st.floats(0, 1), st.integers(1, 50), st.booleans(), st.floats(0.01, 0.99))
def test_a_full_sample_leaves_nothing_open(mean, n_items, binary, level):
    assert sampling_interval(mean, n_items, n_items, level, binary=binary) == (mean, mean)
    assert wilson_interval(mean, n_items, n_items, level) == (mean, mean)
    assert expected_random_error(mean, n_items, n_items) == 0


@pytest.mark.parametrize("level", [0, 1, -0.5, 90, math.nan])
def test_a_level_is_a_share(level):
    with pytest.raises(FewbenchError, match="use a share"):
        sampling_interval(0.5, 5, 10, level, binary=True)
    with pytest.raises(FewbenchError, match="use a share"):
        Calibration(np.ones(3), np.arange(3)).half_width(level)


@pytest.mark.parametrize(("right", "n", "n_items"), [(30, 10, 100), (450, 50, 1000), (5, 20, 40)])
def test_the_error_of_random_sampling_is_that_of_a_simulation(right, n, n_items):
    drawn = np.random.default_rng(0).hypergeometric(right, n_items - right, n, 100_000) / n
    error = np.abs(drawn - right / n_items).mean()
    assert expected_random_error(right / n_items, n, n_items) == pytest.approx(error, rel=0.12)


# -- past errors ---------------------------------------------------------------------------------


def test_the_half_width_is_the_conformal_quantile_of_single_sources():
    errors = np.random.default_rng(0).permutation(np.arange(1, 20) / 100)
    calibration = Calibration(errors, np.arange(19))
    for level in (0.5, 0.9, 0.95):
        expected = np.sort(errors)[math.ceil(20 * level - 1e-9) - 1]
        assert calibration.half_width(level) == (expected, None)


def test_groups_weigh_the_same_whatever_their_size():
    # Nine groups of one source with small errors, and one of a hundred with large ones.
    errors = np.concatenate([np.full(9, 0.01), np.full(100, 0.5)])
    groups = np.concatenate([np.arange(9), np.full(100, 9)])
    calibration = Calibration(errors, groups)
    assert calibration.half_width(0.8) == (0.01, None)
    assert calibration.half_width(0.9) == (0.5, None)
    assert calibration.mean_error == pytest.approx((9 * 0.01 + 0.5) / 10)


def test_too_few_groups_fall_back_on_sources_and_say_so():
    errors = np.arange(30) / 100
    half, warning = Calibration(errors, np.arange(30) // 6).half_width(0.9)
    assert half == pytest.approx(0.27)
    assert "only 5 families" in warning
    assert Calibration(errors, np.arange(30) // 6).half_width(0.8)[1] is None


def test_too_few_sources_leave_only_what_is_known():
    half, warning = Calibration(np.arange(8) / 100, np.arange(8)).half_width(0.9)
    assert half == math.inf
    assert "needs 9 sources that answered all items, there are 8 (0 others)" in warning
    empty = Calibration(np.empty(0), np.empty(0, dtype=np.intp))
    assert empty.half_width(0.5)[0] == math.inf
    assert empty.mean_error is None


@given(st.integers(0, 999), st.integers(9, 60), st.floats(0.05, 0.9))
def test_a_higher_level_is_never_narrower(seed, n, level):
    rng = np.random.default_rng(seed)
    calibration = Calibration(rng.random(n), np.arange(n) % 20)
    assert calibration.half_width(level)[0] <= calibration.half_width(level + 0.05)[0]


@dataclass(frozen=True)
class Spy:
    """Predicts one half, and notes who was estimated from whom, by which seed."""

    plain_sampling = False
    seen: list = field(default_factory=list)
    least: int = 1

    def start(self, scores, budget, seed, targets):
        if scores.n_models < self.least:
            raise MethodError("too few sources")
        self.seen.append((scores, tuple(targets), seed))
        inner = find_method("random").start(scores, budget, seed, targets)
        inner.predict = lambda targets, tasks=True: Prediction(np.full(len(targets), 0.5))
        return inner

    def describe(self):
        return "spy"


def test_a_source_is_never_judged_by_itself_or_its_family_or_its_copies():
    table = simulate(24, 30, options=3, seed=1)
    values = table.values.copy()
    values[20] = values[3]  # a copy in another family joins both
    table = replace(table, values=values)
    groups = dict(zip(table.model_ids, source_groups(table), strict=True))
    spy = Spy()
    calibration = cross_fit(spy, table, 6, 0)
    judged = [target for _, targets, _ in spy.seen for target in targets]
    assert sorted(judged) == table.model_ids
    assert calibration.unused == 0
    assert groups["model-20"] == groups["model-03"] == groups["model-21"] == groups["model-02"]
    for sources, targets, _ in spy.seen:
        assert not {groups[name] for name in sources.model_ids} & {groups[t] for t in targets}
        assert len(sources.model_ids) + len(targets) == 24
    assert len({seed for _, _, seed in spy.seen}) == len(spy.seen)
    known = np.full(24, 0.5)  # within what six answers leave possible
    assert (calibration.errors <= np.abs(known - table.full_scores()) + 1e-9).all()
    assert calibration.groups.tolist() == list(groups.values())


def test_a_source_with_missing_cells_is_learned_from_but_not_judged():
    table = simulate(20, 200, seed=1)
    values = table.values.copy()
    values[3, 0] = np.nan  # nearly complete
    values[4, :20] = np.nan
    spy = Spy()
    calibration = cross_fit(spy, replace(table, values=values), 6, 0)
    judged = {target for _, targets, _ in spy.seen for target in targets}
    assert judged == set(table.model_ids) - {"model-04"}
    assert len(calibration.errors) == 19
    assert calibration.unused == 1
    assert any("model-04" in sources.model_ids for sources, _, _ in spy.seen)
    assert any(sources.has_missing for sources, _, _ in spy.seen), "the sources are as they were"
    wholly = cross_fit(Spy(), simulate(20, 30, missing=0.3), 6, 0)
    assert (len(wholly.errors), wholly.unused) == (0, 20)


@pytest.mark.parametrize(("n_models", "n_families"), [(12, 2), (12, 1), (3, 3), (3, 2)])
def test_few_families_are_left_out_as_far_as_can_be(n_models, n_families):
    table = simulate(n_models, 40, seed=3)
    names = [f"f{m % n_families}" for m in range(n_models)]
    table = replace(table, models=table.models.assign(family=names))
    spy = Spy()
    calibration = cross_fit(spy, table, 6, 0)
    assert len(calibration.errors) == n_models
    assert len(np.unique(calibration.groups)) == n_families
    if n_families > 1:
        for sources, targets, _ in spy.seen:
            outside = {names[int(t[-2:])] for t in targets}
            assert not outside & set(sources.models["family"])
    if n_models > 9:
        assert f"only {n_families} families" in calibration.half_width(0.9)[1]


def test_a_fold_that_leaves_the_method_too_few_sources_is_left_out():
    table = simulate(10, 20, seed=2)
    assert len(cross_fit(Spy(least=9), table, 5, 0).errors) == 0
    assert len(cross_fit(Spy(), table.take(models=[0, 1]), 5, 0).errors) == 0


@given(st.lists(st.integers(1, 9), min_size=2, max_size=30), st.integers(0, 99))
def test_folds_keep_groups_whole_and_are_of_like_size(sizes, seed):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    folds = min(5, len(sizes))
    fold_of = _folds(groups, len(sizes), folds, seed)
    assert all(len(set(fold_of[groups == group])) == 1 for group in range(len(sizes)))
    filled = np.bincount(fold_of, minlength=folds)
    assert filled.min() > 0
    assert filled.max() - filled.min() <= max(sizes)
    assert np.array_equal(fold_of, _folds(groups, len(sizes), folds, seed))


def coverage(method, average, repeats, seed0=0, **kind):
    hits, level = [], 0.9
    for seed in range(seed0, seed0 + repeats):
        table = simulate(60, 120, seed=seed, **kind).averaged(average)
        rows = np.arange(60)
        sources, targets = table.take(models=rows[:44]), table.take(models=rows[44:])
        evaluation = Evaluation(sources, method, 20, targets.model_ids, seed)
        evaluation.tell_table(targets)
        for estimate, truth in zip(
            evaluation.estimate(level).values(), targets.full_scores(), strict=True
        ):
            hits.append(estimate.interval.low - 1e-9 <= truth <= estimate.interval.high + 1e-9)
    return float(np.mean(hits))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "average", "kind"),
    [
        ("random", "micro", {}),
        ("random", "micro", {"continuous": True}),
        ("random", "macro", {}),
        ("random-stratified", "macro", {}),
        ("random-ridge", "micro", {}),
        ("kmedoids-ridge", "macro", {}),
        ("disco-jsd-ridge", "micro", {"options": 4}),
        ("disco-pds-knn", "micro", {"options": 4}),
    ],
)
def test_intervals_cover_new_models_of_new_families(method, average, kind):
    """At 90 %, over 25 tables of 16 targets; four standard errors below that for kin in pairs."""
    assert coverage(method, average, 25, **kind) > 0.84


class _Learner:
    """A method that adapts, in name: it asks for the first items and says their mean."""

    plain_sampling = False

    def describe(self):
        return "learner"

    def start(self, scores, budget, seed, targets):
        first = Subset(items=tuple(scores.item_ids[:budget]))
        return StaticSession(Mean(), scores, first, seed, targets)


def test_methods_that_adapt_are_judged_on_a_hundred_sources_at_most():
    table = simulate(130, 30, seed=2)
    found = cross_fit(_Learner(), table, 5, 0)
    assert (len(found.errors), found.unused) == (MOST_JUDGED, 30)
    again = cross_fit(_Learner(), table, 5, 0)
    assert np.array_equal(found.errors, again.errors)
    assert len(cross_fit(find_method("random-ridge"), table, 5, 0).errors) == 130
