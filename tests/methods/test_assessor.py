"""The assessor as a predictor: what it makes of probabilities, and its settings."""

import numpy as np
import pytest

from fewbench.errors import MethodError
from fewbench.evaluation.replay import replay
from fewbench.methods import CATALOGUE, Answers, Subset, find_method
from fewbench.methods.prediction.completed import GenericAssessor
from fewbench.testing import simulate
from fewbench.testing.conformance import StaticConformance

OPTIONS = [
    "random+assessor(interaction=true)",
    "random+assessor(alpha=1.0,pairs=60)",
    "medoids(standardise=true)+assessor",
]


class TestOptions(StaticConformance):
    estimates = False

    @pytest.fixture(params=OPTIONS[:2])
    def method(self, request):
        return find_method(request.param)


def tables(**kind):
    table = simulate(40, 60, **kind)
    return table.take(models=np.arange(30)), table.take(models=np.arange(30, 40))


def test_written_out_and_read_again():
    for text in OPTIONS:
        assert find_method(text).describe() == text
    assert CATALOGUE["assessor"].method == find_method("random+assessor")


@pytest.mark.parametrize("wrong", [{"alpha": -1.0}, {"pairs": 0}])
def test_settings_out_of_range(wrong):
    sources, _ = tables()
    subset = Subset(items=tuple(sources.item_ids[:5]))
    with pytest.raises(MethodError, match=f"{next(iter(wrong))} is"):
        GenericAssessor(**wrong).fit(sources, subset, 0)


def test_one_source_is_too_few():
    sources, targets = tables()
    with pytest.raises(MethodError, match="2 are needed"):
        replay(find_method("assessor"), sources.take(models=[0]), targets, 8, 0)


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_scores_are_means_of_answers_and_probabilities(average):
    sources, targets = (one.averaged(average) for one in tables(n_tasks=3))
    items = np.array([3, 50, 17, 8, 29])
    subset = Subset(items=tuple(sources.item_ids[items]))
    fitted = GenericAssessor().fit(sources, subset, 0)
    answers = targets.values[:, items]
    said = fitted.predict(Answers(items, answers))
    assert np.array_equal(said.items[:, items], answers)
    np.testing.assert_allclose(said.items @ sources.item_weights, said.scores)
    np.testing.assert_allclose(sources.task_means(said.items), said.tasks)
    rest = np.setdiff1d(np.arange(60), items)
    assert ((said.items[:, rest] > 0) & (said.items[:, rest] < 1)).all()


def test_better_than_the_mean_of_few_answers():
    errors = {"random": [], "assessor": []}
    for seed in range(6):
        table = simulate(80, 200, seed=seed)
        sources, targets = table.take(models=np.arange(60)), table.take(models=np.arange(60, 80))
        for name, found in errors.items():
            said = replay(find_method(name), sources, targets, 8, seed).scores
            found.append(np.abs(said - targets.full_scores()).mean())
    assert np.mean(errors["assessor"]) < 0.9 * np.mean(errors["random"])
