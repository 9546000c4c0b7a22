"""What the papers that fewbench compares with claim, on real tables (docs/results.md)."""

import numpy as np
import pytest

from fewbench.study import SplitSettings, compare, make_split
from fewbench.study.inference import expected_random_mae

pytestmark = pytest.mark.slow

LIKE = SplitSettings("random")
STRONGER = SplitSettings("performance")


def error(outcome, method, budget):
    cells = outcome.cells
    return float(cells[(cells["method"] == method) & (cells["budget"] == budget)]["mae"].iloc[0])


@pytest.mark.parametrize("table", ["gsm8k_150", "glue_rte"])
def test_where_targets_are_like_the_sources(real, table):
    """Better than random sampling; and two claims on which methods are best.

    gp-IRT (tinyBenchmarks, Eq. 3.2) is no worse than anchor-irt and p-irt on the same items.
    Random items and regression are hard to beat (Zhang, Dorner & Hardt 2025): not here.
    """
    better = ["gp-irt-anchor", "metabench-unfiltered", "best-for-validation", "fluid"]
    methods = ["random", "random-ridge", "greedy-ridge", *better, "anchor-irt", "p-irt"]
    like = compare(real(table), methods, [10, 30], LIKE, 3, level=None)
    for budget in (10, 30):
        for method in (*better, "greedy-ridge"):
            ratio = error(like, method, budget) / error(like, "random", budget)
            assert ratio < 0.95, (method, budget)
        best = min(error(like, name, budget) for name in ("anchor-irt", "p-irt"))
        assert error(like, "gp-irt-anchor", budget) < 1.1 * best
    assert error(like, "greedy-ridge", 30) < error(like, "random-ridge", 30)


@pytest.mark.parametrize("table", ["gsm8k_150", "helm_gsm", "glue_rte"])
def test_only_aipw_does_not_fail_where_targets_are_stronger(real, table):
    """Zhang, Dorner & Hardt 2025, their extrapolation."""
    outcome = compare(
        real(table), ["random", "aipw", "random-ridge", "p-irt"], [30], STRONGER, 3, level=None
    )
    random = error(outcome, "random", 30)
    assert error(outcome, "aipw", 30) < 1.15 * random
    assert error(outcome, "random-ridge", 30) > 1.3 * random


@pytest.mark.parametrize("table", ["glue_sst2", "glue_rte"])
def test_fluid_does_not_mislead_where_one_ability_is_not_the_score(real, table):
    """As printed it errs more than twice as much as random sampling, and worse with more items."""
    scores = real(table)
    methods = ["random", "fluid", "fluid-as-printed"]
    outcome = compare(scores, methods, [50, 100], STRONGER, 2, level=None)
    targets = make_split(scores, STRONGER, 0, 0).targets
    for budget in (50, 100):
        plain = expected_random_mae(scores, budget, targets).mean()
        assert error(outcome, "fluid", budget) < 1.3 * plain
        assert error(outcome, "fluid-as-printed", budget) > 2 * plain


def test_strata_of_like_difficulty_err_less_than_random_sampling(real):
    """SSEPY, over tables: its estimate is unbiased wherever the targets stand."""
    ratios = []
    for table in ("gsm8k_150", "helm_gsm", "helm_med_qa", "openllm2_math_musr"):
        outcome = compare(real(table), ["random", "ssepy"], [50], LIKE, 5, level=None)
        ratios.append(error(outcome, "ssepy", 50) / error(outcome, "random", 50))
    assert np.exp(np.mean(np.log(ratios))) < 0.95
