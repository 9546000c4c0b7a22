"""Differences and ratios of two methods' errors on the same targets."""

import numpy as np
import pandas as pd
import pytest

from fewbench.errors import StudyError
from fewbench.study import SplitSettings, compare
from fewbench.study.paired import error_difference, error_ratio
from fewbench.testing import simulate


def errors(values, repeats=1):
    values = np.asarray(values, dtype=float)
    n = len(values) // repeats
    return pd.DataFrame(
        {
            "target": [f"t{i}" for i in range(n)] * repeats,
            "repeat": np.repeat(np.arange(repeats), n),
            "error": values,
        }
    )


LOW, HIGH = np.linspace(0.01, 0.05, 12), np.linspace(0.06, 0.12, 12)


def test_the_better_method_has_the_negative_difference():
    found = error_difference(errors(LOW), errors(HIGH), 0)
    assert found.difference == pytest.approx(LOW.mean() - HIGH.mean())
    assert found.low <= found.difference <= found.high < 0
    assert found.p_value < 0.01
    back = error_difference(errors(HIGH), errors(LOW), 0)
    assert back.difference == pytest.approx(-found.difference)
    assert back.p_value == found.p_value


def test_equal_errors_prove_nothing():
    found = error_difference(errors(LOW), errors(LOW), 0)
    assert (found.difference, found.low, found.high) == (0, 0, 0)
    assert found.p_value == 1


def test_p_values_are_those_of_all_sign_flips():
    gaps = np.array([0.03, -0.01, 0.02, 0.02, 0.05])
    found = error_difference(errors(0.1 + gaps), errors(np.full(5, 0.1)), 0)
    signs = np.array(np.meshgrid(*[[-1, 1]] * 5)).reshape(5, -1).T
    exact = np.mean(np.abs(signs @ gaps) >= abs(gaps.sum()) - 1e-12)
    assert found.p_value == pytest.approx(exact, abs=0.03)


def test_p_values_of_no_difference_are_uniform():
    rng = np.random.default_rng(0)
    found = np.array(
        [
            error_difference(errors(rng.random(15)), errors(rng.random(15)), seed).p_value
            for seed in range(80)
        ]
    )
    assert (found < 0.1).mean() < 0.2
    assert 0.35 < (found < 0.5).mean() < 0.65


def test_repeats_of_a_target_are_not_independent():
    once = error_difference(errors(LOW), errors(LOW[::-1] + 0.005), 0)
    often = error_difference(
        errors(np.tile(LOW, 9), 9), errors(np.tile(LOW[::-1] + 0.005, 9), 9), 0
    )
    assert often.difference == pytest.approx(once.difference)
    assert often.p_value == pytest.approx(once.p_value)
    assert often.high - often.low == pytest.approx(once.high - once.low)


def test_ratio_interval_contains_the_ratio_and_tells_better_from_worse():
    found = error_ratio(errors(LOW), errors(HIGH), 0)
    assert found.ratio == pytest.approx(LOW.mean() / HIGH.mean())
    assert found.low < found.ratio < found.high < 1
    assert found.se > 0
    same = error_ratio(errors(LOW), errors(LOW), 0)
    assert (same.ratio, same.low, same.high, same.se) == (1, 1, 1, 0)


def test_ratio_of_one_target_has_no_interval():
    found = error_ratio(errors([0.1]), errors([0.2]), 0)
    assert found.ratio == pytest.approx(0.5)
    assert np.isnan([found.se, found.low, found.high]).all()


def test_only_common_targets_count():
    found = error_ratio(errors([0.1, 0.1, 0.9]), errors([0.2, 0.2]), 0)
    assert found.ratio == pytest.approx(0.5)


@pytest.fixture(scope="module")
def outcome():
    splits = [SplitSettings("random"), SplitSettings("performance")]
    table = simulate(24, 80, seed=1)
    return compare(table, ["random+mean"], [4, 40], splits, repeats=2, level=None)


def test_paired_takes_one_split_and_budget(outcome):
    found = outcome.paired("random", "random-ridge", 4, "random")
    cells = outcome.cells.set_index(["method", "budget", "split"])["mae"]
    expected = cells["random", 4, "random"] - cells["random-ridge", 4, "random"]
    assert found.difference == pytest.approx(expected)
    assert found.low <= found.difference <= found.high
    assert 0 < found.p_value <= 1
    same = outcome.paired("random", "random+mean", 4, "random")
    assert (same.difference, same.p_value) == (0, 1)


def test_paired_asks_which_split(outcome):
    with pytest.raises(StudyError, match="which split") as error:
        outcome.paired("random", "random-ridge", 4)
    assert "performance" in error.value.hint


@pytest.mark.parametrize(("method", "budget"), [("nope", 4), ("random", 5)])
def test_paired_needs_both_methods(outcome, method, budget):
    with pytest.raises(StudyError):
        outcome.paired(method, "random-ridge", budget, "random")
