"""fewbench's own method on real tables: like the sources, and stronger than all of them."""

import pytest

from fewbench.study import SplitSettings, compare

pytestmark = pytest.mark.slow

METHODS = ["fewbench", "fewbench-static", "greedy-ridge"]


def ratios(table, split):
    """Return each method's error over the expected error of random sampling, at 30 items."""
    outcome = compare(table, METHODS, [30], SplitSettings(split), 3, level=None)
    return outcome.cells.set_index("method")["ratio_to_random"]


@pytest.mark.parametrize("name", ["helm_med_qa"])
def test_targets_like_the_sources_and_beyond_them(real, name):
    table = real(name)
    like = ratios(table, "random")
    assert like["fewbench"] < 0.75
    assert like["fewbench"] < like["greedy-ridge"] + 0.1
    beyond = ratios(table, "performance")
    assert max(beyond["fewbench"], beyond["fewbench-static"]) < 0.95
    assert beyond["greedy-ridge"] > 1.2  # which extrapolates badly
