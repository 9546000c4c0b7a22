"""The figures and the filled pages of benchmarks/baselines.py."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    if not (BENCHMARKS / "_baselines").is_dir():
        pytest.skip("the benchmarks are not beside the tests")
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.fixture
def figures():
    from _baselines import figures

    return figures


@pytest.fixture
def pages():
    from _baselines import pages

    return pages


def cells_of(errors, split="random", budget=50, taus=None):
    """Records of {(table, method): [an error a repeat]}."""
    return pd.DataFrame(
        [
            {"table": table, "split": split, "repeat": repeat, "method": method}
            | {"budget": budget, "mae": mae, "tau": (taus or {}).get(method, 0.5)}
            for (table, method), maes in errors.items()
            for repeat, mae in enumerate(maes)
        ]
    )


def test_a_ratio_is_that_of_the_mean_errors_and_pairing_makes_it_sure(figures):
    theirs = np.array([2.0, 4.0, 6.0, 3.0])
    alike = figures.ratio(theirs / 2, theirs)
    assert (alike.value, alike.low, alike.high) == pytest.approx((0.5, 0.5, 0.5))
    apart = figures.ratio(theirs[::-1] / 2, theirs)
    assert apart.value == pytest.approx(0.5)
    assert apart.low < 0.45 < 0.55 < apart.high
    assert apart.low * apart.high == pytest.approx(0.25)  # as wide either way as a factor


def test_intervals_of_a_ratio_cover_what_they_state(figures):
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(600):
        hard = rng.gamma(20, 0.05, 5)  # a division that is hard is hard for both
        ours, theirs = (hard * rng.gamma(30, 1 / 30, 5) * scale for scale in (0.7, 1.0))
        found = figures.ratio(ours, theirs)
        hits += found.low <= 0.7 <= found.high
    assert hits / 600 == pytest.approx(0.95, abs=0.03)


def test_over_tables_halves_and_doubles_cancel(figures):
    found = figures.over_tables([0.5, 2.0, 1.0])
    assert found.value == pytest.approx(1)
    half = 4.302653 * math.log(2) / math.sqrt(3)  # Student's t of two degrees of freedom
    assert (found.low, found.high) == pytest.approx((math.exp(-half), math.exp(half)), rel=1e-5)


@pytest.mark.parametrize("known", [[], [0.8], [0.8, 0.9], [float("nan"), 0.8]])
def test_no_interval_of_fewer_than_three(figures, known):
    found = figures.over_tables(known)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.count == np.isfinite(known).sum()


def test_a_method_that_lacks_a_repeat_is_paired_with_the_others(figures):
    records = cells_of({("a", "random"): [1.0, 2.0, 9.0], ("a", "m"): [0.5, 1.0]})
    row = figures.by_cell(records).set_index("method").loc["m"]
    assert (row["ratio"], row["random"], row["repeats"]) == (0.5, 1.5, 2)


def test_methods_are_in_order_of_their_ratio_and_last_where_tables_are_few(figures):
    errors = {(table, "random"): [0.1, 0.1] for table in "abc"}
    errors |= {(table, "good"): [0.05, 0.05] for table in "abc"}
    errors |= {(table, "bad"): [0.2, 0.2] for table in "bc"} | {("a", "bad"): [0.4, 0.4]}
    errors |= {("c", "seldom"): [0.01, 0.01]}
    records = cells_of(errors, taus={"good": 0.75})
    table = figures.overall(figures.by_cell(records), "random").set_index("method")
    assert list(table.index) == ["good", "random", "bad", "seldom"]
    assert table["tables"].tolist() == [3, 3, 3, 1]
    assert (table.loc["bad", "worst"], table.loc["bad", "worst_table"]) == (4, "a")
    assert table.loc["bad", 50].value == pytest.approx(16 ** (1 / 3))
    assert table.loc["good", "tau_gain"] == 0.25
    assert figures.overall(figures.by_cell(records), "performance").empty


PAGE = "# m\n\nProse.\n\n<!-- numbers: m -->\nold\n<!-- end -->\nMore \\1 prose.\n"


def test_a_page_is_filled_between_its_markers_and_nowhere_else(pages):
    once = pages.fill(PAGE, {"m": "a \\g<0> | b\n\n", "other": "x"})
    assert once == PAGE.replace("old", "a \\g<0> | b")
    assert pages.fill(once, {"m": "old"}) == PAGE
    empty = "<!-- numbers: m -->\n<!-- end -->\n"
    assert pages.fill(empty, {"m": "new"}) == "<!-- numbers: m -->\nnew\n<!-- end -->\n"


@pytest.mark.parametrize(
    "text",
    [
        PAGE.replace("<!-- end -->", ""),
        PAGE.replace("numbers: m", "numbers: n"),
        PAGE.replace("old", "<!-- numbers: m -->"),
        PAGE + "<!-- end -->",
    ],
)
def test_markers_that_are_amiss_are_not_passed_over(pages, text):
    with pytest.raises(pages.MarkerError, match=r"here\.md"):
        pages.fill(text, {"m": "new"}, "here.md")


def test_claims_written_by_hand_are_kept(pages):
    text = "a\n<!-- claims -->\nBy *hand*.\n\nTwo lines.\n<!-- end claims -->\nb"
    assert pages.kept_claims(text) == "By *hand*.\n\nTwo lines.\n"
    assert pages.kept_claims("nothing yet") is None
    with pytest.raises(pages.MarkerError):
        pages.kept_claims("<!-- claims -->\nno end")


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
        tau=1.0,
        items_run=10.0,
        seconds=0.5,
        notes=("said",),
    )
    _append(path, one)
    with path.open("a") as file:
        file.write('\n{"key": "torn')
    two = Record("k2", "t", "random", 0, "m", "parts", 20, failed="no")
    _append(path, two)
    found = read_records(path)
    assert found["m", "parts", 10] == one
    assert found["m", "parts", 20].failed == "no"
    assert len(found) == 2


def test_the_same_cell_as_compare_and_none_is_run_twice(tmp_path, monkeypatch):
    """On a table of our own: figures as compare gives them, refusals kept, a cache that holds."""
    from _baselines import cells, tables
    from fewbench.errors import MethodError
    from fewbench.methods import find_method
    from fewbench.study import SplitSettings, compare
    from fewbench.testing import simulate

    class Refuses:
        plain_sampling = False

        def describe(self):
            return "refuses"

        def start(self, scores, budget, seed, targets):
            raise MethodError(f"not with {budget} items")

    scores = simulate(20, 60, seed=2)
    loaded = tables.Loaded(scores, "", {"low-rank": ("too small",)}, {})
    monkeypatch.setattr(cells, "load", lambda folder, name: loaded)
    monkeypatch.setattr(
        cells, "find_method", lambda name: Refuses() if name == "refuses" else find_method(name)
    )
    names = ("random", "random-linear", "low-rank", "refuses")
    plan = cells.Plan(tmp_path, tmp_path / "cache", names, float("inf"))
    table = tables.Table("ours", 2)
    done = list(cells.run_all(plan, [table], 1))
    assert sum(job.fresh for job in done) == 3 * 4 * 2 * 2  # methods × budgets × splits × repeats
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
    assert sum(job.unrun for job in cells.run_all(late, [table], 1)) == 48
