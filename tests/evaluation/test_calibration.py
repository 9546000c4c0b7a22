"""Past errors of a method: fitted on none of the sources they are judged on."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from fewbench.decide.held_out import measure
from fewbench.evaluation.calibration import (
    MOST_JUDGED,
    STEPS,
    Calibration,
    PastErrors,
    _folds,
    cross_fit,
    frontier_fits,
    source_groups,
)
from hypothesis import given
from hypothesis import strategies as st

from fewbench.errors import FewbenchError, MethodError
from fewbench.evaluation.auto import choose_method
from fewbench.evaluation.intervals import Frontier
from fewbench.evaluation.sampling import standard_error
from fewbench.methods import Method, Prediction, Subset, find_method, kriging
from fewbench.methods.prediction.mean import Mean
from fewbench.methods.static import StaticSession
from fewbench.study import SplitSettings
from fewbench.study.backtest import Backtest
from fewbench.study.cell import run_cell
from fewbench.testing import simulate


def past_errors(errors, groups):
    """Errors of one judgment a source, in units of 1."""
    errors, count = np.asarray(errors, dtype=float), len(errors)
    rows = np.arange(count)
    ones = np.ones(count)
    return PastErrors(
        errors, ones, ones, 0 * ones, 0 * ones, rows, np.asarray(groups, np.intp), rows
    )


def test_the_half_width_is_the_conformal_quantile_of_single_sources():
    errors = np.random.default_rng(0).permutation(np.arange(1, 20) / 100)
    calibration = Calibration(past_errors(errors, np.arange(19)))
    for level in (0.5, 0.9, 0.95):
        expected = np.sort(errors)[math.ceil(20 * level - 1e-9) - 1]
        assert calibration.half_width(level, 1.0) == (expected, 19, None)
        assert calibration.half_width(level, 0.5)[0] == pytest.approx(expected / 2)


def test_groups_weigh_the_same_whatever_their_size():
    # Nine groups of one source with small errors, and one of a hundred with large ones.
    errors = np.concatenate([np.full(9, 0.01), np.full(100, 0.5)])
    groups = np.concatenate([np.arange(9), np.full(100, 9)])
    calibration = Calibration(past_errors(errors, groups))
    assert calibration.half_width(0.8, 1.0) == (0.01, 10, None)
    assert calibration.half_width(0.9, 1.0) == (0.5, 10, None)
    assert calibration.past.mean_error == pytest.approx((9 * 0.01 + 0.5) / 10)


def test_too_few_groups_fall_back_on_sources_and_say_so():
    errors = np.arange(30) / 100
    calibration = Calibration(past_errors(errors, np.arange(30) // 6))
    half, units, warning = calibration.half_width(0.9, 1.0)
    assert half == pytest.approx(0.27)
    assert units == 30
    assert "only 5 families" in warning
    assert calibration.half_width(0.8, 1.0)[2] is None


def test_too_few_sources_leave_only_what_is_known():
    eight = Calibration(past_errors(np.arange(8) / 100, np.arange(8)))
    half, _, warning = eight.half_width(0.9, 1.0)
    assert half == math.inf
    assert "needs 9 source models" in warning
    assert "there are 8 (0 others)" in warning
    empty = Calibration(past_errors([], []))
    assert empty.half_width(0.5, 1.0)[0] == math.inf
    assert empty.past.mean_error is None


@pytest.mark.parametrize("level", [0, 1, -0.5, 90, math.nan])
def test_a_level_is_a_share(level):
    with pytest.raises(FewbenchError, match="use a share"):
        Calibration(past_errors([1.0] * 3, [0, 1, 2])).half_width(level, 1.0)


@given(st.integers(0, 999), st.integers(9, 60), st.floats(0.05, 0.9))
def test_a_higher_level_is_never_narrower(seed, n, level):
    rng = np.random.default_rng(seed)
    calibration = Calibration(past_errors(rng.random(n), np.arange(n) % 20))
    assert calibration.half_width(level, 1.0)[0] <= calibration.half_width(level + 0.05, 1.0)[0]


@dataclass(frozen=True)
class Spy(Method):
    """Predicts one half, and notes who was estimated from whom, by which seed."""

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
    assert (
        np.abs(calibration.past.errors)
        <= np.abs(known - table.full_scores())[calibration.past.models] + 1e-9
    ).all()
    order = np.argsort(calibration.past.models)
    assert calibration.past.groups[order].tolist() == list(groups.values())


def test_a_source_with_missing_cells_is_learned_from_but_not_judged():
    table = simulate(20, 200, seed=1)
    values = table.values.copy()
    values[3, 0] = np.nan  # nearly complete
    values[4, :20] = np.nan
    spy = Spy()
    calibration = cross_fit(spy, replace(table, values=values), 6, 0)
    judged = {target for _, targets, _ in spy.seen for target in targets}
    assert judged == set(table.model_ids) - {"model-04"}
    assert len(calibration.past) == 19
    assert calibration.unused == 1
    assert any("model-04" in sources.model_ids for sources, _, _ in spy.seen)
    assert any(sources.has_missing for sources, _, _ in spy.seen), "the sources are as they were"
    wholly = cross_fit(Spy(), simulate(20, 30, missing=0.3), 6, 0)
    assert (len(wholly.past), wholly.unused) == (0, 20)


@pytest.mark.parametrize(("n_models", "n_families"), [(12, 2), (12, 1), (3, 3), (3, 2)])
def test_few_families_are_left_out_as_far_as_can_be(n_models, n_families):
    table = simulate(n_models, 40, seed=3)
    names = [f"f{m % n_families}" for m in range(n_models)]
    table = replace(table, models=table.models.assign(family=names))
    spy = Spy()
    calibration = cross_fit(spy, table, 6, 0)
    assert len(calibration.past) == n_models
    assert len(np.unique(calibration.past.groups)) == n_families
    if n_families > 1:
        for sources, targets, _ in spy.seen:
            outside = {names[int(t[-2:])] for t in targets}
            assert not outside & set(sources.models["family"])
    if n_models > 9:
        assert f"only {n_families} families" in calibration.half_width(0.9, 1.0)[2]


def test_a_fold_that_leaves_the_method_too_few_sources_is_left_out():
    table = simulate(10, 20, seed=2)
    assert len(cross_fit(Spy(least=9), table, 5, 0).past) == 0
    assert len(cross_fit(Spy(), table.take(models=[0, 1]), 5, 0).past) == 0


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


class _Learner(Method):
    """A method that adapts, in name: it asks for the first items and says their mean."""

    def describe(self):
        return "learner"

    def start(self, scores, budget, seed, targets):
        first = Subset(items=tuple(scores.item_ids[:budget]))
        return StaticSession(Mean(), scores, first, seed, targets)


def test_methods_that_adapt_are_judged_on_a_hundred_sources_at_most():
    table = simulate(130, 30, seed=2)
    found = cross_fit(_Learner(), table, 5, 0)
    assert (len(found.past), found.unused) == (MOST_JUDGED, 30)
    again = cross_fit(_Learner(), table, 5, 0)
    assert np.array_equal(found.past.errors, again.past.errors)
    assert len(cross_fit(find_method("random-ridge"), table, 5, 0).past) == 130


def test_a_target_with_few_items_run_gets_a_wider_interval():
    """Of one calibration: what 10 items leave open is not what 100 do."""
    table = simulate(60, 400, seed=4)
    calibration = cross_fit(find_method("flash-helm"), table, 100, 0)
    few, many = (calibration.half_width(0.9, standard_error(0.5, n, 400))[0] for n in (10, 100))
    assert few > 2 * many


def test_more_divisions_settle_the_width():
    table = simulate(40, 150, seed=5)
    method = find_method("random-ridge")
    widths = {
        divisions: [
            cross_fit(method, table, 20, seed, divisions=divisions).half_width(0.9, 0.1)[0]
            for seed in range(8)
        ]
        for divisions in (1, 3)
    }
    assert np.std(widths[3]) < np.std(widths[1])
    assert np.mean(widths[3]) == pytest.approx(np.mean(widths[1]), rel=0.25)


def test_the_frontier_is_learned_from_weaker_sources_only():
    table = simulate(24, 60, seed=1)
    full, spy = dict(zip(table.model_ids, table.full_scores(), strict=True)), Spy()
    past = frontier_fits(spy, table, 6, 0)[0]
    assert len(spy.seen) == len(STEPS)
    for sources, targets, _ in spy.seen:
        assert max(full[name] for name in sources.model_ids) <= min(full[t] for t in targets)
        families = set(sources.models["family"])
        assert not families & set(table.models.loc[list(targets), "family"])
    assert past.errors.mean() > 0, "estimates of one half fall short of the strongest"


def test_what_divisions_share_widens_the_frontier_with_few_of_them_too():
    """Errors of +3 in one division and -3 in the other: neither is ruled out for a target."""
    rng = np.random.default_rng(0)
    for steps in ((0, 1), (0, 1, 2)):
        step = np.repeat(steps, 10)
        shared = np.array([3.0, -3.0, 0.0])[step]
        rows = np.arange(len(step))
        past = PastErrors(
            shared + rng.normal(0, 0.1, len(step)),
            *np.ones((2, len(step))),
            *np.zeros((2, len(step))),
            rows % 10,
            rows % 10,
            step,
        )
        low, high = Frontier(past, past).ends(0.0, 0.9)
        assert low < -3
        assert high > 3
        assert high - low < 30


IN_TASKS = "tasks-random(tasks=3)+optimal-design+kriging"


def _plan(table):
    settings = SplitSettings("random", targets=0.3)
    found = Backtest(table, settings, 2, 0)
    for cell in found.cells(["fewbench", "fewbench-static"], [8]):
        run_cell(table, cell)


@pytest.mark.parametrize(
    "repeat",
    [
        lambda table: cross_fit(find_method("fewbench"), table, 8, 0),
        lambda table: cross_fit(find_method("fewbench-static"), table, 8, 0),
        lambda table: cross_fit(
            find_method("tasks-random(tasks=3)+optimal-design+kriging"), table, 8, 0
        ),
        lambda table: frontier_fits(find_method("fewbench"), table, 8, 0),
        lambda table: measure(find_method("fewbench"), table, 8, 0, [8]),
        lambda table: measure(find_method("fewbench(together=2)"), table, 8, 0, [8]),
        lambda table: choose_method(table, 8),
        _plan,
    ],
    ids=["folds", "static", "in tasks", "frontier", "pairs", "together", "auto", "plan"],
)
def test_a_repeated_method_follows_the_rules_of_all_sources(repeat, monkeypatch):
    """22 sources run the kriging. Folds with 17 of them must not run the systematic sample."""
    fitted = []

    def spy(scores, *given):
        fitted.append((len(scores), fit(scores, *given).distinct))
        return fit(scores, *given)

    fit = kriging.fit_kriging
    monkeypatch.setattr(kriging, "fit_kriging", spy)
    repeat(simulate(22, 60, 4, seed=1))
    assert min(n for n, _ in fitted) < 20
    assert {distinct for _, distinct in fitted} == {22}


def test_a_learning_curve_is_of_the_methods_that_run_with_so_many_sources():
    table = simulate(30, 40, seed=1)
    settings = SplitSettings("random", targets=0.2)
    described = [
        Backtest(table, one, 1, 0).cells(["fewbench"], [8])[0].method.describe()
        for one in (settings, replace(settings, sources=10))
    ]
    assert described == ["fewbench(sources=30)", "fewbench"]
