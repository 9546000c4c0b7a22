"""Augmented inverse propensity weighting: right on average over samples, exact with all items."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from fewbench.methods import Answers, Subset
from fewbench.methods.prediction.aipw import AIPW
from fewbench.testing import simulate


def table(n_sources, n_targets, n_items, average="micro", **kind):
    whole = simulate(n_sources + n_targets, n_items, **kind).averaged(average)
    rows = np.arange(n_sources + n_targets)
    return whole.take(models=rows[:n_sources]), whole.take(models=rows[n_sources:])


def estimate(method, sources, targets, at, seed=0):
    subset = Subset(items=tuple(sources.item_ids[at]))
    return method.fit(sources, subset, seed).predict(Answers(at, targets.values[:, at]))


def test_it_is_the_sum_that_the_paper_writes():
    from sklearn.linear_model import Ridge as SklearnRidge

    sources, targets = table(12, 3, 40, seed=1)
    at = np.random.default_rng(0).permutation(40)[:9]
    rest = np.setdiff1d(np.arange(40), at)
    said = estimate(AIPW(), sources, targets, at)
    for row, values in enumerate(targets.values):
        model = SklearnRidge(alpha=10.0).fit(sources.values[:, at].T, values[at])
        seen, unseen = (model.predict(sources.values[:, part].T) for part in (at, rest))
        expected = values[at].mean() + (unseen.mean() - seen.mean()) * len(rest) / 40
        assert said.scores[row] == pytest.approx(expected, abs=1e-12)
        np.testing.assert_allclose(said.items[row, rest], np.clip(unseen, 0, 1))
        np.testing.assert_allclose(said.items[row, at], values[at])


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_crossed_it_is_right_on_average_over_all_samples(average):
    """Every sample of 4 of 9 items once, and every division in two: the mean is the truth.

    Scores are far from 0 and 1, so that nothing is kept within what is possible.
    """
    sources, targets = table(5, 3, 9, average, seed=2, continuous=True)
    of = dict(zip(("sources", "targets"), (sources, targets), strict=True))
    for name, scores in of.items():
        values = 0.45 + 0.1 * scores.values
        of[name] = type(scores)(values, scores.models, scores.items, average=average)
    sources, targets = of["sources"], of["targets"]
    method = AIPW(alpha=0.01, folds=2)
    total, draws = np.zeros(3), 0
    for chosen in combinations(range(9), 4):
        # Divisions in two pairs: a pair with the first of the four, for each of the other three.
        for other in range(1, 4):
            order = [chosen[0], chosen[other], *np.delete(chosen, [0, other])]
            at = np.array(order)
            fitted = method.fit(sources, Subset(items=tuple(sources.item_ids[at])), 0)
            halves = (np.array([0, 1]), np.array([2, 3]))
            fitted = replace(fitted, parts=halves)
            total += fitted.predict(Answers(at, targets.values[:, at])).scores
            draws += 1
    np.testing.assert_allclose(total / draws, targets.full_scores(), atol=1e-12)


@pytest.mark.parametrize("folds", [1, 4])
def test_a_task_of_which_all_items_were_run_is_exact(folds):
    sources, targets = table(15, 3, 60, seed=5)
    more = np.flatnonzero(sources.task_of != 1)[:2]
    at = np.concatenate([np.flatnonzero(sources.task_of == 1), more])
    said = estimate(AIPW(folds=folds), sources, targets, at)
    np.testing.assert_allclose(said.tasks[:, 1], targets.task_scores()[:, 1])
