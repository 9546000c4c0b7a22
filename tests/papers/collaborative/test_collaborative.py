"""Two-stage collaborative filtering: what every method keeps, and its own settings."""

import sys

import numpy as np
import pytest

from fewbench.errors import MissingExtraError
from fewbench.testing import simulate
from fewbench.testing.conformance import Settings, play
from fewbench_papers.collaborative.collaborative import Collaborative


def tables(n_targets=3, **kind):
    whole = simulate(**{"n_models": 24, "n_items": 120, "n_tasks": 4, "seed": 1, **kind})
    rows = np.arange(whole.n_models)
    return whole.take(models=rows[n_targets:]), whole.take(models=rows[:n_targets])


class WithTransport(Settings):
    estimates = False

    @pytest.fixture(autouse=True)
    def pot(self):
        pytest.importorskip("ot", reason="optimal transport needs POT")


class TestManySimilarTasks(WithTransport):
    @pytest.fixture
    def method(self):
        return Collaborative(similar_tasks=0.5, similar_sources=4, rounds=2)


class TestNoMinimum(Settings):
    estimates = False

    @pytest.fixture
    def method(self):
        return Collaborative(transport=False, minimum=0, quantile=0.0, rounds=50)


# -- what is asked -------------------------------------------------------------------------------


# -- what is predicted ---------------------------------------------------------------------------


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("prediction", ["similarity", "low-rank"])
def test_score_tasks_and_items_agree(average, prediction):
    sources, targets = (table.averaged(average) for table in tables())
    method = Collaborative(transport=False, prediction=prediction)
    played = play(method, sources, targets, 30, tasks=True)
    said = played.prediction
    close = 1e-12 if prediction == "similarity" else 0.02  # items are clipped, means are not
    np.testing.assert_allclose(said.scores, said.items @ sources.item_weights, atol=close)
    for task in range(len(sources.tasks)):
        mean = said.items[:, sources.task_of == task].mean(axis=1)
        np.testing.assert_allclose(said.tasks[:, task], mean, atol=close)
    for row, items in enumerate(played.asked.values()):
        assert np.array_equal(said.items[row, items], targets.values[row, items])
    assert said.items.min() >= 0
    assert said.items.max() <= 1


# -- settings ------------------------------------------------------------------------------------


def test_the_missing_package_is_named_before_anything_is_asked(monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    sources, targets = tables()
    with pytest.raises(MissingExtraError, match=r"fewbench\[transport\]"):
        Collaborative().start(sources, 8, 0, targets.model_ids)
    for needless in (Collaborative(transport=False), Collaborative(prediction="low-rank")):
        play(needless, sources, targets, 8)
