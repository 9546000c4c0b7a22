"""Two-stage collaborative filtering: what every method keeps, and its own settings."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from fewbench.errors import MissingExtraError
from fewbench.methods.adaptive.collaborative import Collaborative
from fewbench.scores import from_arrays
from fewbench.testing import simulate
from fewbench.testing.conformance import Settings, play
from fewbench.uncertainty.replay import replay


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


def test_equally_important_items_are_drawn_by_chance():
    """Half of all items tie; the table's order must not decide among them."""
    sources, targets = tables(n_models=10, n_items=400, n_tasks=1)
    method = Collaborative(transport=False, rounds=1)
    one, two, again = (replay(method, sources, targets, 20, seed).items[0] for seed in (0, 1, 0))
    assert not np.array_equal(one, two)
    assert np.array_equal(one, again)
    best = sources.values.var(axis=0, ddof=1)
    assert np.round(best[one], 9).tolist() == np.sort(np.round(best, 9))[::-1][:20].tolist()


@pytest.mark.parametrize("right", [0.0, 1.0])
def test_the_order_of_the_sources_does_not_matter_to_a_target_unlike_all(right):
    """All wrong, a target is equally similar to all sources: the table's first mean nothing."""
    rng = np.random.default_rng(0)
    able = np.sort(rng.uniform(0.1, 0.9, 60))[:, None]
    values = (rng.random((60, 200)) < able) * 1.0
    said = []
    for order in (np.arange(60), np.arange(60)[::-1]):
        sources = from_arrays(values[order], models=[f"m{m}" for m in order])
        new = from_arrays(np.full((1, 200), right), models=["new"])
        new = replace(new, items=sources.items)
        runs = [
            replay(Collaborative(transport=False), sources, new, 30, seed).scores[0]
            for seed in range(8)
        ]
        said.append(np.mean(runs))
    assert said[0] == pytest.approx(said[1], abs=0.03)
    if not right:
        assert max(said) < 0.25


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


def test_a_copy_of_a_source_is_predicted_as_it_where_it_is_alone_similar():
    sources, _ = tables(n_items=200, n_tasks=2)
    target = sources.take(models=[5])
    target = replace(target, models=target.models.rename({target.model_ids[0]: "copy"}))
    method = Collaborative(transport=False, similar_sources=1, quantile=1.0, low_importance=1e9)
    said = play(method, sources, target, 60).prediction
    # All but the few items at the highest quantile are the most similar source's: the copied one.
    assert abs(said.scores[0] - target.full_scores()[0]) < 0.01


# -- settings ------------------------------------------------------------------------------------


def test_the_missing_package_is_named_before_anything_is_asked(monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    sources, targets = tables()
    with pytest.raises(MissingExtraError, match=r"fewbench\[transport\]"):
        Collaborative().start(sources, 8, 0, targets.model_ids)
    for needless in (Collaborative(transport=False), Collaborative(prediction="low-rank")):
        play(needless, sources, targets, 8)
