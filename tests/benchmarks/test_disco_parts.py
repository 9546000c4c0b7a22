"""The regressors that DISCO compares with."""

import numpy as np
import pytest

from fewbench.methods import Answers, StaticMethod, Subset
from fewbench.methods.prediction.features import AnswerFeatures, Signature
from fewbench.methods.prediction.regression import Regression, Ridge
from fewbench.methods.selection.random import Random
from fewbench.scores import from_arrays
from fewbench.testing import simulate
from fewbench.testing.conformance import StaticSettings, play
from papers.disco_theory import bounds, entropy
from papers.methods import METHODS
from papers.methods.disco import MLP, UMAP, Boosting, Lasso, ScoreAnchors


@pytest.mark.parametrize("regressor", [MLP()])
class TestRegressors(StaticSettings):
    estimates = False

    @pytest.fixture
    def method(self, regressor):
        return StaticMethod(Random(), Regression(regressor, AnswerFeatures()))


def test_every_method_has_the_name_of_its_rows():
    assert "pds(models=100)+signature+pca+mlp(layers=3)" in METHODS
    assert all(method.describe() == name for name, method in METHODS.items())


def test_umap_keeps_the_protocol():
    pytest.importorskip("umap")
    table = simulate(30, 40, options=4)
    sources, targets = table.take(models=np.arange(24)), table.take(models=np.arange(24, 30))
    method = StaticMethod(Random(), Regression(Ridge(), Signature(), UMAP(3)))
    said = play(method, sources, targets, 10, tasks=True).prediction.scores
    assert np.array_equal(said, play(method, sources, targets, 10).prediction.scores)
    assert np.abs(said - targets.full_scores()).mean() < 0.3


@pytest.mark.parametrize("layers", [3])
def test_perceptrons_learn_scores_that_hardly_differ(layers):
    """With outputs as they are, their first steps are larger than all differences."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(70, 8))
    y = np.column_stack([0.6 + 0.02 * np.tanh(x @ rng.normal(size=8)), np.full(70, 0.3)])
    said = MLP(layers).fit(x[:50], y[:50], 0)(x[50:])
    assert np.abs(said[:, 0] - y[50:, 0]).mean() < 0.4 * np.abs(y[50:, 0] - y[:50, 0].mean()).mean()
    np.testing.assert_allclose(said[:, 1], 0.3)
    scaled = MLP(layers).fit(x[:50], 4 * y[:50], 0)(x[50:])
    np.testing.assert_allclose(scaled, 4 * said, rtol=1e-6)


@pytest.mark.parametrize("regressor", [Lasso(), MLP(), Boosting()])
def test_sources_that_all_answer_the_same_leave_their_mean(regressor):
    values = np.random.default_rng(1).integers(0, 2, (8, 20)).astype(float)
    values[:, :5] = 1.0
    scores = from_arrays(values, models=[str(i) for i in range(8)], tasks=["x", "y"] * 10)
    told = Answers(np.arange(5), np.array([[1.0, 0, 1, 0, 1], [1.0] * 5]))
    predictor = Regression(regressor, AnswerFeatures())
    said = predictor.fit(scores, Subset(items=tuple(scores.item_ids[:5])), 0).predict(told)
    np.testing.assert_allclose(said.scores, scores.full_scores().mean())
    np.testing.assert_allclose(said.tasks, [scores.task_scores().mean(axis=0)] * 2)


def test_anchors_are_nearest_the_centers_of_all_items_and_weigh_their_clusters():
    """Three kinds of items over two tasks: k-means finds them across the tasks."""
    kinds = np.array([[0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 0, 1]], dtype=float)
    of_item = np.array([0, 0, 0, 1, 1, 2, 0, 1])
    scores = from_arrays(kinds[of_item].T, models=list("abcd"), tasks=["x"] * 4 + ["y"] * 4)
    subset = ScoreAnchors().select(scores, 3, seed=0)
    found = {int(of_item[scores.positions([item])[0]]): weight
             for item, weight in zip(subset.items, subset.weights, strict=True)}  # fmt: skip
    assert found == pytest.approx({0: 4 / 8, 1: 3 / 8, 2: 1 / 8})


def test_the_propositions_bound_what_they_bound():
    p = np.random.default_rng(0).dirichlet([0.4] * 4, (7, 300))
    jsd = entropy(p.mean(axis=0)) - entropy(p).mean(axis=0)
    held = {name: (low.mean(), high.mean()) for name, (low, high) in bounds(p, jsd).items()}
    assert held.pop("2 and 6, PDS divided by the number of options (Eq. 1)") == (1, 0)
    assert held.pop("4, JSD in nats")[0] < 1  # its constant is that of bits
    assert set(held.values()) == {(1, 1)}
    assert not bounds(p, 0 * jsd)["4, JSD in bits"][0].any()  # 0 is below the lower bound
