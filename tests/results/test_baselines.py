"""What the papers that fewbench compares with claim, on real tables (docs/baselines.md)."""

import numpy as np
import pytest

from fewbench.study import SplitSettings, compare, make_split
from fewbench.study.inference import expected_random_mae

pytestmark = pytest.mark.slow

LIKE = SplitSettings("random")
STRONGER = SplitSettings("performance")


@pytest.fixture(scope="module")
def like(real):
    methods = ["random", "random-ridge", "greedy-ridge", "gp-irt-anchor", "fluid"]
    methods += ["metabench-unfiltered", "best-for-validation", "anchor-irt", "p-irt"]
    return {
        name: compare(real(name), methods, [10, 30], LIKE, 3, level=None)
        for name in ("gsm8k_150", "glue_rte")
    }


def error(outcome, method, budget):
    cells = outcome.cells
    return float(cells[(cells["method"] == method) & (cells["budget"] == budget)]["mae"].iloc[0])


@pytest.mark.parametrize("table", ["gsm8k_150", "glue_rte"])
@pytest.mark.parametrize(
    "method",
    ["gp-irt-anchor", "metabench-unfiltered", "best-for-validation", "fluid", "greedy-ridge"],
)
def test_better_than_random_sampling_where_targets_are_like_the_sources(like, table, method):
    for budget in (10, 30):
        assert error(like[table], method, budget) < 0.95 * error(like[table], "random", budget)


@pytest.mark.parametrize("table", ["gsm8k_150", "glue_rte"])
def test_weighing_mean_and_model_is_no_worse_than_either(like, table):
    """gp-IRT (tinyBenchmarks, Eq. 3.2) against anchor-irt and p-irt on the same items."""
    for budget in (10, 30):
        best = min(error(like[table], name, budget) for name in ("anchor-irt", "p-irt"))
        assert error(like[table], "gp-irt-anchor", budget) < 1.1 * best


def test_choosing_items_beats_regression_on_random_ones(like):
    """Zhang, Dorner & Hardt 2025: random and regression is hard to beat. It is not, here."""
    for table in like.values():
        assert error(table, "greedy-ridge", 30) < error(table, "random-ridge", 30)


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
