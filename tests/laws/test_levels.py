"""Law 9: runs of one model are told apart as rarely as stated (more: benchmarks/field.py)."""

import numpy as np
import pytest

import fewbench

WORLDS, RUNS, N_ITEMS = 40, 4, 120
CLUSTERS = np.repeat(np.arange(20), np.r_[np.full(12, 2), np.full(4, 5), np.full(4, 19)])
SHAPES = ("right or wrong", "fractional", "judged", "macro", "clustered", "weighted")


@pytest.mark.parametrize("shape", SHAPES)
def test_runs_of_one_model_are_told_apart_as_rarely_as_stated(shape):
    wrong = 0
    for world in range(WORLDS):
        rng = np.random.default_rng([world, 7])
        chances = rng.beta(0.7, 0.7, N_ITEMS)
        noise = np.zeros((RUNS, N_ITEMS))
        if shape == "clustered":
            noise = rng.normal(0, 0.25, (RUNS, 20))[:, CLUSTERS]
        rows = (rng.random((RUNS, N_ITEMS)) < np.clip(chances + noise, 0, 1)).astype(float)
        if shape in ("fractional", "judged"):
            rows = np.clip(chances + rng.normal(0, 0.1, (RUNS, N_ITEMS)), 0, 1)
            rows = np.round(rows, 1) if shape == "judged" else rows
        tasks = [f"t{int(at**0.5) % 3}" for at in range(N_ITEMS)]
        table = fewbench.from_arrays(rows, models=list("abcd"), tasks=tasks)
        if shape == "clustered":
            table = table.changed(items=table.items.assign(cluster=[f"c{at}" for at in CLUSTERS]))
        if shape == "weighted":
            table = table.changed(items=table.items.assign(weight=1.0 + np.arange(N_ITEMS) % 4))
        if shape == "macro":
            table = table.averaged("macro")
        wrong += any(place.rank_low > 1 for place in fewbench.rank(table).targets)
    assert wrong / WORLDS <= 0.107 + 2 * np.sqrt(0.1 * 0.9 / WORLDS)
