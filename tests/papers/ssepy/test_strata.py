"""Strata and the difference estimator; easiness."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.errors import MethodError
from fewbench.methods import Answers, StaticMethod
from fewbench.methods.difficulty import difficulty_index
from fewbench.methods.prediction.mean import Mean
from fewbench.methods.selection.random import Random
from fewbench.scores import OptionProbabilities, from_arrays
from fewbench.testing import simulate
from fewbench_papers.algorithms.clustering.kmeans import line_clusters
from fewbench_papers.ssepy.difference import Difference
from fewbench_papers.ssepy.strata import Strata


def estimates(method, sources, targets, budget, seeds):
    """What the method says of targets with many seeds, shape (seeds, targets)."""
    found = np.empty((seeds, targets.n_models))
    for seed in range(seeds):
        subset = method.selector.select(sources, budget, seed)
        at = sources.positions(subset.items)
        told = Answers(at, targets.values[:, at])
        fitted = method.predictor.fit(sources, subset, seed)
        found[seed] = fitted.predict(told, tasks=False).scores
    return found


@pytest.fixture(scope="module")
def tables():
    """Many sources, and targets in the middle, so that no estimate is cut at 0 or 1."""
    table = simulate(60, 120, 3, seed=5)
    targets = np.argsort(np.abs(table.full_scores() - 0.55))[:10]
    rest = np.setdiff1d(np.arange(60), targets)
    return table.take(models=rest), table.take(models=targets)


METHODS = [
    StaticMethod(Strata(), Mean()),
    StaticMethod(Strata(allocation="neyman"), Mean()),
    StaticMethod(Strata(), Difference()),
    StaticMethod(Strata(5, "neyman"), Difference()),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "average"),
    list(zip(METHODS, ("micro", "macro", "macro", "micro"), strict=True)),
)
def test_right_on_average_over_seeds(tables, method, average):
    sources, targets = (table.averaged(average) for table in tables)
    found = estimates(method, sources, targets, 3 if average == "micro" else 17, 200)
    error = found.mean(axis=0) - targets.full_scores()
    assert (np.abs(error) < 4 * found.std(axis=0) / np.sqrt(len(found))).all()


def test_the_spread_is_that_of_the_textbook():
    """Proportional allocation without rounding: sum of (W² / n)(1 - n/N) S² over strata."""
    table = simulate(40, 100, 1, seed=8)
    values = table.values.copy()
    values[:39] = np.repeat([1.0, 0.0], 50)  # the sources see two strata of 50
    values[:19, 25:50] = 0.0  # ... and two within the first
    table = replace(table, values=values)
    sources, target = table.take(models=np.arange(39)), table.take(models=[39])
    found = estimates(StaticMethod(Strata(3), Mean()), sources, target, 20, 1000)
    y, variance = target.values[0], 0.0
    for items in (slice(0, 25), slice(25, 50), slice(50, 100)):
        stratum = y[items]
        size, n = len(stratum), len(stratum) // 5
        variance += (size / 100) ** 2 / n * (1 - n / size) * stratum.var(ddof=1)
    assert found.var() == pytest.approx(variance, rel=0.18)


@given(st.integers(1, 40), st.integers(0, 999), st.integers(1, 12), st.booleans(), st.booleans())
def test_every_stratum_is_sampled_and_weights_are_its_share(budget, seed, strata, neyman, macro):
    scores = simulate(9, 40, 4, seed=seed % 7).averaged("macro" if macro else "micro")
    selector = Strata(strata, "neyman" if neyman else "proportional")
    subset = selector.select(scores, budget, seed)
    at = scores.positions(subset.items)
    assert len(set(at.tolist())) == budget
    weights = np.array(subset.weights)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= scores.item_weights[at] * (1 - 1e-9)).all()  # no probability above 1
    easy, every = difficulty_index(scores), scores.item_weights
    stratum_of = selector._sure(line_clusters(easy, strata), easy, every, budget)
    shares = np.bincount(stratum_of, every)
    np.testing.assert_allclose(np.bincount(stratum_of[at], weights, len(shares)), shares)


def test_strata_are_merged_until_each_is_sure_of_an_item():
    scores = simulate(30, 60, 1, seed=2)
    proxy, weights = difficulty_index(scores), scores.item_weights
    selector = Strata(10)
    many = np.arange(10).repeat(6)[np.argsort(np.argsort(proxy, kind="stable"))]
    assert np.array_equal(selector._sure(many, proxy, weights, 10), many)  # exactly one each
    for budget in range(1, 10):
        merged = selector._sure(many, proxy, weights, budget)
        shares = np.bincount(merged, weights) * budget
        assert set(merged.tolist()) == set(range(merged.max() + 1))
        assert shares.min() >= 1 - 1e-9
        assert (np.diff(merged[np.argsort(proxy, kind="stable")]) >= 0).all()
        if budget > 1:
            assert merged.max() + 1 > budget / 3


def test_neyman_takes_more_where_right_and_wrong_are_as_likely():
    scores = simulate(40, 200, 1, seed=4)
    easy = difficulty_index(scores)
    middling = np.abs(easy - 0.5) < 0.25
    counts = {}
    for allocation in ("proportional", "neyman"):
        drawn = [Strata(5, allocation).select(scores, 40, seed).items for seed in range(30)]
        counts[allocation] = np.mean([middling[scores.positions(items)].mean() for items in drawn])
    assert counts["proportional"] == pytest.approx(middling.mean(), abs=0.02)
    assert counts["neyman"] > counts["proportional"] + 0.03


def test_difference_is_the_proxy_s_mean_and_what_the_answers_are_above_it(tables):
    sources, target = tables
    subset = Strata(4).select(sources, 12, 3)
    at = sources.positions(subset.items)
    said = Difference().fit(sources, subset, 0).predict(Answers(at, target.values[:, at]))
    x, weights = sources.values.mean(axis=0), np.array(subset.weights)
    by_hand = x.mean() + weights @ (target.values[0, at] - x[at])
    assert said.scores[0] == pytest.approx(by_hand)
    for task in range(3):
        mine = sources.task_of[at] == task
        inside = weights[mine] @ (target.values[0, at] - x[at])[mine] / weights[mine].sum()
        expected = x[sources.task_of == task].mean() + inside
        assert said.tasks[0, task] == pytest.approx(np.clip(expected, 0, 1))


def test_tuned_slopes_are_none_for_a_proxy_that_says_nothing_and_one_for_a_true_one(tables):
    sources, _ = tables
    subset = Random().select(sources, 40, 0)
    at = sources.positions(subset.items)
    x = difficulty_index(sources)
    answers = np.array([x[at], 0.4 * x[at] + 0.3, 1.0 - x[at], np.full(40, 0.5)])
    fitted = Difference(tune=True).fit(sources, subset, 0)
    w = x[at].var(ddof=1) / x.var()
    np.testing.assert_allclose(fitted._slopes(answers), [min(w, 1), 0.4 * w, 0, 0], atol=1e-12)
    said = fitted.predict(Answers(at, answers)).scores
    assert said[2] == pytest.approx(answers[2].mean())
    assert said[3] == pytest.approx(0.5)


def test_one_item_is_too_few_for_a_slope(tables):
    sources, targets = tables
    subset = Random().select(sources, 1, 0)
    at = sources.positions(subset.items)
    told = Answers(at, targets.values[:, at])
    said = Difference(tune=True).fit(sources, subset, 0).predict(told)
    np.testing.assert_allclose(said.scores, told.scores[:, 0])


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (Strata(0), "strata is 0"),
        (Strata(allocation="equal"), "allocation"),
        (Strata(proxy="length"), "proxy"),
        (Strata(proxy="probabilities"), "no option probabilities"),
    ],
)
def test_settings_out_of_range_are_refused(part, said):
    with pytest.raises(MethodError, match=said):
        part.select(simulate(6, 20), 5, 0)
    if part.strata and part.allocation == "proportional":
        with pytest.raises(MethodError, match=said):
            Difference(part.proxy).fit(simulate(6, 20), Random().select(simulate(6, 20), 5, 0), 0)


P = np.array([[[0.7, 0.3], [0.6, 0.4]], [[0.6, 0.4], [0.2, 0.8]], [[0.1, 0.9], [0.9, 0.1]]])
NAMES = ["a", "b", "c"]


def test_by_scores_it_is_the_mean_with_missing_cells_filled():
    scores = simulate(9, 20, missing=0.3, seed=3)
    np.testing.assert_allclose(difficulty_index(scores), scores.filled.mean(axis=0))


def test_by_probabilities_it_is_the_mean_belief_in_the_right_option():
    scores = from_arrays([[1, 0], [1, 1], [0, 0]], models=NAMES, probabilities=P)
    np.testing.assert_allclose(difficulty_index(scores, "probabilities"), [1.4 / 3, 1.3 / 3])


def test_a_source_with_a_score_and_no_probabilities_counts_by_its_score():
    p = P.copy()
    p[2] = np.nan
    scores = from_arrays([[1, 0], [1, 1], [0, 0]], models=NAMES, probabilities=p)
    np.testing.assert_allclose(difficulty_index(scores, "probabilities"), [1.3 / 3, 1.2 / 3])


def test_cells_not_run_are_filled_as_scores_are():
    """A source of little belief that was not run on an item does not make it the easier."""
    values, p = np.array([[1.0, 1], [0, 0], [1, 1]]), np.zeros((3, 2, 2))
    p[..., 0] = [[0.9, 0.9], [0.1, 0.1], [0.6, 0.6]]
    p[..., 1] = 1.0 - p[..., 0]
    whole = from_arrays(values, models=NAMES, probabilities=p)
    holes, q = values.copy(), p.copy()
    holes[1, 1], q[1, 1] = np.nan, np.nan
    part = replace(whole, values=holes, probabilities=OptionProbabilities(q))
    easy = difficulty_index(part, "probabilities")
    assert easy[1] < np.nanmean(q[:, 1, 0]) - 0.1
    assert ((easy >= 0) & (easy <= 1)).all()


def test_without_probabilities_it_says_so():
    with pytest.raises(MethodError, check=lambda error: error.kind == "missing"):
        difficulty_index(simulate(5, 9), "probabilities")
