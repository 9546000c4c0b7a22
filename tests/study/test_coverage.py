"""Intervals hold what they state on targets like the sources."""

import numpy as np
import pytest

from fewbench.study import SplitSettings, compare
from fewbench.testing import simulate


@pytest.fixture(scope="module")
def cells():
    table = simulate(48, 150, seed=7)
    found = compare(table, [], [20], SplitSettings("group", 0.25), repeats=6)
    return found.cells.set_index("method")


@pytest.mark.parametrize("method", ["random", "random-ridge"])
def test_coverage_is_about_the_stated_level(cells, method):
    assert 0.8 <= cells.loc[method, "coverage90"] <= 1


def test_intervals_are_not_wide_for_nothing(cells):
    # Random items: about 2 × 1.65 × sqrt(0.25 / 20 × (1 - 20 / 150)), and a little, for exactness.
    assert 0.1 < cells.loc["random", "half_width90"] < 0.21
    assert cells.loc["random-ridge", "half_width90"] < 3 * cells.loc["random-ridge", "mae"]
    assert np.isfinite(cells["half_width90"]).all()
