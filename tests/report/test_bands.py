"""Mean and spread of every method: what is drawn is what the repeats say."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fewbench.report import write_report
from fewbench.report.bands import budget_axis, ends, one_budget, panels, several, upper
from fewbench.report.identity import looks
from fewbench.report.lines import error_lines
from fewbench.report.results import read
from fewbench.report.scales import Scale

SMALL = {"targets": 12, "repeats": 4, "tasks": 2, "splits": ("random",)}


def shapes(picture, cls):
    """Corners, shape (corners, 2), of every path of a class."""
    found = re.findall(rf'<path d="M([^"Z]+)Z?" class="{cls}"', picture)
    return [np.array([[float(v) for v in at.split()] for at in d.split("L")]) for d in found]


@pytest.fixture
def drawn(make_comparison):
    """Results, looks, and the comparison that they are of."""

    def make(**options):
        made = make_comparison(**{**SMALL, **options})
        results = read(made)
        return results, looks(results.methods, results.reference), made

    return make


def test_the_band_is_one_standard_deviation_of_the_repeats(drawn):
    results, look, made = drawn()
    table = made.estimates.assign(gap=lambda t: (t["estimate"] - t["truth"]).abs())
    runs = 100 * table.groupby(["method", "budget", "repeat"])["gap"].mean().unstack("repeat")
    high = upper(results)
    assert (runs.mean(axis=1) + runs.std(axis=1)).max() <= high
    for of, _, picture in panels(results, "random", look):
        band, line = shapes(picture, "band")[-1], shapes(picture, "(?:line|line dashed)")[-1]
        up = Scale(0, high, 132, 8)  # from the axis to the top of the panel
        own = runs.loc[of.name]
        means, spread = own.mean(axis=1), own.std(axis=1)
        np.testing.assert_allclose(line[:, 1], [up(v) for v in means], atol=0.06)
        np.testing.assert_allclose(band[:3, 1], [up(v) for v in means + spread], atol=0.06)
        np.testing.assert_allclose(band[:2:-1, 1], [up(v) for v in means - spread], atol=0.06)
        np.testing.assert_array_equal(band[:3, 0], line[:, 0])


def test_every_panel_holds_the_reference_and_is_on_the_same_axes(drawn):
    results, look, _ = drawn()
    made = panels(results, "random", look)
    assert [of.name for of, _, _ in made] == results.ranked(50, "random")
    own = next(picture for of, _, picture in made if of.name == "random")
    (line,) = shapes(own, "line dashed")
    for of, said, picture in made:
        cell = results.at(of.name, 50, "random")
        assert said == f"{100 * cell['mae']:.2f} ± {100 * cell['mae_sd']:.2f} pp"
        if of.name != "random":
            behind = picture[picture.index('class="behind ref"') - 900 :]
            np.testing.assert_array_equal(shapes(behind, "line dashed")[0], line)
            assert len(shapes(picture, "band")) == 2


@pytest.mark.parametrize("methods", [2, 3, 4, 9])
def test_many_bands_are_not_laid_over_each_other(drawn, methods):
    names = ("random", *(f"method {i}" for i in range(methods - 1)))
    results, look, _ = drawn(methods=names)
    picture = error_lines(results, "random", look)
    assert len(shapes(picture, "band")) == methods
    assert several(results) == (methods > 2)
    assert ('class="lines bare"' in picture) == (methods > 2)
    assert picture.count('class="series ') == methods


def test_the_page_says_what_the_band_is(make_comparison, tmp_path):
    def page(**options):
        made = make_comparison(**{**SMALL, **options})
        return write_report(made, tmp_path / "report.html").read_text("utf-8")

    text = page()
    assert "on average over 4 repeats" in text
    assert "The band is one standard deviation over the repeats to either side" in text
    assert "Mean and spread of each method" in text
    assert "the grey line and band are random, the reference" in text
    few = page(methods=("random", "other"))
    assert "The band is one standard deviation" in few
    assert "Mean and spread of each method" not in few
    assert "Point at" not in few
    assert "The bar is one standard deviation" in page(budgets=(50,))
    alone = page(repeats=1)
    assert "Nothing is known of the spread over repeats: there was one." in alone
    assert 'class="band"' not in alone
    assert "standard deviation" not in alone


def test_a_method_whose_repeats_do_not_differ_has_no_band(make_comparison, tmp_path):
    made = make_comparison(**SMALL)
    steady = made.cells["method"] == "disagreement items"
    made.cells.loc[steady, ["mae_sd", "mae_se"]] = np.nan
    results = read(made)
    look = looks(results.methods, results.reference)
    bands = {of.name: len(shapes(p, "band")) for of, _, p in panels(results, "random", look)}
    assert bands.pop("disagreement items") == 1  # the reference's
    assert bands.pop("random") == 1
    assert set(bands.values()) == {2}
    text = write_report(made, tmp_path / "report.html").read_text("utf-8")
    assert "Where there is none, the repeats did not differ" in text


def test_an_error_is_not_below_nothing(drawn):
    results, _, made = drawn()
    made.cells["mae_sd"] = 2 * made.cells["mae"]
    results = read(made)
    assert all(ends(cell)[0] == 0 < ends(cell)[1] for cell in results.cells.values())


def test_one_budget_has_a_row_for_each_method(drawn):
    results, look, _ = drawn(budgets=(50,))
    picture = one_budget(results, "random", look)
    assert picture.count('class="interval"') == len(results.methods)
    for name in results.methods:
        cell = results.at(name, 50, "random")
        low, high = (f"{end:.2f}" for end in ends(cell))
        assert f"{name}, 50 items: {100 * cell['mae']:.2f} [{low} to {high}]" in picture


def test_the_first_and_the_last_budget_are_always_named():
    budgets = (5, 10, 20, 950, 990, 1000)
    axis = "".join(budget_axis(budgets, Scale(5, 1000, 30, 190), 100, 12))
    named = re.findall(r">([\d,]+)</text>", axis)
    assert sorted(named, key=len) == ["5", "1,000"]
    assert axis.count('class="axis"') == len(budgets)
