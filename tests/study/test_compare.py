"""compare: the grid, its tables, its cache, and what methods get to see."""

import json
import os
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from fewbench import Evaluation
from fewbench._seeds import child_seed
from fewbench.errors import FewbenchError, MethodError, MissingExtraError, StudyError
from fewbench.methods import Method, StaticMethod, Subset, find_method
from fewbench.scores import from_arrays
from fewbench.study import SplitSettings, compare
from fewbench.study.cell import Cell, Failure, run_cell
from fewbench.study.inference import expected_random_mae, two_way
from fewbench.study.learning_curve import LearningCurve
from fewbench.study.metrics import point_metrics
from fewbench.study.splits import make_split
from fewbench.testing import simulate

RANDOM = find_method("random")

TIMES = ["seconds_fit", "seconds_predict"]


# The tables


def test_a_missing_package_is_named_before_the_first_cell(scores, monkeypatch):
    monkeypatch.setattr("fewbench.methods.needs.find_spec", lambda module: None)
    progress = []
    with pytest.raises(MissingExtraError, match="POT"):
        compare(scores, "collaborative", 10, progress=lambda *counts: progress.append(counts))
    assert not progress


def test_the_references_always_take_part(scores):
    for methods in (["random-linear", "random"], []):
        cells = compare(scores, methods, [5], repeats=1, level=None).cells
        assert sorted(cells["method"]) == sorted({*methods, "random", "random-ridge"})


def test_methods_and_budgets_need_not_be_named():
    compared = compare(simulate(20, 60, seed=3), repeats=1, level=None).cells
    assert set(compared["method"]) == {"fewbench", "greedy-ridge", "random", "random-ridge"}
    assert set(compared["budget"]) == {20, 50}
    few = compare(simulate(20, 15, seed=3), "random", repeats=1, level=None).cells
    assert set(few["budget"]) == {8}


def test_cells_follow_from_the_estimates(outcome):
    table = outcome.estimates.assign(
        gap=lambda t: (t["estimate"] - t["truth"]).abs(),
        held=lambda t: (t["low"] <= t["truth"] + 1e-9) & (t["truth"] <= t["high"] + 1e-9),
        width=lambda t: (t["high"] - t["low"]) / 2,
    )
    keys = ["method", "budget", "split"]
    runs = table.groupby([*keys, "repeat"])[["gap", "held", "width"]].mean()
    means = runs.groupby(level=keys).mean()
    cells = outcome.cells.set_index(keys).loc[means.index]
    for theirs, ours in (("gap", "mae"), ("held", "coverage90"), ("width", "half_width90")):
        np.testing.assert_allclose(cells[ours], means[theirs].astype(float))
        assert (cells[f"{ours}_se"] > 0).all() or ours == "coverage90"
        assert (cells[f"{ours}_low"] <= cells[ours]).all()
        assert (cells[ours] <= cells[f"{ours}_high"]).all()


def test_every_interval_holds_its_own_mean():
    """Also of a maximum, which no resample of the models exceeds."""
    table = simulate(40, 200, n_tasks=10, seed=1)
    cells = compare(table, ["random-linear"], [20], repeats=5, level=None).cells
    metrics = [name.removesuffix("_low") for name in cells if name.endswith("_low")]
    assert {"max_error", "task_max_error", "mae"} <= set(metrics)
    for metric in metrics:
        low, mean, high = (cells[f"{metric}{end}"] for end in ("_low", "", "_high"))
        assert ((low <= mean + 1e-9) & (mean <= high + 1e-9) | low.isna()).all(), metric


def test_the_spread_is_that_of_the_repeats(outcome):
    """How far one run may lie from the mean, beside how sure the mean is."""
    table = outcome.estimates.assign(gap=lambda t: (t["estimate"] - t["truth"]).abs())
    keys = ["method", "budget", "split"]
    runs = table.groupby([*keys, "repeat"])["gap"].mean().unstack("repeat")
    assert runs.shape[1] == 3
    cells = outcome.cells.set_index(keys).loc[runs.index]
    np.testing.assert_allclose(cells["mae_sd"], runs.std(axis=1, ddof=1))
    assert not {f"{name}_sd" for name in (*TIMES, "items_run")} & set(cells)


def test_a_method_has_ratio_one_to_itself(outcome):
    cells = outcome.cells.set_index("method")
    ends = [f"ratio_to_random_ridge{end}" for end in ("", "_low", "_high")]
    np.testing.assert_allclose(cells.loc["random-ridge", ends].to_numpy(float), 1)


def test_ratios_to_random_are_to_its_expected_error(outcome, scores):
    """Not to the error of a few draws, which is off by as much as a half on single tables."""
    cells = outcome.cells
    for row in cells.to_dict("records"):
        mine = outcome.estimates
        for key in ("method", "budget", "split"):
            mine = mine[mine[key] == row[key]]
        expected = pd.Series(expected_random_mae(scores, row["budget"]), scores.model_ids)
        runs = mine.assign(e=mine["target"].map(expected)).groupby("repeat")["e"].mean()
        assert row["expected_random_mae"] == pytest.approx(runs.mean())
        assert row["ratio_to_random"] == pytest.approx(row["mae"] / row["expected_random_mae"])
    theirs = cells[cells["method"] == "random-ridge"].set_index(["budget", "split"])["mae"]
    expected = cells["mae"] / [theirs[b, s] for b, s in zip(cells.budget, cells.split, strict=True)]
    np.testing.assert_allclose(cells["ratio_to_random_ridge"], expected)
    assert (cells["ratio_to_random_low"] < cells["ratio_to_random_high"]).all()


@pytest.mark.parametrize("repeats", [2])
def test_few_repeats_have_no_interval_and_say_so(scores, repeats):
    found = compare(scores, [], [5], repeats=repeats)
    ends = [c for c in found.cells if c.endswith(("_se", "_low", "_high"))]
    assert len(ends) > 20
    assert found.cells[ends].isna().all(axis=None)
    assert found.cells["tied_with_best"].isna().all()
    assert any(f"at least {3 - repeats} more" in warning for warning in found.warnings)
    enough = compare(scores, [], [5], repeats=3)
    assert not any("no intervals" in warning for warning in enough.warnings)
    assert enough.cells["tied_with_best"].notna().all()


# A cell that fails


def broken(how):
    """Return a method that fails at 5 items: on purpose, by mistake, or by ending its process."""

    class Broken(Method):  # within a function, so that it reaches other processes
        def describe(self):
            return "broken"

        def start(self, scores, budget, seed, targets):
            if budget == 5 and how == "refuse":
                raise MethodError("not today", hint="come back")
            if budget == 5 and how == "mistake":
                raise KeyError("left")
            if budget == 5:
                os._exit(1)
            return find_method("random").start(scores, budget, seed, targets)

    return Broken()


@pytest.mark.parametrize(
    ("how", "workers", "repeats", "reason"),
    [
        ("refuse", 1, 2, "not today (hint: come back)"),
        ("mistake", 1, 2, "KeyError: 'left'"),
        ("die", 2, 1, "its worker ended"),
    ],
)
def test_a_failing_cell_leaves_all_others_standing(scores, how, workers, repeats, reason):
    found = compare(scores, [broken(how)], [5, 6], repeats=repeats, level=None, workers=workers)
    without = compare(scores, [], [5, 6], repeats=repeats, level=None)
    failures = found.failures
    assert failures["reason"].str.startswith(reason).all()
    assert failures["repeat"].tolist() == [*range(repeats)]
    cells = found.cells.set_index(["method", "budget"])
    assert cells.loc[("broken", 5), "n_repeats"] == 0
    assert np.isnan(cells.loc[("broken", 5), "mae"])
    assert cells.loc[("broken", 6), "mae"] == cells.loc[("random", 6), "mae"]
    for name in ("random", "random-ridge"):
        mine = without.cells.set_index(["method", "budget"])
        assert cells.loc[(name, 5), "mae"] == mine.loc[(name, 5), "mae"]
    said = json.loads(found.to_json(), parse_constant=pytest.fail)
    (cell,) = [c for c in said["cells"] if c["failed"]]
    assert (cell["method"], cell["budget"], len(cell["failed"])) == ("broken", 5, repeats)


def test_a_method_that_fails_in_one_repeat_keeps_the_others(scores, monkeypatch):
    module = import_module("fewbench.study.compare")
    real = module.try_cell

    def sometimes(scores, cell, key):
        if cell.name == "random-linear" and cell.repeat == 1:
            return Failure(key, "no")
        return real(scores, cell, key)

    whole = compare(scores, ["random-linear"], [5], repeats=4, level=None).repeats
    monkeypatch.setattr(module, "try_cell", sometimes)
    found = compare(scores, ["random-linear"], [5], repeats=4, level=None)
    row = found.cells.set_index("method").loc["random-linear"]
    kept = whole[(whole["method"] == "random-linear") & (whole["repeat"] != 1)]
    assert row["n_repeats"] == 3
    assert row["mae"] == pytest.approx(kept["mae"].mean())
    gap = found.paired("random-linear", "random", 5).difference
    other = whole[(whole["method"] == "random") & (whole["repeat"] != 1)]["mae"].mean()
    assert gap == pytest.approx(kept["mae"].mean() - other)


def test_when_everything_fails_the_reasons_are_there(scores, monkeypatch):
    module = import_module("fewbench.study.compare")
    monkeypatch.setattr(module, "try_cell", lambda scores, cell, key: Failure(key, "no"))
    found = compare(scores, [], [5], repeats=3)
    assert len(found.failures) == 6
    assert found.cells["n_repeats"].tolist() == [0, 0]
    json.loads(found.to_json(), parse_constant=pytest.fail)


# Means of what is not always defined


def test_means_say_over_how_many_repeats_and_tasks_they_are(first_items):
    class Constant(first_items):
        """The same estimate for all targets in some repeats."""

        def start(self, scores, budget, seed, targets):
            session = super().start(scores, budget, seed, targets)
            if self.starts in (2, 3):
                real = session.predict

                def constant(targets, *, tasks=True):
                    said = real(targets, tasks=tasks)
                    return replace(said, scores=np.full(len(said.scores), 0.1 + 0.2))

                session.predict = constant
            return session

    table = simulate(30, 60, seed=3)
    found = compare(table, [Constant()], [5], metrics="kendall_tau", repeats=5, level=None)
    row = found.cells.set_index("method").loc["first-items"]
    assert row["kendall_tau_repeats"] == 3
    assert any("undefined for some repeats" in w and "over 3 of 5" in w for w in found.warnings)
    cell = next(c for c in json.loads(found.to_json())["cells"] if c["method"] == "first-items")
    assert cell["metrics"]["kendall_tau"]["n_repeats"] == 3


def test_means_over_tasks_say_of_how_many(scores):
    """At four items many tasks have equal estimates; they are not dropped in silence."""
    table = replace(scores, items=scores.items.assign(task=[f"t{i % 8}" for i in range(40)]))
    found = compare(table, [], [4], metrics="task_kendall_tau", repeats=3, level=None)
    assert found.cells["task_kendall_tau_tasks"].min() < 8
    assert any("undefined for some tasks" in warning for warning in found.warnings)
    unasked = compare(table, [], [4], repeats=3, level=None)
    assert not any("undefined" in warning for warning in unasked.warnings)


def test_paired_takes_one_split_and_budget():
    splits = [SplitSettings("random"), SplitSettings("performance")]
    table = simulate(24, 80, seed=1)
    outcome = compare(table, ["random+mean"], [4, 40], splits, repeats=3, level=None)
    found = outcome.paired("random", "random-ridge", 4, "random")
    cells = outcome.cells.set_index(["method", "budget", "split"])["mae"]
    expected = cells["random", 4, "random"] - cells["random-ridge", 4, "random"]
    assert found.difference == pytest.approx(expected)
    assert found.low <= found.difference <= found.high
    assert 0 < found.p_value <= 1
    same = outcome.paired("random", "random+mean", 4, "random")
    assert (same.difference, same.p_value) == (0, 1)
    rows = [(cell["split"], cell["budget"], cell["method"]) for cell in outcome.to_dict()["cells"]]
    frame = outcome.to_frame()
    assert rows == list(frame[["split", "budget", "method"]].itertuples(index=False, name=None))
    lines = [line.split()[:2] for line in str(outcome).splitlines() if line.startswith("random")]
    shown = [[row.method, f"{100 * row.mae:.2f}"] for row in frame.itertuples()]
    assert [line for line in lines if line in shown] == shown
    with pytest.raises(StudyError, check=lambda error: error.kind == "conflict") as error:
        outcome.paired("random", "random-ridge", 4)
    assert "performance" in error.value.hint
    for method, budget in (("nope", 4), ("random", 5)):
        with pytest.raises(StudyError):
            outcome.paired(method, "random-ridge", budget, "random")


def test_all_items_leave_no_error(scores):
    found = compare(scores, ["kmedoids-ridge"], [scores.n_items], repeats=2)
    assert found.cells["mae"].max() < 1e-12
    assert (found.cells["coverage90"] == 1).all()
    assert found.cells["half_width90"].max() < 1e-12
    json.loads(found.to_json(), parse_constant=pytest.fail)  # ratios are 0 / 0


def test_without_level_no_intervals(scores):
    found = compare(scores, [], [5], repeats=2, level=None)
    assert not [column for column in found.cells if column.startswith(("coverage", "half_width"))]
    assert found.estimates["low"].isna().all()


# The same on any number of workers, and from the cache


def test_the_result_is_the_same_on_two_workers(scores, assert_same):
    methods = ["kmedoids-ridge", "disco-jsd-knn"]
    one, two = (
        compare(scores, methods, [5], repeats=2, level=None, workers=workers) for workers in (1, 2)
    )
    assert_same(one, two)


def test_methods_of_a_repeat_share_targets_and_random_items(scores, spy):
    spies = [spy("random"), spy("random-ridge")]
    compare(scores, spies, [5], repeats=3, level=None)
    one, two = ([(sorted(told), a_of(told)) for _, told in s.sessions] for s in spies)
    assert one == two
    assert len({str(session) for session in one}) == 3


def a_of(told):
    return next(iter(told.values())).items.tolist()


# What methods get to see


def test_a_method_of_ones_own(scores, first_items):
    found = compare(scores, [first_items()], [7], repeats=2)
    row = found.cells.set_index("method").loc["first-items"]
    assert row["items_run"] == 7
    rows = found.estimates[found.estimates["method"] == "first-items"]
    answers = scores.values[scores.model_positions(rows["target"])]
    np.testing.assert_allclose(rows["estimate"], answers[:, :7].mean(axis=1))


@pytest.mark.parametrize("name", ["kmedoids-ridge"])
def test_targets_are_never_among_the_sources(scores, spy, name):
    watched = spy(name)
    found = compare(scores, [watched], [6], SplitSettings("group"), repeats=2)
    assert len(watched.sessions) >= 2
    for sources, told in watched.sessions:
        assert told
        assert not set(sources.model_ids) & set(told)
        for target, answers in told.items():
            row = scores.model_positions([target])[0]
            assert len(answers.items) == 6
            assert answers.scores[0].tolist() == scores.values[row, answers.items].tolist()
    assert found.cells["items_run"].max() == 6


@pytest.mark.parametrize("name", ["kmedoids-ridge", "disco-pds-knn"])
def test_hidden_answers_of_targets_change_nothing(scores, with_models, spy, name):
    targets = [1, 6, 11, 16]
    table = with_models(role=["target" if m in targets else "source" for m in range(20)])
    watched = spy(name)
    study = {"budgets": [6], "split": SplitSettings("given"), "repeats": 1}
    before = compare(table, [watched], **study)
    names = set(table.take(targets).model_ids)
    told = next(told for _, told in watched.sessions if set(told) == names)
    hidden = np.setdiff1d(np.arange(table.n_items), a_of(told))
    values = table.values.copy()
    values[np.ix_(targets, hidden)] = 1 - values[np.ix_(targets, hidden)]
    after = compare(replace(table, values=values), [watched], **study)
    one, two = (t.estimates[t.estimates["method"] == watched.describe()] for t in (before, after))
    columns = ["target", "estimate", "low", "high"]
    pd.testing.assert_frame_equal(one[columns], two[columns], check_exact=True)
    assert (one["truth"] != two["truth"]).all()


# Warnings


def test_twins_across_the_split_are_counted_and_named():
    table = simulate(20, 40, seed=3)
    values = table.values.copy()
    values[19] = values[0]
    roles = ["source"] * 16 + ["target"] * 4
    copied = replace(table, values=values, models=table.models.assign(role=roles))
    given = SplitSettings("given")

    def of_twins(split, repeats):
        found = compare(copied, [], [5], split, repeats=repeats, level=None).warnings
        (warning,) = [one for one in found if "correlated" in one]
        return warning

    # The same four targets in both repeats, counted once.
    warning = of_twins(given, 2)
    assert "1 of 4 targets (25%)" in warning
    assert "1 of them with the same answers" in warning
    assert "model-19 ~ model-00" in warning
    half = SplitSettings("random", 0.5)  # other targets each time, and the twins often apart
    assert " of 60 targets " in of_twins(half, 6)


def test_how_near_the_nearest_source_is_is_a_fact():
    rng = np.random.default_rng(0)
    apart = from_arrays(rng.integers(0, 2, (12, 400)), models=[f"m{i}" for i in range(12)])
    near = replace(apart, values=np.repeat(apart.values[::2], 2, axis=0))
    said = [
        compare(table, [], [5], SplitSettings("every"), 1, level=None).facts["nearest source"]
        for table in (apart, near)
    ]
    assert said[1].endswith("every 1.00")
    assert float(said[0].split()[-1]) < 0.3


# Holes


@pytest.fixture(scope="module")
def holes():
    """A table of which 2% of the cells are missing, and one model lacks a fifth."""
    table = simulate(40, 150, seed=6)
    values = table.values.copy()
    values[np.random.default_rng(0).random(values.shape) < 0.02] = np.nan
    values[7, :30] = np.nan
    return replace(table, values=values)


def test_targets_with_holes_are_judged_by_what_they_ran(holes, spy):
    method = spy("random-ridge")
    found = compare(holes, [method], [40], repeats=4, level=None)
    (warning,) = (one for one in found.warnings if "missing" in one)
    missing = int(np.isnan(holes.values).sum())
    assert warning.startswith(f"{missing} cells are missing ({missing / 6000:.1%})")
    assert warning.endswith("never targets: 1 of 40, 'model-07'")
    assert "model-07" not in set(found.estimates["target"])
    assert not any("fewer items" in one for one in found.warnings)
    answers = 0
    for sources, answered in method.sessions:
        assert sources.has_missing
        for target, told in answered.items():
            row = holes.values[holes.model_ids.index(target)]
            np.testing.assert_array_equal(told.scores[0], row[told.items])  # never a filled cell
            answers += len(told.items)
    assert 0.95 < answers / (40 * 40) < 1
    # The same errors as where the other cells are known, but for what is missing.
    whole = compare(simulate(40, 150, seed=6), [], [40], repeats=4, level=None)
    ratio = found.cells["expected_random_mae"] / whole.cells["expected_random_mae"]
    assert ratio.iloc[:2].between(0.97, 1.06).all()


# The number of source models


def test_fewer_sources_estimate_the_same_targets():
    table = simulate(40, 60, seed=5)
    found = compare(table, ["greedy-ridge"], [10], repeats=4, sources=[20, 5], level=None)
    both = compare(table, ["greedy-ridge"], [10], repeats=4, level=None)
    sizes = found.cells.groupby("split", sort=False)["n_sources"].unique().explode()
    assert sizes.to_dict() == {"random": 30, "5-source random": 5, "20-source random": 20}
    assert (found.repeats["n_sources"] == found.repeats["split"].map(sizes)).all()
    mine = found.cells[found.cells["split"] == "random"]
    assert mine["mae"].tolist() == both.cells["mae"].tolist()
    assert found.warnings == both.warnings  # of the same targets nothing is said again
    targets = found.estimates.groupby(["repeat", "split"])["target"].agg(frozenset)
    assert (targets.groupby("repeat").nunique() == 1).all()
    curve = found.learning_curve("greedy-ridge", 10)
    errors = found.cells[found.cells["method"] == "greedy-ridge"].set_index("n_sources")["mae"]
    assert curve.sources == (5, 20, 30)
    np.testing.assert_allclose([one.value for one in curve.errors], errors.loc[[5, 20, 30]])
    assert curve.errors[0].value > curve.errors[-1].value
    assert curve.gain.difference == pytest.approx(errors[30] - errors[20])
    assert curve.says in " ".join(str(found).split())
    drawn = json.dumps(found.plot("sources").to_dict())
    assert all(f'"budget": {size}, ' in drawn for size in curve.sources)
    assert "source models" in drawn.lower()
    with pytest.raises(StudyError, match=r"'random-linear'.*10 items"):
        found.learning_curve("random-linear", 10)


@pytest.mark.parametrize(
    ("fewer", "more", "noise", "words"),
    [
        (0.10, 0.05, 0.0, "would help: from 5 to 20 source models, the error falls by 50%."),
        (0.10, 0.12, 0.0, "would not help: from 5 to 20 source models, the error grows by 20%."),
        (0.10, 0.10, 0.001, "would hardly help"),
        (0.10, 0.10, 0.05, "It is not clear"),
        (0.0, 0.0, 0.0, "the error changes by +0% (90% interval: +0% to +0%)"),
    ],
)
def test_what_a_curve_says_of_more_sources(fewer, more, noise, words):
    """A small change with a wide interval is no evidence that more sources do not help."""
    rng = np.random.default_rng(0)
    resampled = two_way([[f"m{at}" for at in rng.permutation(30)[:12]] for _ in range(5)])
    errors = {
        size: resampled.parts([level + noise * rng.normal(size=12) for _ in range(5)])
        for size, level in ((5, fewer), (20, more))
    }
    assert words in LearningCurve.from_errors("ridge", 10, errors, resampled).says


def test_more_sources_than_a_split_has_are_refused():
    with pytest.raises(StudyError, match="16 source") as raised:
        compare(simulate(20, 60, seed=3), [], [10], repeats=2, sources=[5, 16], level=None)
    assert "use 15 or fewer" in raised.value.hint


# Wrong settings


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"methods": ["nope"]}, MethodError, "nope"),
        ({"budgets": []}, StudyError, "no budget"),
        ({"budgets": 10.5}, MethodError, "10.5"),
        ({"budgets": [0]}, MethodError, "budget of 0"),
        ({"budgets": [41]}, MethodError, "budget of 41"),
        ({"budgets": [5, 5]}, StudyError, "given twice"),
        ({"repeats": 0}, StudyError, "repeats"),
        ({"workers": 0}, StudyError, "workers"),
        ({"seed": -1}, StudyError, "seed"),
        ({"level": 1.0}, FewbenchError, "level 1.0"),
        ({"split": [SplitSettings(), SplitSettings(targets=0.5)]}, StudyError, "given twice"),
        ({"sources": [5, 5]}, StudyError, "given twice"),
        ({"sources": 1}, StudyError, "at least 2"),
        ({"sources": 1000}, StudyError, "1000 source models are wanted"),
        ({"split": ["random", "rnadom"]}, StudyError, "did you mean random"),
        ({"methods": [RANDOM.selector]}, StudyError, r"Random is not a method .*StaticMethod\("),
        ({"methods": object()}, StudyError, "object is not a method"),
    ],
)
def test_wrong_settings_are_refused_before_anything_runs(scores, first_items, wrong, error, said):
    method = first_items()
    with pytest.raises(error, match=said):
        compare(**{"scores": scores, "methods": [method], "budgets": [5]} | wrong)
    assert method.starts == 0


def test_parts_of_your_own_that_do_not_fit(scores):
    class Plain:
        def select(self, scores, budget, seed):
            raise NotImplementedError

    @dataclass(frozen=True)
    class Wrong:
        subset: bool

        def select(self, scores, budget, seed):
            items = list(scores.item_ids[:1]) * budget
            return Subset(items=items) if self.subset else items

    for parts, said in (
        ((RANDOM.predictor, RANDOM.selector), "Mean has no method select"),
        ((Plain(), RANDOM.predictor), r"not a dataclass.*@dataclass\(frozen=True\)"),
    ):
        with pytest.raises(MethodError, match=said):
            StaticMethod(*parts)
    for subset, said in ((True, "Subset: an item appears twice"), (False, "gave list, not a Sub")):
        wrong = StaticMethod(Wrong(subset), RANDOM.predictor)
        found = compare(scores, wrong, 5, ["random", "every"], repeats=1, level=None)
        assert [said in reason for reason in found.failures["reason"]] == [True, True]


def test_a_method_brings_those_to_be_seen_beside_it(scores):
    outcome = compare(scores, ["tailored"], [12], repeats=1, level=None)
    assert set(outcome.cells["method"]) == {
        "random", "random-ridge", "tailored", "kmedoids-ridge"
    }  # fmt: skip


def test_intervals_are_those_of_an_evaluation():
    table = simulate(40, 120, seed=2)
    split = make_split(table, SplitSettings("random"), 0, 0)
    cell = Cell("fewbench", find_method("fewbench"), 20, "random", split, 0, 0, 0.9, False)
    said = run_cell(table, cell, "")
    evaluation = Evaluation(
        table.take(models=split.sources),
        "fewbench",
        20,
        [table.model_ids[at] for at in split.targets],
        child_seed(0, 3, 0),
    )
    while evaluation.ask():
        evaluation.tell_table(table.take(models=split.targets))
    estimates = evaluation.estimate().values()
    np.testing.assert_allclose(said.low, [one.interval.low for one in estimates])
    np.testing.assert_allclose(said.high, [one.interval.high for one in estimates])


def test_metrics_that_are_asked_for_are_shown():
    scores = simulate(24, 60, seed=5)
    asked = ["task_rank_mae", "rmse"]
    outcome = compare(scores, "clusters(minimum=5)+mean", 15, repeats=3, level=None, metrics=asked)
    section = next(one for one in outcome.page().sections if one.id == "asked")
    (table,) = section.tables
    assert [title for title, _ in table.head[3:]] == ["Rank error of tasks", "RMSE (pp)"]
    shown = {row[0]: row[3] for row in table.rows}
    for row in outcome.cells.to_dict("records"):
        assert shown[row["method"]].startswith(f"{row['task_rank_mae']:.2f} ± ")
    assert "Rank error of tasks" in str(outcome)
    with pytest.raises(StudyError, match=r"task_rnk_mae.*task_rank_mae"):
        compare(scores, "random", 15, metrics=["task_rnk_mae"])


def test_an_interval_of_ranks_is_around_its_mean():
    """Tasks' estimates tie with source models' scores: no digit of a cell's result may be lost."""
    scores, method = simulate(60, 60, seed=2), "clusters(minimum=6)+mean"
    split = make_split(scores, SplitSettings("random"), 0, 0)
    cell = Cell(method, find_method(method), 18, "random", split, 0, 0, None, False)
    result = run_cell(scores, cell, "")
    sources, targets = (scores.take(models=part) for part in (split.sources, split.targets))
    past, true = sources.task_scores(), targets.task_scores()
    estimates = result.task_estimates()
    ranks = [
        point_metrics(true[:, task], estimates[:, task], past[:, task])["rank_mae"]
        for task in range(3)
    ]
    assert np.mean(ranks) == pytest.approx(result.metrics["task_rank_mae"])
