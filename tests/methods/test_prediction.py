"""Predictors against what they should give on tables small enough to know."""

import tracemalloc

import numpy as np
import pytest

from fewbench.errors import AnswersError, MethodError
from fewbench.methods import Answers, Subset, find_method
from fewbench.methods.prediction.completed import task_lines
from fewbench.methods.prediction.features import PCA, Signature
from fewbench.methods.prediction.mean import Mean
from fewbench.methods.prediction.regression import Regression, Ridge
from fewbench.scores import from_arrays
from fewbench.testing import simulate
from fewbench_papers.disco.regressors import Forest, Neighbours


def answers_of(scores, rows, at, options=True):
    p = scores.probabilities.of_items(at)[rows] if options and scores.probabilities else None
    return Answers(at, scores.values[np.ix_(rows, at)], p)


def subset_at(scores, at, weights=None):
    return Subset(items=tuple(scores.item_ids[at]), weights=weights)


def test_mean_is_weighted_by_the_subset_or_by_the_items():
    scores = from_arrays(np.eye(4), models=list("abcd"), tasks=list("xyyy"))
    at = np.array([0, 1])
    told = Answers(at, np.array([[1.0, 0.0]]))
    assert Mean().fit(scores, subset_at(scores, at), 0).predict(told).scores[0] == 0.5
    macro = scores.averaged("macro")
    assert Mean().fit(macro, subset_at(macro, at), 0).predict(told).scores[0] == 0.75
    weighted = subset_at(scores, at, (3.0, 1.0))
    assert Mean().fit(scores, weighted, 0).predict(told).scores[0] == 0.75


def test_mean_of_tasks_and_the_line_for_a_task_without_items():
    full = np.linspace(0.1, 0.9, 9)[:, None]
    scores = from_arrays(full @ np.array([[1.0, 1.0, 0.5]]), models=list("abcdefghi"), tasks="xxy")
    at = np.array([0, 1])
    said = Mean().fit(scores, subset_at(scores, at), 0).predict(answers_of(scores, [4], at))
    assert said.tasks[0, 0] == pytest.approx(0.5)
    # The sources' line from the full score (5/6 t) to task y (t/2), at a full score of 0.5.
    assert said.tasks[0, 1] == pytest.approx(0.3)


def test_unseen_tasks_when_all_sources_are_equal():
    scores = from_arrays(np.full((3, 4), 0.25), models=list("abc"), tasks=list("xxyy"))
    filled = task_lines(scores).fill(np.array([[0.5, np.nan]]), np.array([0.5]))
    assert filled.tolist() == [[0.5, 0.25]]


def test_as_many_neighbours_as_sources_are_their_mean_and_more_are_an_error():
    scores = simulate(4, 20)
    at = np.arange(5)
    predict = Regression(Neighbours(4)).fit(scores, subset_at(scores, at), 0).predict
    said = predict(answers_of(scores, [0], at))
    assert said.scores[0] == pytest.approx(scores.full_scores().mean())
    with pytest.raises(MethodError, match="9 are needed"):
        Regression(Neighbours(9)).fit(scores, subset_at(scores, at), 0).predict(
            answers_of(scores, [0], at)
        )


@pytest.mark.parametrize("regressor", [Neighbours(), Forest(5)])
def test_a_target_unlike_every_source_is_told_apart(regressor):
    values = np.random.default_rng(0).random((12, 30)) < 0.4
    scores = from_arrays(values.astype(float), models=[str(i) for i in range(12)])
    at = np.arange(30)
    fitted = Regression(regressor).fit(scores, subset_at(scores, at), 0)
    told = Answers(at, np.stack([np.ones(30), scores.values[0]]))
    assert fitted.predict(told).outside.tolist() == [True, False]
    plain = Regression(Ridge()).fit(scores, subset_at(scores, at), 0).predict(told)
    assert plain.outside is None


def test_looking_for_outsiders_needs_no_cube_of_memory():
    rng = np.random.default_rng(0)
    scores = from_arrays(rng.random((150, 2000)), models=[str(i) for i in range(150)])
    at = np.arange(2000)
    fitted = Regression(Neighbours()).fit(scores, subset_at(scores, at), 0)
    told = answers_of(scores, [0, 1], at)
    tracemalloc.start()
    fitted.predict(told)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6  # 150 × 150 × 2000 numbers would be 360 MB


def test_sources_that_all_answer_the_same_leave_their_mean():
    values = np.random.default_rng(1).integers(0, 2, (8, 20)).astype(float)
    values[:, :5] = 1.0
    scores = from_arrays(values, models=[str(i) for i in range(8)], tasks=["x", "y"] * 10)
    at = np.arange(5)
    told = Answers(at, np.array([[1.0, 0, 1, 0, 1], [1.0] * 5]))
    for text in ("knn", "forest(trees=3)", "ridge", "linear"):
        for reduction in ("", "pca+"):
            predictor = find_method(f"random+answers+{reduction}{text}").predictor
            said = predictor.fit(scores, subset_at(scores, at), 0).predict(told)
            np.testing.assert_allclose(said.scores, scores.full_scores().mean())
            np.testing.assert_allclose(said.tasks, [scores.task_scores().mean(axis=0)] * 2)


def test_pca_is_that_of_scikit_learn_and_capped():
    from sklearn.decomposition import PCA as SklearnPCA

    x = np.random.default_rng(2).normal(size=(12, 6))
    ours = PCA(4).fit(x, 0)(x)
    theirs = SklearnPCA(4).fit_transform(x)
    np.testing.assert_allclose(abs(ours), abs(theirs), atol=1e-10)
    assert PCA(256).fit(x[:4], 0)(x).shape == (12, 3)  # sources - 1
    assert PCA(256).fit(x[:, [0, 0, 1]], 0)(x[:, [0, 0, 1]]).shape == (12, 2)  # the rank


def test_signature_lays_options_side_by_side_and_fills_missing_cells():
    scores = simulate(10, 12, options=3, missing=0.3, seed=1)
    at = np.array([2, 5, 7])
    raw = scores.probabilities.of_items(at)
    made = Signature().fit(scores, subset_at(scores, at)).sources
    assert made.shape == (10, 9)
    assert np.isfinite(made).all()
    run = ~np.isnan(raw).reshape(10, 9)
    assert np.array_equal(made[run], raw.reshape(10, 9)[run])
    means = np.nanmean(raw, axis=0).ravel()
    np.testing.assert_allclose(made[~run], np.tile(means, (10, 1))[~run])


def test_signature_of_a_target_with_missing_cells_or_of_an_item_that_no_source_ran():
    whole = simulate(6, 5, options=3)
    p = whole.probabilities.of_items(np.arange(5))
    p[:, 1] = np.nan
    scores = from_arrays(whole.values, models=whole.model_ids, probabilities=p)
    at = np.array([0, 1])
    subset = subset_at(scores, at)
    fitted = Signature().fit(scores, subset)
    assert (fitted.sources[:, 3:] == 0).all()
    told = Answers(at, scores.values[:1, at], np.full((1, 2, 3), np.nan))
    assert np.isfinite(fitted.of_targets(told)).all()


def test_signature_without_the_targets_probabilities_is_an_error():
    scores = simulate(6, 5, options=3)
    at = np.array([0, 1])
    with pytest.raises(AnswersError, match="option probabilities"):
        Signature().fit(scores, subset_at(scores, at)).of_targets(
            answers_of(scores, [0], at, False)
        )
