"""TailoredBench on the paper's own GSM8K table (benchmarks/results/tailoredbench.md has all rows).

Figures are the paper's where it gives them and its program reaches them, else those of an
independent implementation; they are themselves means over some 30 seeds.
"""

import numpy as np
import pytest

from fewbench.study import SplitSettings, compare

pytestmark = pytest.mark.slow

GIVEN, HALVES = SplitSettings("given"), SplitSettings("random", 0.5)


def check(cells, method, metric, expected, scale=1):
    """Within two standard errors of the difference, theirs taken for as large as ours."""
    mine = cells[cells["method"] == method]
    apart = np.abs(scale * mine[metric].to_numpy() - expected)
    allowed = 2 * np.sqrt(2) * scale * mine[f"{metric}_se"].to_numpy() + 0.5 * 10.0**-3
    assert (apart <= allowed).all(), f"{mine[metric].tolist()} against {expected}"


def test_as_published_and_as_printed(real):
    """The program is better than its equations."""
    methods = ["tailored", "tailored-as-printed"]
    published = compare(real("gsm8k_150"), methods, [20, 30, 40], GIVEN, 4, level=None).cells
    check(published, "tailored", "kendall_tau", [0.854, 0.862, 0.881])
    mine = published[published["method"] == "tailored"].set_index("budget")["mae"]
    # theirs .036 .032 .029: ours may be less than two standard errors worse, and is not
    assert (mine.to_numpy() <= [0.037, 0.033, 0.030]).all()
    assert (mine.to_numpy() >= [0.031, 0.029, 0.026]).all()
    check(published, "tailored-as-printed", "kendall_tau", [0.796, 0.819, 0.828])
    check(published, "tailored-as-printed", "mae", [0.049, 0.044, 0.042])
    tau = published.pivot(index="method", columns="budget", values="kendall_tau")
    assert (tau.loc["tailored"] > tau.loc["tailored-as-printed"] + 0.02).all()


def test_on_models_divided_anew_a_static_method_is_as_good_or_better(real):
    """What the table beside it must show: k-medoids and ridge need no second round."""
    outcome = compare(
        real("gsm8k_150"), ["tailored", "kmedoids-ridge"], [30], HALVES, 6, level=None
    )
    check(outcome.cells, "tailored", "mae", [0.037])
    tau = outcome.repeats.pivot(index="repeat", columns="method", values="kendall_tau")
    ahead = tau["kmedoids-ridge"] - tau["tailored"]
    assert ahead.mean() > -2 * ahead.std() / np.sqrt(len(ahead))


def test_what_the_parts_do(real):
    """In direction: Tables 2, 3, 9 and 10 of the paper."""
    parts = {
        "published": "tailored",
        "cosine": "tailored(metric=cosine)",
        "correlation": "tailored(metric=correlation)",
        "uncalibrated": "tailored(calibrate=false)",
        "dynamic": "tailored(natives=dynamic)",
        "free": "tailored(anchored=false)",
        "all": "tailored(natives=all)",
    }
    outcome = compare(real("gsm8k_150"), list(parts.values()), [30], GIVEN, 4, level=None)
    cells = outcome.cells.set_index("method")
    tau, mae = (
        {name: cells.loc[text, m] for name, text in parts.items()} for m in ("kendall_tau", "mae")
    )
    assert tau["published"] > tau["cosine"] > tau["correlation"]
    assert mae["published"] < mae["cosine"] < mae["correlation"]
    assert mae["uncalibrated"] > mae["published"]
    assert tau["dynamic"] > tau["published"]
    assert tau["free"] < tau["published"]
    assert tau["all"] < tau["published"]
