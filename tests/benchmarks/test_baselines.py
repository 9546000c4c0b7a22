"""The figures and the data files of benchmarks/baselines.py."""

import json
import math
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest

from fewbench.testing import simulate


@pytest.fixture
def figures():
    from _baselines import figures

    return figures


NAMES = ("one", "two", "three", "four", "small")
SHARED = {"one": 0, "two": 0, "three": 1, "four": 2, "small": 3}


def made(figures, offsets, repeats=6, tables=NAMES, split="random", seldom=()):
    """Cells of methods that are off by a constant and some noise, on tables of our own."""
    from _baselines.cells import Record
    from fewbench.study import SplitSettings, make_split

    rows, resampled = [], {}
    for at, table in enumerate(tables):
        scores = simulate(12 if table == "small" else 80, 100, seed=at)
        splits = [make_split(scores, SplitSettings(split), 0, repeat) for repeat in range(repeats)]
        records = []
        for repeat, division in enumerate(splits):
            truth = scores.full_scores()[division.targets]
            rng = np.random.default_rng(100 * at + repeat)
            for method, off in offsets.items():
                if method in seldom and table != "one":
                    continue
                said = (
                    truth + off * rng.choice([-1, 1], len(truth)) + rng.normal(0, 0.01, len(truth))
                )
                record = Record("", table, split, repeat, method, "", 50, estimates=tuple(said))
                records.append(record)
        own, drawn = figures.cells_of(records, scores, splits, at)
        rows += own
        resampled[table, split] = drawn
    targets = {(table, split): 3.0 if table == "small" else 20.0 for table in tables}
    return figures.Cells(pd.DataFrame(rows), resampled, targets, SHARED)


def test_a_ratio_is_to_the_exact_error_of_random_sampling(figures):
    from _baselines.cells import Record
    from fewbench.study import SplitSettings, make_split
    from fewbench.study.inference import expected_random_mae

    scores = simulate(40, 60, seed=1)
    splits = [make_split(scores, SplitSettings(), 0, repeat) for repeat in range(4)]
    truth, expected = scores.full_scores(), expected_random_mae(scores, 10)
    records = [
        Record("", "t", "random", at, "m", "", 10, estimates=tuple(truth[one.targets] - 0.03))
        for at, one in enumerate(splits)
    ]  # no draw of random sampling among them: none is needed
    (row,), drawn = figures.cells_of(records, scores, splits)
    plain = np.mean([expected[one.targets].mean() for one in splits])
    assert (row["mae"].value, row["random"]) == pytest.approx((0.03, plain))
    assert row["ratio"].value == pytest.approx(0.03 / plain)
    assert row["ratio"].low < 0.03 / plain < row["ratio"].high
    assert (row["repeats"], row["tau"], drawn.n_repeats) == (4, 1.0, 4)
    (row,), _ = figures.cells_of(records[:2], scores, splits)
    assert math.isnan(row["ratio"].low)
    assert row["ratio"].value > 0


@pytest.mark.slow
def test_random_sampling_against_itself_is_one_within_its_interval(figures):
    """Resampling targets alone holds 1 in half of such studies (spread of the draws left out)."""
    from _baselines.cells import Record
    from fewbench.study import SplitSettings, make_split

    held = 0
    for study in range(40):
        scores = simulate(60, 80, seed=study % 4)
        splits = [make_split(scores, SplitSettings(), study, repeat) for repeat in range(5)]
        rng = np.random.default_rng(study)
        records = []
        for at, one in enumerate(splits):
            items = rng.permutation(80)[:20]  # the same for all targets of a repeat
            said = scores.values[np.ix_(one.targets, items)].mean(axis=1)
            record = Record("", "t", "random", at, "random", "", 20, estimates=tuple(said))
            records.append(record)
        (row,), _ = figures.cells_of(records, scores, splits)
        held += row["ratio"].low <= 1 <= row["ratio"].high
    assert held >= 32


def test_tables_with_few_targets_are_shown_and_do_not_count_and_groups_weigh_as_one(figures):
    cells = made(figures, {"random": 0.06, "good": 0.03})
    table = figures.overall(cells, "random").set_index("method")
    found = table.loc["good", 50]
    assert (found.n_tables, found.n_groups, table.loc["good", "tables"]) == (4, 3, 4)
    known = {row.table: row.ratio.value for row in cells.of(method="good").itertuples()}
    assert set(known) == set(NAMES)
    logs = [np.log([known["one"], known["two"]]).mean(), *np.log([known["three"], known["four"]])]
    assert found.value == pytest.approx(np.exp(np.mean(logs)))
    assert table.loc["good", "worst_table"] != "small"
    assert figures.overall(cells, "performance").empty


def test_the_data_file_has_every_figure_and_the_worst_table(figures):
    from _baselines import data

    cells = made(figures, {"random": 0.06, "greedy-ridge": 0.03})
    table = data.methods_table(cells).set_index(["table", "split", "budget", "method"])
    known = {one.table: one.ratio.value for one in cells.of(method="greedy-ridge").itertuples()}
    row = table.loc["all", "random", 50, "greedy-ridge"]
    assert row["worst_table"] == max(set(known) - {"small"}, key=lambda name: known[name])
    assert row["low"] < row["ratio"] < row["high"]
    assert row["tables"] == 4
    for name, ratio in known.items():
        assert table.loc[name, "random", 50, "greedy-ridge"]["ratio"] == round(ratio, 4)
    assert len(table) == 2 * (1 + len(NAMES))


def test_methods_are_in_order_of_their_ratio_and_last_where_tables_are_few(figures):
    offsets = {"random": 0.06, "good": 0.03, "as-good": 0.03, "bad": 0.12, "seldom": 0.001}
    cells = made(figures, offsets, seldom=("seldom",))
    table = figures.overall(cells, "random").set_index("method")
    assert sorted(table.index[:2]) == ["as-good", "good"]
    assert list(table.index[2:]) == ["random", "bad", "seldom"]
    level = {method for method, budgets in table["level"].items() if budgets}
    assert level == {"good", "as-good"}
    within = cells.of(table="three")
    assert set(within[within["level"]]["method"]) == {"good", "as-good"}
    few = made(figures, offsets, repeats=2)
    assert not few.rows["level"].any()
    assert not any(figures.overall(few, "random")["level"])


def test_a_method_that_lacks_a_repeat_is_compared_in_the_others(figures):
    from _baselines.cells import Record
    from fewbench.study import SplitSettings, make_split

    scores = simulate(40, 60, seed=1)
    splits = [make_split(scores, SplitSettings(), 0, repeat) for repeat in range(4)]
    records = [
        Record("", "t", "random", at, method, "", 10, estimates=(0.5,) * len(one.targets))
        for method in ("random", "m")
        for at, one in enumerate(splits)
        if method == "random" or at
    ]
    rows, _ = figures.cells_of(records, scores, splits)
    whole, part = sorted(rows, key=lambda row: row["repeats"], reverse=True)
    assert (whole["repeats"], part["repeats"]) == (4, 3)
    again, _ = figures.cells_of([r for r in records if r.repeat], scores, splits)
    assert part["ratio"].value == pytest.approx(again[0]["ratio"].value)


def test_a_torn_line_costs_its_own_cell_alone(tmp_path):
    from _baselines.cells import Record, _append, read_records

    path = tmp_path / "t.random.0.jsonl"
    one = Record(
        "k",
        "t",
        "random",
        0,
        "m",
        "parts",
        10,
        mae=0.25,
        estimates=(0.5, 0.25),
        items_run=10.0,
        seconds=0.5,
        notes=("said",),
    )
    _append(path, one)
    with path.open("a") as file:
        file.write('\n{"key": "torn')
    with path.open("a") as file:  # of another version, with what is not read any more
        file.write("\n" + json.dumps(asdict(replace(one, method="other")) | {"tau": 1.0}))
    two = Record("k2", "t", "random", 0, "m", "parts", 20, failed="no")
    _append(path, two)
    found = read_records(path)
    assert found["m", "parts", 10] == one
    assert found["m", "parts", 20].failed == "no"
    assert found["other", "parts", 10].estimates == one.estimates
    assert len(found) == 3


def test_the_same_cell_as_compare_and_none_is_run_twice(tmp_path, monkeypatch):
    """On a table of our own: figures as compare gives them, refusals kept, a cache that holds."""
    from _baselines import cells, tables
    from fewbench.errors import MethodError
    from fewbench.methods import Method, find_method
    from fewbench.study import SplitSettings, compare

    class Refuses(Method):
        def describe(self):
            return "refuses"

        def start(self, scores, budget, seed, targets):
            raise MethodError(f"not with {budget} items")

    scores = simulate(20, 60, seed=2)
    loaded = tables.Loaded(scores, frozenset({"collaborative-low-rank"}))
    monkeypatch.setattr(cells, "load", lambda folder, name: loaded)
    monkeypatch.setattr(
        cells, "find", lambda name: Refuses() if name == "refuses" else find_method(name)
    )
    names = ("random", "random-linear", "collaborative-low-rank", "refuses")
    plan = cells.Plan(tmp_path, tmp_path / "cache", names, float("inf"))
    table = tables.Table("ours", 2)
    done = list(cells.run_all(plan, [table], 1))
    assert sum(job.fresh for job in done) == 3 * 4 * 5 * 2  # methods × budgets × splits × repeats
    records = [record for job in done for record in job.records]
    assert {r.failed for r in records if r.method == "refuses"} == {
        f"not with {budget} items" for budget in (10, 20, 30, 50)
    }
    assert not any(record.broken for record in records)
    outcome = compare(scores, names[:2], [10, 30], SplitSettings(), 2, level=None)
    for row in outcome.repeats[outcome.repeats["method"] != "random-ridge"].to_dict("records"):
        same = [
            record.mae
            for record in records
            if (record.split, record.method) == ("random", row["method"])
            and (record.budget, record.repeat) == (row["budget"], row["repeat"])
        ]
        assert same == [row["mae"]]
    again = list(cells.run_all(plan, [table], 1))
    assert sum(job.fresh for job in again) == 0
    late = cells.Plan(tmp_path, tmp_path / "other", names, 0.0)
    assert sum(job.unrun for job in cells.run_all(late, [table], 1)) == 120


@pytest.fixture
def over():
    from _baselines import over_tables

    return over_tables


def test_a_table_with_few_targets_does_not_count(over):
    counts = [over.FEWEST_TARGETS - 1, over.FEWEST_TARGETS, 40, 50]
    found = over.over_tables([9.0, 0.5, 0.6, 0.7], counts)
    assert (found.n_tables, found.left_out) == (3, 1)
    assert found.value == over.over_tables([0.5, 0.6, 0.7]).value
    assert np.isnan(over.over_tables([0.5], [1]).value)


def test_few_tables_have_no_interval_and_more_level_is_wider(over):
    assert np.isnan(over.over_tables([0.5, 0.6]).low)
    ninety, more = over.over_tables([0.5, 0.6, 0.9]), over.over_tables([0.5, 0.6, 0.9], level=0.95)
    assert more.low < ninety.low < ninety.value < ninety.high < more.high


def test_tables_that_share_models_or_items_are_grouped(over):
    models = {"a": ["m", "n"], "b": ["n"], "c": ["o"], "d": ["p"]}
    items = {"c": ["i1"], "d": ["i1", "i2"], "a": ["i9"]}
    assert over.table_groups(models, items) == {"a": 0, "b": 0, "c": 1, "d": 1}
    assert over.table_groups({}) == {}
