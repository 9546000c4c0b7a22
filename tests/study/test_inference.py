"""The one set of functions by which comparisons say how sure they are."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.decide.multiple import adjusted_p_values
from fewbench.methods import find_method
from fewbench.scores import from_arrays
from fewbench.study import SplitSettings, make_split
from fewbench.study.inference import (
    expected_random_mae,
    model_groups,
    tied_with_best,
    too_few_repeats,
    two_way,
)
from fewbench.testing import simulate


def names(count, start=0):
    return [f"m{at}" for at in range(start, start + count)]


def drawn_splits(repeats, models, targets, seed=0):
    rng = np.random.default_rng(seed)
    return [[f"m{at}" for at in rng.permutation(models)[:targets]] for _ in range(repeats)]


# Two-way resampling


def test_weights_are_products_of_counts_of_repeats_and_models():
    """One (repeat, target) pair at a time is checked against the definition."""
    targets = [["a", "b"], ["b", "c", "d"], ["a", "d"]]
    resampled = two_way(targets, {"a": 0, "b": 1, "c": 1, "d": 2}, seed=4, resamples=50)
    errors = [np.array([0.1, 0.3]), np.array([0.2, 0.5, 0.4]), np.array([0.0, 0.7])]
    found = resampled.mean(resampled.parts(errors))
    assert len(found) == 1 + 3 * 50
    for row in range(51):
        total = mass = 0.0
        for repeat, values in enumerate(errors):
            counts = resampled.models[row, resampled.group_of[repeat]]
            if counts.sum():
                total += resampled.repeats[row, repeat] * (counts @ values) / counts.sum()
                mass += resampled.repeats[row, repeat]
        assert found[row] == pytest.approx(total / mass) if mass else np.isnan(found[row])
    assert found[0] == pytest.approx(np.mean([0.2, 1.1 / 3, 0.35]))  # a repeat weighs as another


@pytest.mark.parametrize("repeats", [1, 2])
def test_fewer_than_three_repeats_have_no_interval(repeats):
    resampled = two_way(drawn_splits(repeats, 20, 10))
    errors = [np.linspace(0, 1, 10)] * repeats
    parts = resampled.parts(errors)
    figure = resampled.figure(resampled.mean(parts))
    assert figure.value == pytest.approx(0.5)
    assert np.isnan([figure.se, figure.low, figure.high]).all()
    assert np.isnan(resampled.p_value(resampled.mean(parts)))
    assert f"their errors move together; run at least {3 - repeats} more" in too_few_repeats(
        repeats
    )
    assert too_few_repeats(3) is None


def test_one_group_of_models_has_no_interval():
    resampled = two_way([names(4)] * 5, dict.fromkeys(names(4), 0))
    assert np.isnan(resampled.figure(resampled.mean(resampled.parts([np.ones(4)] * 5))).low)


def test_fixed_targets_get_students_interval():
    """The variance is that of repeats and of models less that of neither, not their sum."""
    from scipy import stats

    rng = np.random.default_rng(1)
    resampled = two_way([names(30)] * 4)
    errors = rng.random((4, 30)) + rng.normal(size=(4, 1)) + 2 * rng.normal(size=30)
    figure = resampled.figure(resampled.mean(resampled.parts(list(errors))))
    by_repeats = errors.mean(axis=1).var(ddof=1) / 4
    by_models = errors.mean(axis=0).var(ddof=1) / 30
    residual = errors - errors.mean(axis=1, keepdims=True) - errors.mean(axis=0) + errors.mean()
    neither = (residual**2).sum() / (4 * 30) ** 2
    assert figure.se**2 == pytest.approx(by_repeats + by_models - neither, rel=0.1)
    shares = by_repeats**2 / 3 + (figure.se**2 - by_repeats) ** 2 / 29
    half = stats.t.ppf(0.95, figure.se**4 / shares) * figure.se
    assert figure.high - figure.value == pytest.approx(half, rel=0.1)
    assert figure.value - figure.low == pytest.approx(figure.high - figure.value)


@given(
    repeats=st.integers(3, 6),
    fixed=st.booleans(),
    ratio=st.booleans(),
    shift=st.floats(-0.5, 0.5),
    seed=st.integers(0, 1000),
    alpha=st.sampled_from([0.02, 0.1, 0.2, 0.5]),
)
def test_p_values_are_the_smallest_level_that_excludes_no_difference(
    repeats, fixed, ratio, shift, seed, alpha
):
    rng = np.random.default_rng(seed)
    targets = [names(12)] * repeats if fixed else drawn_splits(repeats, 20, 12, seed)
    resampled = two_way(targets, seed=seed, resamples=499)
    ours, theirs = (
        resampled.parts(list(rng.uniform(0.1, 1, (repeats, 12)) + add)) for add in (shift + 0.6, 0)
    )
    null = 1.0 if ratio else 0.0
    statistic = resampled.ratio(ours, theirs) if ratio else resampled.difference(ours, theirs)
    figure = resampled.figure(statistic, 1 - alpha, ratio=ratio)
    p = resampled.p_value(statistic, null, ratio=ratio)
    excluded = not figure.low <= null <= figure.high
    assert excluded == (p <= alpha)
    assert 0 < p <= 1
    assert figure.low <= figure.value <= figure.high or not fixed


def test_repeats_that_one_of_the_two_lacks_do_not_count():
    resampled = two_way([names(3)] * 4)
    ours = resampled.parts([np.full(3, 0.2), None, np.full(3, 0.4), np.full(3, 0.6)])
    theirs = resampled.parts([np.full(3, 0.1), np.full(3, 9.0), np.full(3, 0.1), None])
    assert resampled.mean(ours)[0] == pytest.approx(0.4)
    assert resampled.difference(ours, theirs)[0] == pytest.approx(0.2)
    assert resampled.ratio(ours, theirs)[0] == pytest.approx(3.0)


def test_families_and_copies_are_one_group():
    rng = np.random.default_rng(0)
    values = (rng.random((5, 60)) < 0.5).astype(float)
    values[4] = values[0]
    table = from_arrays(values, models=names(5), families=["x", "y", "y", "", ""])
    groups = model_groups(table)
    assert groups["m1"] == groups["m2"]
    assert groups["m0"] == groups["m4"]
    assert len(set(groups.values())) == 3


# Level with the best


def test_tied_with_the_best_is_what_cannot_be_told_from_it():
    rng = np.random.default_rng(0)
    resampled = two_way(drawn_splits(8, 60, 30))
    size = {"good": 0.020, "as good": 0.0203, "bad": 0.06}
    errors = {
        name: resampled.parts([one * rng.uniform(0.5, 1.5, 30) for _ in range(8)])
        for name, one in size.items()
    }
    errors["failed"] = resampled.parts([None] * 8)
    found = tied_with_best(resampled, errors)
    assert found.judged
    assert found.best in ("good", "as good")
    assert found.level == {"good", "as good"}
    few = two_way(drawn_splits(2, 60, 30))
    found = tied_with_best(few, {"a": few.parts([np.ones(30)] * 2)})
    assert (found.best, found.level, found.judged) == ("a", frozenset(), False)
    assert tied_with_best(few, {}).best is None


@pytest.mark.slow
@pytest.mark.parametrize(("n_methods", "repeats"), [(8, 10)])
def test_random_sampling_is_not_worse_than_the_luckiest_of_its_equals(n_methods, repeats):
    """Null studies at 90 %: unadjusted, 8 equal methods make random worse in 45 % of them."""
    table, budget, worse, found = simulate(60, 200, seed=1), 20, [], []
    groups, expected = model_groups(table), expected_random_mae(table, budget)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        splits = [make_split(table, SplitSettings("random"), seed, at) for at in range(repeats)]
        targets = [split.targets for split in splits]
        resampled = two_way([[table.model_ids[m] for m in at] for at in targets], groups, seed, 299)
        errors = {
            name: resampled.parts([random_errors(table, at, budget, rng) for at in targets])
            for name in ("random", *map(str, range(n_methods)))
        }
        exact = {"random": resampled.parts([expected[at] for at in targets])}
        worse.append("random" not in tied_with_best(resampled, errors, exact=exact).level)
        errors["better"] = errors["0"] / 2
        found.append("random" not in tied_with_best(resampled, errors, exact=exact).level)
    assert np.mean(worse) <= 0.15
    assert np.mean(found) >= 0.95


def random_errors(table, targets, budget, rng):
    """Errors of the means of random items, the same for all targets."""
    items = rng.permutation(table.n_items)[:budget]
    return np.abs(table.values[targets][:, items].mean(axis=1) - table.full_scores()[targets])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.01, 0.5))
def test_holm_rejects_between_bonferroni_and_no_correction(p_values, alpha):
    values = np.array(p_values)
    rejected = adjusted_p_values(values) <= alpha + 1e-12
    assert rejected[values <= alpha / len(values)].all()
    assert (values[rejected] <= alpha + 1e-9).all()
    adjusted = np.maximum.accumulate(
        [p * (len(values) - at) for at, p in enumerate(sorted(p_values))]
    )
    assert rejected.sum() == (adjusted <= alpha + 1e-9).sum()


# Exact expectations


@given(st.integers(1, 9), st.data())
def test_the_exact_error_is_the_mean_over_all_subsets(n_items, data):
    budget = data.draw(st.integers(1, n_items))
    row = data.draw(st.lists(st.sampled_from([0, 1]), min_size=n_items, max_size=n_items))
    table = from_arrays([row], models=["a"])
    subsets = itertools.combinations(row, budget)
    brute = np.mean([abs(np.mean(one) - np.mean(row)) for one in subsets])
    assert expected_random_mae(table, budget)[0] == pytest.approx(brute, abs=1e-12)


def test_the_exact_error_of_large_tables_is_that_of_the_distribution():
    from scipy import stats

    rng = np.random.default_rng(0)
    table = from_arrays((rng.random((3, 12000)) < [[0.02], [0.5], [0.9]]) * 1, models=list("abc"))
    for budget in (1, 100, 11999, 12000):
        right = table.values.sum(axis=1)
        x = np.arange(budget + 1)[:, None]
        chance = stats.hypergeom.pmf(x, 12000, right, budget)
        brute = (chance * np.abs(x / budget - right / 12000)).sum(axis=0)
        np.testing.assert_allclose(expected_random_mae(table, budget), brute, atol=1e-10)


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_drawn_expectations_are_those_of_the_method_random(average):
    """Fractional scores or a macro average: no closed form, so compared with the method itself."""
    rng = np.random.default_rng(0)
    values = rng.random((4, 30)) if average == "micro" else (rng.random((4, 30)) < 0.6) * 1.0
    tasks = ["a"] * 22 + ["b"] * 8
    table = from_arrays(values, models=names(4), tasks=tasks).averaged(average)
    method, errors = find_method("random"), []
    for seed in range(1500):
        session = method.start(table, 6, seed, ["m0"])
        items = session.ask()["m0"]
        weights = table.item_weights[items] / table.item_weights[items].sum()
        errors.append(np.abs(values[:, items] @ weights - table.full_scores()))
    expected = expected_random_mae(table, 6)
    np.testing.assert_allclose(expected, np.mean(errors, axis=0), rtol=0.08)
    assert (expected_random_mae(table, 6) == expected).all()
    assert expected_random_mae(table, 6, [2])[0] == pytest.approx(expected[2])
    assert (expected_random_mae(table, 30) == 0).all()
