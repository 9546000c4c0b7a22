"""Null studies: where there is no difference, a comparison claims one as seldom as it says.

Plain random sampling is compared with itself under another seed, and with its exact expected
error, through the functions by which `compare` judges, and some studies through `compare`.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from fewbench.methods import Method, find_method
from fewbench.study import SplitSettings, compare, make_split
from fewbench.study.inference import (
    expected_random_mae,
    model_groups,
    tied_with_best,
    two_way,
)
from fewbench.testing import simulate

pytestmark = pytest.mark.slow
STUDIES, REPEATS, RESAMPLES = 120, 10, 299
TABLES = ("simulated", "gsm8k_150", "openllm2_math_musr")
BUDGETS = (20, 50)
EQUAL = 6
"""Methods without a difference."""


class Null:
    """A table with dates that say nothing, and what is needed of it."""

    def __init__(self, scores):
        order = np.random.default_rng(0).permutation(scores.n_models)
        dates = [f"2024-01-{1 + at * 28 // scores.n_models:02d}" for at in order]
        self.scores = replace(scores, models=scores.models.assign(date=dates))
        self.full = scores.full_scores()
        self.groups = model_groups(scores)
        self.expected = {budget: expected_random_mae(scores, budget) for budget in BUDGETS}


@pytest.fixture(scope="module")
def null(real):
    @cache
    def of(name):
        return Null(simulate(100, 400, seed=1) if name == "simulated" else real(name))

    return of


def null_study(null, kind, repeats, seed):
    """Whether intervals hold no difference, and p-values are below .05: of two, of one to exact."""
    scores = null.scores
    rng = np.random.default_rng(seed)
    budget = BUDGETS[seed % 2]
    splits = [make_split(scores, SplitSettings(kind), seed, repeat) for repeat in range(repeats)]
    errors = [[] for _ in range(EQUAL)]
    others = np.random.default_rng([seed, 1])
    for split in splits:
        for at, one in enumerate(errors):
            items = (rng if at < 2 else others).permutation(scores.n_items)[:budget]
            estimate = scores.values[split.targets][:, items].mean(axis=1)
            one.append(np.abs(estimate - null.full[split.targets]))
    names = [[scores.model_ids[at] for at in split.targets] for split in splits]
    resampled = two_way(names, null.groups, seed, RESAMPLES)
    every = [resampled.parts(one) for one in errors]
    ours, theirs = every[:2]
    exact = resampled.parts([null.expected[budget][split.targets] for split in splits])
    difference = resampled.compare(ours, theirs)
    ratio = resampled.figure(resampled.ratio(ours, theirs), ratio=True)
    to_exact = resampled.ratio(ours, exact)
    of_exact = resampled.figure(to_exact, ratio=True)
    best = tied_with_best(resampled, dict(zip("abcdef", every, strict=True)))
    return (
        difference.low <= 0 <= difference.high,
        ratio.low <= 1 <= ratio.high,
        of_exact.low <= 1 <= of_exact.high,
        difference.p_value < 0.05,
        resampled.p_value(to_exact, 1.0, ratio=True) < 0.05,
        len(best.level) == EQUAL,
    )


# With drawn targets 85 to 97 %; Student's form of fixed targets may hold more, never less.
@pytest.mark.parametrize(
    ("name", "kind", "most"),
    [
        *((name, "random", 0.975) for name in TABLES),
        ("openllm2_math_musr", "chronological", 1.0),
        ("gsm8k_150", "performance", 1.0),
    ],
)
def test_no_difference_is_held_as_often_as_stated(null, name, kind, most):
    found = np.array([null_study(null(name), kind, REPEATS, seed) for seed in range(STUDIES)])
    held_difference, held_ratio, held_exact, p_two, p_exact, level = found.mean(axis=0)
    assert level >= 0.85, (name, kind, level)
    for held in (held_difference, held_ratio):
        assert 0.85 <= held <= most, (name, kind, found.mean(axis=0))
    assert p_two <= 0.08, (name, kind, p_two)
    # Ten draws of one method: on the last table one draw moves the errors of 111 targets.
    assert 0.8 <= held_exact <= most, (name, kind, held_exact)
    assert p_exact <= 0.13, (name, kind, p_exact)


@pytest.mark.parametrize(("kind", "repeats"), [("random", 3), ("performance", 3)])
def test_few_repeats_hold_no_difference_too(null, kind, repeats):
    """Percentiles alone hold it in 76 to 83 % of studies of this table.

    Holm's rule against the best of six equal methods calls another one worse in 16 % of them.
    """
    study = null(TABLES[-1])
    found = np.array([null_study(study, kind, repeats, seed) for seed in range(STUDIES)])
    assert found[:, 5].mean() >= 0.85, found.mean(axis=0)
    assert found[:, :2].mean(axis=0).min() >= 0.85, found.mean(axis=0)
    assert found[:, 3].mean() <= 0.08, found.mean(axis=0)


@pytest.mark.parametrize("kind", ["random", "performance"])
def test_compare_itself_claims_no_difference_between_the_same(kind):
    """Through `compare`: two random samplers under other names, that draw other items."""

    class Other(Method):
        plain_sampling = True

        def __init__(self, number):
            self.number, self.method = number, find_method("random")

        def describe(self):
            return f"other-{self.number}"

        def start(self, scores, budget, seed, targets):
            return self.method.start(scores, budget, seed + 7919 * self.number, targets)

    scores = simulate(60, 120, seed=5)
    held = []
    for seed in range(8):
        found = compare(scores, [Other(1)], [15], SplitSettings(kind), 4, seed, level=None)
        cells = found.cells.set_index("method")
        gap = found.paired("other-1", "random", 15)
        assert (gap.p_value <= 0.1) == (not gap.low <= 0 <= gap.high)
        for name in ("other-1", "random"):
            row = cells.loc[name]
            held.append(row["ratio_to_random_low"] <= 1 <= row["ratio_to_random_high"])
        held.append(gap.low <= 0 <= gap.high)
    assert np.mean(held) >= 0.85
