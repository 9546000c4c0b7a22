"""Two-stage collaborative filtering against a plain transcription of its equations."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fewbench.algorithms.sampling import task_sizes
from fewbench.scores import from_arrays
from fewbench.testing import simulate
from fewbench.testing.conformance import play
from fewbench_papers.collaborative.collaborative import Collaborative

PLAIN = Path(__file__).parents[3] / "benchmarks" / "plain_collaborative.py"


@pytest.fixture(scope="module")
def plain():
    if not PLAIN.exists():
        pytest.skip("the benchmarks are not beside the tests")
    spec = importlib.util.spec_from_file_location("plain_collaborative", PLAIN)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def split_off(whole, n_targets=2):
    rows = np.arange(whole.n_models)
    return whole.take(models=rows[n_targets:]), whole.take(models=rows[:n_targets])


def assert_same(plain, method, sources, targets, budget, seed=0):
    """Every item asked, in order, and every item's expected score are the transcription's."""
    if method.transport:
        pytest.importorskip("ot", reason="optimal transport needs POT")
    played = play(method, sources, targets, budget, seed)
    of = [np.flatnonzero(sources.task_of == task) for task in range(len(sources.tasks))]
    tasks = [sources.filled[:, items] for items in of]
    sizes = task_sizes(budget, np.array([len(items) for items in of]), method.minimum)
    rng = np.random.default_rng(seed)
    priority, turn = rng.permutation(sources.n_items), rng.permutation(sources.n_models)
    for row, name in enumerate(targets.model_ids):
        truths = [targets.values[row, items] for items in of]
        chosen = [
            plain.select(tasks[i], truths[i], int(sizes[i]), method, priority[of[i]], turn)
            for i in range(len(of))
        ]
        for i, items in enumerate(of):
            asked = played.asked[name]
            of_task = asked[sources.task_of[asked] == i]
            assert of_task.tolist() == items[chosen[i]].tolist()
            expected = plain.predict(tasks, truths, chosen, i, method, sources.is_binary, turn)
            np.testing.assert_allclose(
                played.prediction.items[row, items], expected, atol=1e-9, rtol=0
            )


SETTINGS = {
    "default": {},
    "no transport": {"transport": False},
    "few similar": {"similar_sources": 2, "alpha": 0.1, "rounds": 9},
    "many similar tasks": {"similar_tasks": 0.0, "minimum": 5},
    "by sources": {"quantile": 1.0, "low_importance": 1e6},
    "by items": {"quantile": 0.0, "least_similarity": 0.0},
    "unimportant": {"low_importance": 1.0},
    "printed": {"printed": True},
}


@pytest.mark.parametrize("budget", [3, 30, 75])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_binary_scores(plain, settings, budget):
    sources, targets = split_off(simulate(n_models=16, n_items=90, n_tasks=4, seed=budget))
    assert_same(plain, Collaborative(**settings), sources, targets, budget)


@pytest.mark.parametrize("name", ["default", "many similar tasks", "unimportant"])
def test_continuous_scores(plain, name):
    whole = simulate(n_models=14, n_items=80, n_tasks=3, seed=5, continuous=True)
    assert_same(plain, Collaborative(**SETTINGS[name]), *split_off(whole), 30)


def test_missing_cells_count_as_filled(plain):
    rows = np.arange(18)
    sources = simulate(n_models=18, n_items=70, missing=0.2, seed=3).take(models=rows[2:])
    targets = simulate(n_models=18, n_items=70, seed=3).take(models=rows[:2])
    assert sources.has_missing
    assert_same(plain, Collaborative(), sources, targets, 30)


@pytest.mark.parametrize("name", ["default", "no transport"])
def test_constant_items_and_targets_all_wrong_or_all_right(plain, name):
    sources, targets = split_off(simulate(n_models=16, n_items=80, n_tasks=3, seed=2))
    values = sources.values.copy()
    values[:, ::3], values[:, 1::6], values[0] = 1.0, 0.0, 0.0
    answers = np.array([np.zeros(80), np.ones(80)])
    sources, targets = replace(sources, values=values), replace(targets, values=answers)
    assert_same(plain, Collaborative(**SETTINGS[name]), sources, targets, 30)


def test_tasks_of_one_item(plain):
    rng = np.random.default_rng(0)
    tasks = ["a"] + ["b"] * 9 + ["c"] * 40 + ["d"]
    whole = from_arrays(
        (rng.random((12, 51)) < rng.random((12, 1))).astype(float),
        models=[f"m{m}" for m in range(12)],
        tasks=tasks,
    )
    for budget in (2, 3, 20, 50):
        assert_same(plain, Collaborative(similar_tasks=0.9), *split_off(whole), budget)


@pytest.mark.parametrize("n_sources", [1, 2])
def test_one_source_or_two(plain, n_sources):
    whole = simulate(n_models=n_sources + 2, n_items=60, seed=4)
    assert_same(plain, Collaborative(), *split_off(whole), 25)
