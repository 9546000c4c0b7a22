"""Errors of a method on held-out sources: fitted on none of the sources that they are judged on."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.errors import MethodError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.auto import choose_method
from fewbench.methods import Answers, Method, Prediction, Subset, find_method, kriging
from fewbench.methods.prediction.mean import Mean
from fewbench.methods.sources import source_groups
from fewbench.methods.static import StaticSession
from fewbench.study import SplitSettings
from fewbench.study.backtest import Backtest
from fewbench.study.cell import run_cell
from fewbench.testing import simulate
from fewbench.uncertainty import held_out
from fewbench.uncertainty.held_out import HeldOut, deal, looks_of, measure, no_errors, units_of
from fewbench.uncertainty.intervals import Scored
from fewbench.uncertainty.resemblance import resemblance_of
from fewbench.uncertainty.sampling import standard_error


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
        inner.predict = lambda targets, tasks=True: Prediction(
            np.full(len(targets), 0.5), np.full((len(targets), len(scores.tasks)), 0.5)
        )
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
    held = measure(spy, table, 6, 0)
    judged = [target for _, targets, _ in spy.seen for target in targets]
    assert sorted(judged) == table.model_ids
    assert groups["model-20"] == groups["model-03"] == groups["model-21"] == groups["model-02"]
    for sources, targets, _ in spy.seen:
        assert not {groups[name] for name in sources.model_ids} & {groups[t] for t in targets}
        assert len(sources.model_ids) + len(targets) == 24
    assert len({seed for _, _, seed in spy.seen}) == len(spy.seen)
    truth = table.full_scores()[held.models]
    errors = held.errors[:, 0, 0]
    moved = np.abs(errors - (truth - 0.5)) > 1e-6  # to what six answers leave possible
    assert moved.mean() < 0.5
    assert (np.abs(errors) <= np.abs(truth - 0.5) + 1e-6).all()
    order = np.argsort(held.models)
    assert held.groups[order].tolist() == list(groups.values())


def test_a_source_with_missing_cells_is_learned_from_but_not_judged():
    table = simulate(20, 200, seed=1)
    values = table.values.copy()
    values[3, 0] = np.nan  # nearly complete
    values[4, :20] = np.nan
    spy = Spy()
    held = measure(spy, replace(table, values=values), 6, 0)
    assert sorted(held.models) == [row for row in range(20) if row != 4]
    assert any("model-04" in sources.model_ids for sources, _, _ in spy.seen)
    assert any(sources.has_missing for sources, _, _ in spy.seen), "the sources are as they were"
    assert len(measure(Spy(), simulate(20, 30, missing=0.3), 6, 0).models) == 0


@pytest.mark.parametrize(("n_models", "n_families"), [(12, 2), (12, 1), (3, 3), (3, 2)])
def test_few_families_are_left_out_as_far_as_can_be(n_models, n_families):
    table = simulate(n_models, 40, seed=3)
    names = [f"f{m % n_families}" for m in range(n_models)]
    table = replace(table, models=table.models.assign(family=names))
    spy = Spy()
    held = measure(spy, table, 6, 0)
    assert len(held.models) == n_models
    assert len(np.unique(held.groups)) == n_families
    if n_families > 1:
        for sources, targets, _ in spy.seen:
            outside = {names[int(t[-2:])] for t in targets}
            assert not outside & set(sources.models["family"])


def test_a_part_that_leaves_the_method_too_few_sources_is_left_out():
    table = simulate(10, 20, seed=2)
    for held in (
        measure(Spy(least=9), table, 5, 0, [2, 5]),
        measure(Spy(), table.take(models=[0, 1]), 5, 0, [2, 5]),
    ):
        assert held.errors.shape == no_errors([2, 5], 3).errors.shape == (0, 2, 4)
        assert held.mean_error is held.mean_random is None


@given(st.lists(st.integers(1, 9), min_size=2, max_size=30), st.integers(0, 99))
def test_parts_keep_groups_whole_and_are_of_like_size(sizes, seed):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    parts = min(5, len(sizes))
    part_of = deal(groups, parts, seed)
    assert all(len(set(part_of[groups == group])) == 1 for group in range(len(sizes)))
    filled = np.bincount(part_of, minlength=parts)
    assert filled.min() > 0
    assert filled.max() - filled.min() <= max(sizes)
    assert np.array_equal(part_of, deal(groups, parts, seed))


class _Learner(Method):
    """A method that adapts, in name: it asks for the first items and says their mean."""

    def describe(self):
        return "learner"

    def start(self, scores, budget, seed, targets):
        first = Subset(items=tuple(scores.item_ids[:budget]))
        return StaticSession(Mean(), scores, first, seed, targets)


def test_methods_that_adapt_are_judged_on_a_part_of_many_sources():
    table = simulate(130, 30, seed=2)
    held = measure(_Learner(), table, 5, 0)
    assert len(held.models) == held_out.MOST_JUDGED
    assert np.array_equal(held.errors, measure(_Learner(), replace(table), 5, 0).errors)
    every = measure(find_method("random-ridge"), table, 5, 0)  # on several divisions
    assert len(every.models) == 130 * held_out.DIVISIONS
    assert len(np.unique(every.models)) == 130


def test_errors_are_those_of_estimates_at_every_look():
    """The first items of one look are those of the next, and all items leave no error."""
    table = simulate(20, 40, seed=4)
    held = measure(_Learner(), table, 40, 0, looks_of(40))
    assert held.looks.tolist() == [10, 20, 40]
    assert [held.at(n) for n in (5, 10, 39, 99)] == [0, 0, 1, 2]
    values, full = table.values[held.models], table.full_scores()[held.models]
    for at, n in enumerate(held.looks):
        means = values[:, :n].mean(axis=1)
        np.testing.assert_allclose(held.errors[:, at, 0], full - means, atol=1e-12)
        plain = np.array([standard_error(one, n, 40) for one in means])
        # The less a model answers like those it was learned from, the larger its unit.
        for part in range(held_out.FOLDS):
            own = np.flatnonzero(held.parts == part)
            rest = table.take(models=np.setdiff1d(np.arange(20), held.models[own]))
            answers = [Answers(np.arange(n), values[[row], :n]) for row in own]
            wider = [one.widening for one in resemblance_of(rest, answers, 0.0)]
            np.testing.assert_allclose(held.units[own, at, 0], plain[own] * wider, rtol=1e-6)
    assert np.abs(held.errors[:, -1]).max() < 1e-12
    assert not held.relative[:, -1].any()


def test_a_unit_is_between_the_method_s_own_error_and_that_of_random_sampling():
    table = simulate(9, 60, seed=1)

    def units(n, spread=None, task_spread=None):
        answers = Answers(np.arange(n), np.zeros((1, n)))
        return units_of(Scored(answers, np.full(4, 0.5), spread, task_spread), table)

    plain = units(20)
    assert plain[0] == standard_error(0.5, 20, 60)
    np.testing.assert_allclose(units(20, plain[0] / 4, plain[1:] * 9), plain * [0.5, 3, 3, 3])
    assert units(60).max() < 1e-9


def test_models_of_a_session_are_close_and_ran_the_same_items():
    table = simulate(24, 60, seed=1)
    held = measure(find_method("fewbench(together=2)"), table, 8, 0)
    sizes = np.bincount(held.sessions)
    assert set(sizes) <= {1, 2}
    full = table.full_scores()[held.models]
    within = [np.ptp(full[held.sessions == one]) for one in np.flatnonzero(sizes == 2)]
    assert np.mean(within) < 0.5 * np.abs(full[:, None] - full).mean()


def test_errors_come_back_from_their_arrays():
    held = measure(find_method("random-ridge"), simulate(12, 40, seed=1), 10, 0, [4, 10])
    arrays = held.arrays()
    again = HeldOut.from_arrays(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(again.arrays()[name], array)
    for name, array in arrays.items():
        with pytest.raises(ValueError, match=name if name != "looks" else "errors of shape"):
            HeldOut.from_arrays(arrays | {name: array[1:]} if name != "models" else {})


def test_errors_are_measured_once_a_folder(tmp_path, monkeypatch):
    table = simulate(24, 80, seed=1)
    sources, target = table.take(models=range(1, 24)), table.take(models=[0])
    evaluation = Evaluation(sources, "random-ridge", 20, target.model_ids)
    evaluation.save(tmp_path / "run")
    evaluation.tell_table(target)
    estimates = evaluation.estimate()
    [kept] = (tmp_path / "run").rglob("errors-*.npz")
    monkeypatch.setattr(held_out, "_measure", None)
    assert Evaluation.open(tmp_path / "run", replace(sources)).estimate() == estimates
    kept.write_bytes(kept.read_bytes()[:99])
    with pytest.raises(TypeError):  # it is measured anew, by what was taken away here
        Evaluation.open(tmp_path / "run", replace(sources)).estimate()


IN_TASKS = "tasks-random(tasks=3)+optimal-design+kriging"


def _plan(table):
    settings = SplitSettings("random", targets=0.3)
    found = Backtest(table, settings, range(2), 0)
    for cell in found.cells(["fewbench", "fewbench-static"], [8]):
        run_cell(table, cell, "")


@pytest.mark.parametrize(
    "repeat",
    [
        *(
            lambda table, name=name: measure(find_method(name), table, 8, 0)
            for name in ("fewbench", "fewbench-static", IN_TASKS, "fewbench(together=2)")
        ),
        lambda table: choose_method(table, 8),
        _plan,
    ],
    ids=["fewbench", "static", "in tasks", "together", "auto", "plan"],
)
def test_a_repeated_method_follows_the_rules_of_all_sources(repeat, monkeypatch):
    """With 22 sources items are chosen. A fold with 17 of them must not draw a sample instead."""
    fitted = []

    def spy(scores, *given):
        fitted.append((len(scores), fit(scores, *given).distinct))
        return fit(scores, *given)

    fit = kriging.fit_kriging
    monkeypatch.setattr(kriging, "fit_kriging", spy)
    table = simulate(22, 60, 4, seed=1)
    repeat(replace(table, models=table.models.drop(columns="family")))
    assert min(n for n, _ in fitted) < 20
    assert {distinct for _, distinct in fitted} == {22}


def test_a_learning_curve_is_of_the_methods_that_run_with_so_many_sources():
    table = simulate(30, 40, seed=1)
    settings = SplitSettings("random", targets=0.2)
    described = [
        Backtest(table, one, range(1), 0).cells(["fewbench"], [8])[0].method.describe()
        for one in (settings, replace(settings, sources=10))
    ]
    assert described == ["fewbench(sources=15)", "fewbench"]  # 15 families
