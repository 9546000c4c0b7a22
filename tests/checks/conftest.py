"""Tables with one thing wrong in each, and the real ones where they lie beside the checkout."""

from pathlib import Path

import numpy as np
import pytest

from fewbench.readers import import_results
from fewbench.scores import from_arrays

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def independent(seed=0, models=30, items=400, tasks=4):
    """Independent models of the Rasch model with spread-out ability; values, names, tasks."""
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-(rng.normal(0, 1, (models, 1)) - rng.normal(0, 1, items))))
    values = (rng.random(p.shape) < p).astype(float)
    names = [f"lab/model-{m:02}" for m in range(models)]
    return values, names, [f"task-{i * tasks // items}" for i in range(items)]


@pytest.fixture
def make():
    """Build scores of independent models after a change to values and names."""

    def build(change=None, seed=0, **more):
        sizes = {k: more.pop(k) for k in ("models", "items", "tasks") if k in more}
        values, names, tasks = independent(seed, **sizes)
        if change is not None:
            change(values, names)
        return from_arrays(values, models=names, tasks=tasks, **more)

    return build


@pytest.fixture(scope="session")
def real():
    def load(name):
        path = DATA / f"{name}.npz"
        if not path.is_file():
            pytest.skip(f"needs the table {name}.npz in ../shared/data, which is not there")
        return import_results(path).scores

    return load
