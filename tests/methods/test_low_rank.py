"""The low-rank predictor in a method."""

import numpy as np
import pytest

from fewbench.algorithms.completion.low_rank import fit_low_rank
from fewbench.errors import MethodError
from fewbench.evaluation.replay import replay
from fewbench.methods import Answers, StaticMethod, Subset, find_method
from fewbench.methods.prediction.completed import LowRankCompletion
from fewbench.methods.selection.clusters import Medoids
from fewbench.methods.selection.random import Random
from fewbench.testing import simulate
from fewbench.testing.conformance import StaticConformance
from fewbench.testing.quality import Quality


class TestTwoAbilities(StaticConformance):
    estimates = False

    @pytest.fixture
    def method(self):
        return StaticMethod(Random(), LowRankCompletion(rank=2))


class TestMedoids(Quality):
    estimates = False

    @pytest.fixture
    def method(self):
        return StaticMethod(Medoids(), LowRankCompletion())


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


def test_tasks_of_which_no_item_was_run_are_predicted_too():
    """Abilities carry over from task to task, as in the sources."""
    whole = simulate(60, 120, 3, seed=3)
    sources, targets = whole.take(models=np.arange(45)), whole.take(models=np.arange(45, 60))
    at = np.flatnonzero(sources.task_of == 0)
    subset = Subset(items=tuple(sources.item_ids[at]))
    said = LowRankCompletion().fit(sources, subset, 0).predict(Answers(at, targets.values[:, at]))
    truth = targets.task_scores()
    np.testing.assert_allclose(said.tasks[:, 0], truth[:, 0])
    blind = np.abs(sources.task_scores().mean(axis=0) - truth).mean(axis=0)
    assert (np.abs(said.tasks - truth).mean(axis=0)[1:] < 0.8 * blind[1:]).all()


def test_it_is_better_than_the_mean_of_a_random_sample():
    whole = simulate(80, 400, seed=5)
    sources, targets = whole.take(models=np.arange(60)), whole.take(models=np.arange(60, 80))
    truth = targets.full_scores()
    errors = {}
    for method in (find_method("random"), StaticMethod(Random(), LowRankCompletion())):
        said = [replay(method, sources, targets, 40, seed).scores for seed in range(5)]
        errors[method.describe()] = np.abs(np.array(said) - truth).mean()
    plain, ours = errors.values()
    assert ours < 0.9 * plain


def test_a_negative_rank_is_an_error():
    scores = simulate(5, 10)
    with pytest.raises(MethodError, match="rank is -1"):
        LowRankCompletion(rank=-1).fit(scores, Subset(items=tuple(scores.item_ids[:2])), 0)
