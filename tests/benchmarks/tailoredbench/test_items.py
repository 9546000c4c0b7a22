"""How well medoids stand for items."""

from dataclasses import replace

import numpy as np
import pytest

from fewbench.errors import StudyError
from fewbench.scores import from_arrays
from fewbench.study import Split
from fewbench.testing import simulate
from fewbench_papers.algorithms.clustering.distances import item_distances
from fewbench_papers.tailoredbench.tailored import Tailored
from papers.methods.tailored import TailoredVariant
from tailoredbench.native_sources import spread
from tailoredbench.trials import open_trial

from .conftest import planted

EVEN = Split(np.arange(0, 60, 2), np.arange(1, 60, 2))


def trial_of(scores, split=EVEN, budget=20, method=None):
    return open_trial(scores, split, method or Tailored(), budget, 0)


def test_medoids_stand_best_for_those_who_chose_them():
    for seed in range(5):
        found = spread(trial_of(simulate(60, 150, seed=seed)))
        assert found.shares["sources"] < found.shares["targets"]
        assert found.half["chose"] < found.half["held_out"]


def test_targets_unlike_sources_are_farther():
    scores = planted(n_families=2, size=30, n_items=150)
    rows = np.arange(60)
    found = spread(trial_of(scores, Split(rows[::2], rows[1::2])))
    assert found.half["targets"] > found.half["held_out"] + 0.2
    assert found.shares["targets"] > 0.8


def test_targets_that_are_the_sources_are_at_the_same_distances():
    whole = simulate(30, 100, seed=1)
    twice = from_arrays(
        np.concatenate([whole.values, whole.values]), models=[f"m{k}" for k in range(60)]
    )
    found = spread(trial_of(twice, Split(np.arange(30), np.arange(30, 60))))
    assert np.allclose(found.source, found.target)
    assert found.source_any == found.target_any


@pytest.mark.parametrize("metric", ["manhattan", "euclidean", "cosine", "correlation"])
def test_distances_are_those_of_the_metric_a_model(metric):
    method = TailoredVariant(metric=metric)
    trial = trial_of(simulate(60, 80, seed=2), method=method)
    found = spread(trial)
    distances = item_distances(trial.sources.values.T, metric, standardise=True)
    scale = {"manhattan": 30, "euclidean": 30**0.5}.get(metric, 1)
    assert np.allclose(found.source * scale, distances[:, found.medoids].min(axis=1), atol=1e-5)
    assert found.source_any * scale == pytest.approx(distances[np.triu_indices(80, 1)].mean())
    assert (found.source[found.medoids] == 0).all()
    assert (found.medoid_of[found.medoids] == found.medoids).all()
    assert len(found.medoids) == 20


def test_one_target_and_targets_that_all_score_the_same():
    scores = simulate(61, 40)
    one = open_trial(scores, Split(np.arange(60), np.array([60])), Tailored(), 15, 0)
    assert spread(one).half["targets"] > 0
    values = scores.values.copy()
    values[30:] = 1.0
    same = open_trial(
        replace(scores, values=values), Split(np.arange(30), np.arange(30, 61)), Tailored(), 15, 0
    )
    assert np.isnan(spread(same).shares["targets"])


def test_three_sources_cannot_be_halved():
    scores = simulate(8, 40)
    with pytest.raises(StudyError, match="3 sources"):
        spread(open_trial(scores, Split(np.arange(3), np.arange(3, 8)), Tailored(), 12, 0))


def test_a_medoid_stands_for_itself_though_another_is_the_same():
    scores = simulate(60, 40, seed=4)
    values = scores.values.copy()
    values[:, 1:8] = values[:, :1]
    found = spread(trial_of(replace(scores, values=values), budget=38))
    same = np.intersect1d(found.medoids, np.arange(8))
    assert len(same) > 1  # or the test says nothing
    assert (found.medoid_of[same] == same).all()
