"""Selectors: who is chosen, how often, and with what weight."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from fewbench.errors import MethodError
from fewbench.methods import find_method
from fewbench.methods.parts import STAGES
from fewbench.methods.selection.random import Stratified
from fewbench.scores import from_arrays
from fewbench.testing import simulate
from fewbench_papers.algorithms.clustering.distances import Metric, item_distances
from fewbench_papers.algorithms.clustering.kmedoids import kmedoids
from fewbench_papers.anchor_points.clusters import Medoids
from fewbench_papers.disco.disagreement import (
    JensenShannon,
    PredictiveDiversity,
)
from fewbench_papers.disco.regressors import Neighbours
from fewbench_papers.tinybenchmarks.anchors import IRTAnchors
from fewbench_papers.tinybenchmarks.item_response import source_model


def table_of(tasks, average="micro", seed=0):
    values = np.random.default_rng(seed).integers(0, 2, (6, len(tasks)))
    values[0], values[1] = 0, 1
    return from_arrays(values, models=list("abcdef"), tasks=list(tasks)).averaged(average)


@pytest.mark.parametrize("name", STAGES["selector"])
@pytest.mark.parametrize("average", ["micro", "macro"])
def test_weights_are_shares_of_the_full_score(name, average):
    scores = simulate(12, 40, seed=4).averaged(average)
    for budget in (1, 5, 17, 40):
        subset = STAGES["selector"][name]().select(scores, budget, 3)
        assert len(set(subset.items)) == budget
        if subset.weights is not None:
            assert min(subset.weights) >= 0
            chosen = np.unique(scores.task_of[scores.positions(subset.items)])
            by_task = name in ("clusters",)
            known = scores.item_weights @ np.isin(scores.task_of, chosen) if by_task else 1.0
            assert sum(subset.weights) == pytest.approx(known)
        assert subset == STAGES["selector"][name]().select(scores, budget, 3)


@pytest.mark.parametrize(("average", "budget"), [("macro", 1), ("micro", 3), ("macro", 5)])
def test_the_stratified_mean_is_unbiased(average, budget):
    """With fewer items than tasks, with enough for all but luck, with enough for all."""
    scores = table_of("xyyzzzz", average, seed=1)
    truth = scores.full_scores()
    repeats = 1000
    said = np.zeros((repeats, scores.n_models))
    for seed in range(repeats):
        subset = Stratified().select(scores, budget, seed)
        said[seed] = scores.values[:, scores.positions(subset.items)] @ subset.weights
    error = said.mean(axis=0) - truth
    assert (abs(error) <= 4.5 * said.std(axis=0) / np.sqrt(repeats) + 1e-9).all()


@pytest.mark.parametrize("of", [PredictiveDiversity, JensenShannon])
def test_the_items_of_most_disagreement_come_first_and_ties_in_order(of):
    scores = from_arrays(
        [[1, 1, 0, 1, 0], [1, 1, 0, 0, 0], [1, 0, 0, 1, 1], [1, 0, 0, 0, 0]], models=list("abcd")
    )
    chosen = of().select(scores, 5, 0).items
    expected = (1, 3, 4, 0, 2)  # for PDS with two classes: whether anyone differs
    assert chosen == tuple(f"item-{at}" for at in expected)
    assert of(stratified=True).select(scores, 3, 0).items == chosen[:3]


@pytest.mark.parametrize("of", [JensenShannon])
@pytest.mark.parametrize("options", [None, 3])
def test_cells_that_were_not_run_do_not_lower_disagreement(of, options):
    whole = simulate(10, 20, options=options, seed=1)
    first = of().select(whole, 1, 0).items[0]
    at = whole.positions([first])[0]
    values = np.vstack([whole.values, np.full((30, 20), 0.0)])  # 30 models, never run on `first`
    values[10:, at] = np.nan
    more = {}
    if options:
        p = np.zeros((40, 20, 3))
        p[:10] = whole.probabilities.of_items(np.arange(20))
        p[10:, :, 0] = 1.0
        p[10:, at] = np.nan
        more = {"probabilities": p}
    scores = from_arrays(values, models=[f"m{at}" for at in range(40)], **more)
    few, everyone = (
        of().disagreement(scores, np.arange(10)),
        of().disagreement(scores, np.arange(40)),
    )
    assert everyone[at] == few[at]
    if not options:  # right and wrong alone: 30 more that are wrong lower all the others
        assert of().select(scores, 1, 0).items == (f"item-{at}",)


@pytest.mark.parametrize("of", [PredictiveDiversity, JensenShannon])
@pytest.mark.parametrize("options", [None, 3])
def test_items_that_none_of_a_few_models_answered_come_last(of, options):
    scores = simulate(12, 40, missing=0.8, options=options, seed=2)
    method = of(models=2)
    unanswered = 0
    for seed in range(10):
        rows = np.sort(np.random.default_rng(seed).permutation(12)[:2])
        nobody = np.isnan(scores.values[rows]).all(axis=0)
        unanswered += nobody.sum()
        assert (method.disagreement(scores, rows)[nobody] == 0).all()
        assert len(set(method.select(scores, 40, seed).items)) == 40
    assert unanswered


FOUR_TASKS = simulate(8, 40, 4, seed=1)


@given(st.integers(1, 40), st.integers(0, 10**6))
def test_stratified_disagreement_takes_equal_numbers_of_each_task(budget, seed):
    scores = FOUR_TASKS
    subset = PredictiveDiversity(stratified=True).select(scores, budget, seed)
    assert len(subset.items) == budget
    at = scores.positions(subset.items)
    sizes, counts = np.bincount(scores.task_of), np.bincount(scores.task_of[at], minlength=4)
    assert counts.max() - counts[counts < sizes].min(initial=40) <= 1
    overall = scores.positions(PredictiveDiversity().select(scores, 40, seed).items).tolist()
    ranks = [overall.index(item) for item in at]
    assert ranks == sorted(ranks)
    for task in range(4):  # the first of each task
        first = [item for item in overall if scores.task_of[item] == task][: counts[task]]
        assert [item for item in at if scores.task_of[item] == task] == first


@pytest.mark.parametrize("name", ["stratified", "clusters"])
def test_tasks_get_items_by_their_share_of_the_full_score(name):
    scores = FOUR_TASKS.take(items=np.flatnonzero(FOUR_TASKS.task_of > 0))  # of 9, 13 and 17 items
    select = STAGES["selector"][name]().select
    for average, expected in [("micro", [2.8, 4, 5.2]), ("macro", [4, 4, 4])]:
        items = scores.positions(select(scores.averaged(average), 12, 0).items)
        assert np.bincount(scores.task_of[items]).tolist() == pytest.approx(expected, abs=0.9)


def test_one_cluster_an_item_and_duplicates_among_items():
    values = np.repeat([[1, 0], [0, 1], [1, 1]], 6, axis=1)  # two distinct items, six of each
    scores = from_arrays(values, models=list("abc"))
    for name in ("clusters", "medoids"):
        subset = find_method(f"{name}+mean").selector.select(scores, 2, 0)
        assert sorted(subset.weights) == pytest.approx([0.5, 0.5])
        for budget in (3, 11, 12):
            assert len(set(STAGES["selector"][name]().select(scores, budget, 0).items)) == budget


@pytest.mark.parametrize("metric", get_args(Metric))
def test_medoids_are_those_of_the_distances_with_the_shares_of_their_clusters(metric):
    scores = FOUR_TASKS.averaged("macro")
    distances = item_distances(scores.values.T, metric, standardise=True)
    clusters = kmedoids(distances, 6, np.random.default_rng(3))
    subset = Medoids(metric, standardise=True).select(scores, 6, 3)
    assert scores.positions(subset.items).tolist() == clusters.medoids.tolist()
    shares = [scores.item_weights[clusters.labels == cluster].sum() for cluster in range(6)]
    np.testing.assert_allclose(subset.weights, shares)


def test_irt_anchors_represent_items_of_like_discrimination_and_intercept():
    scores = simulate(60, 80, seed=2)
    subset = IRTAnchors().select(scores, 10, 0)
    model = source_model(scores).model
    points = np.column_stack([model.discrimination, model.intercept])
    near = cdist(points, points[scores.positions(subset.items)]).argmin(axis=1)
    shares = np.bincount(near, minlength=10) / 80
    np.testing.assert_allclose(subset.weights, shares, atol=0.05)  # of k-means, as of its anchors


def test_more_neighbours_than_sources_are_an_error():
    x, y = np.eye(3), np.array([[0.0], [0.5], [1.0]])
    assert Neighbours(3).fit(x, y, 0)(x[:1]).tolist() == [[0.5]]
    with pytest.raises(MethodError, match=r"k=4 .* 3 .*use k=3"):
        Neighbours(4).fit(x, y, 0)
