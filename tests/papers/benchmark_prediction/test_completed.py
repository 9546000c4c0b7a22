"""Predictors of all items."""

import numpy as np
import pytest

from fewbench.methods import Answers, Subset
from fewbench.methods.prediction.completed import completed
from fewbench.scores import from_arrays
from fewbench.testing import simulate
from fewbench_papers.algorithms.completion.low_rank import fit_low_rank
from fewbench_papers.anchor_points.lines import AnchorLines
from fewbench_papers.benchmark_prediction.completed import Imputation, LowRankCompletion
from fewbench_papers.tinybenchmarks.abilities import PIRT


def test_answers_stand_in_their_places_and_averages_are_of_what_was_expected():
    scores = from_arrays(np.eye(4)[:3], models="abc", tasks=["x", "x", "y", "y"]).averaged("macro")
    items = np.array([[9.0, 0.8, 0.5, -0.5], [9.0, 0.2, 2.0, 3.0]])
    said = completed(scores, items, Answers(np.array([0]), np.array([[1.0], [0.0]])))
    np.testing.assert_allclose(said.tasks, [[0.9, 0.0], [0.1, 1.0]])
    np.testing.assert_allclose(said.scores, [0.45, 1.0])
    assert said.items.tolist() == [[1.0, 0.8, 0.5, 0.0], [0.0, 0.2, 1.0, 1.0]]


def test_task_scores_are_left_out_if_not_wanted():
    scores = from_arrays(np.eye(3), models="abc")
    answers = Answers(np.array([1]), np.array([[1.0]]))
    assert completed(scores, np.full((1, 3), 0.5), answers, tasks=False).tasks is None


@pytest.mark.parametrize(
    "predictor", [PIRT(), Imputation(), AnchorLines(), AnchorLines(logit=True)]
)
def test_no_predictor_leaves_0_to_1_for_targets_that_are_right_or_wrong_throughout(predictor):
    """Weights that do not add up to 1 to the last bit must not take a score beyond it."""
    for n_items in (49, 107):
        scores = simulate(25, n_items, 3, seed=2).averaged("macro")
        at = np.arange(n_items)
        subset = Subset(items=tuple(scores.item_ids[at]))
        answers = Answers(at, np.repeat([[0.0], [1.0]], n_items, axis=1))
        said = predictor.fit(scores, subset, 0).predict(answers)
        for part in (said.scores, said.tasks, said.items):
            assert part.min() >= 0.0
            assert part.max() <= 1.0
        np.testing.assert_allclose(said.scores, [0.0, 1.0])


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_scores_tasks_and_items_are_those_of_the_model(average):
    whole = simulate(40, 60, seed=0).averaged(average)
    sources, targets = whole.take(models=np.arange(35)), whole.take(models=np.arange(35, 40))
    at = np.random.default_rng(2).permutation(60)[:15]
    told = Answers(at, targets.values[:, at])
    subset = Subset(items=tuple(sources.item_ids[at]))
    fitted = LowRankCompletion().fit(sources, subset, 7)
    model = fit_low_rank(
        sources.values,
        observed=15,
        weights=sources.item_weights,
        rng=np.random.default_rng(7),
    )
    said = fitted.predict(told)
    np.testing.assert_allclose(said.items, model.complete(at, told.scores))
    for task in range(len(sources.tasks)):
        member = (sources.task_of == task) / (sources.task_of == task).sum()
        expected = model.average(at, told.scores, member[:, None])[:, 0]
        np.testing.assert_allclose(said.tasks[:, task], expected)
    full = model.average(at, told.scores, sources.item_weights[:, None])[:, 0]
    np.testing.assert_allclose(said.scores, full)
    assert fitted.predict(told, tasks=False).tasks is None
