"""docs/method.py, written from docs/method.md alone, gives the program's numbers."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from fewbench import Evaluation, from_arrays, load_scores
from fewbench.datasets import load_zoo
from fewbench.testing import simulate

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location("method", ROOT / "docs" / "method.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_the_program(sources, targets, n, method, families, tasks):
    """Return the estimates of all targets, and the items that each was asked, in order."""
    models, items = ([f"{size} {k}" for k in range(size)] for size in sources.shape)
    scores = from_arrays(sources, models=models, items=items, families=families, tasks=tasks)
    evaluation = Evaluation(scores, method, n, list(targets))
    asked = {name: [] for name in targets}
    while any((open_ := evaluation.ask()).values()):
        for name, new in open_.items():
            places = [items.index(item) for item in new]
            asked[name] += places
            evaluation.tell(name, dict(zip(new, targets[name][places], strict=True)))
    return evaluation.estimate(warn=False), asked


def compare(reference, table, n, method):
    """Compare items, estimates and intervals of all targets; return the kinds of the intervals."""
    sources, targets, families, tasks = table
    targets = targets | unlike(sources)
    estimates, asked = by_the_program(sources, targets, n, method, families, tasks)
    functions = [answers.__getitem__ for answers in targets.values()]
    found = reference.evaluate(sources, functions, n, method, families=families, tasks=tasks)
    for name, (theta, low, high, items) in zip(targets, found, strict=True):
        estimate = estimates[name]
        assert items.tolist() == asked[name]
        theirs = estimate.score, estimate.interval.low, estimate.interval.high
        np.testing.assert_allclose((theta, low, high), theirs, rtol=0, atol=1e-9, err_msg=name)
    return {name: estimates[name].interval_kind for name in targets}


def unlike(sources):
    """Return targets beyond all source models, one that is always right, and random answers."""
    chance = np.random.default_rng(0).random(sources.shape[1])
    levels = {"strong": 0.99, "weak": 0.01, "right": 1.0, "random": 0.5}
    return {name: (chance < level).astype(float) for name, level in levels.items()}


def without(values, tasks, families=None):
    """Make the worst, the middle and the best model of a table its targets."""
    order = np.argsort(values.mean(axis=1), kind="stable")
    places = order[[0, len(order) // 2, -1]]
    targets = dict(zip(("worst", "middle", "best"), values[places], strict=True))
    return np.delete(values, places, axis=0), targets, families, tasks


def images(n_models, n_items):
    scores = load_zoo()
    rows, items = (
        np.linspace(0, size - 1, n).astype(int)
        for size, n in zip(scores.values.shape, (n_models, n_items), strict=True)
    )
    return scores.values[np.ix_(rows, items)], [scores.tasks[at] for at in scores.task_of[items]]


def simulated():
    """Tasks whose items are mixed."""
    values = simulate(35, 100, seed=5).values
    return without(values, np.random.default_rng(1).choice(["c", "a", "b"], 100).tolist())


def of_families():
    values, tasks = images(40, 120)
    return without(values, tasks, [f"family {k % 26}" for k in range(37)])


def joined():
    """More than 101 source models."""
    return without(*images(160, 80))


@pytest.mark.parametrize(
    ("table", "method", "n"),
    [
        (simulated, "fewbench", 10),
        (simulated, "fewbench-static", 30),
        (of_families, "fewbench", 10),
        (of_families, "fewbench-static", 20),
        (joined, "fewbench", 10),
        pytest.param(joined, "fewbench-static", 20, marks=pytest.mark.slow),
        pytest.param(simulated, "fewbench", 40, marks=pytest.mark.slow),
        # Of some targets more than half of the items are a sample.
        pytest.param(of_families, "fewbench", 100, marks=pytest.mark.slow),
    ],
)
def test_the_page_gives_the_numbers_of_the_program(reference, table, method, n):
    kinds = compare(reference, table(), n, method)
    assert set(kinds.values()) == ({"held-out"} if n == 10 else {"held-out", "sampled"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method", "n"),
    [
        ("helm_math", "fewbench-static", 30),
        ("helm_math", "fewbench", 10),
        ("gsm8k_150", "fewbench", 10),  # with near copies
        ("glue_rte", "fewbench", 30),
    ],
)
def test_on_real_tables(reference, name, method, n):
    path = DATA / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"needs {path}")
    scores = load_scores(path)
    tasks = [scores.tasks[at] for at in scores.task_of]
    kinds = compare(reference, without(scores.values, tasks), n, method)
    assert set(kinds.values()) == ({"held-out"} if n == 10 else {"held-out", "sampled"})
