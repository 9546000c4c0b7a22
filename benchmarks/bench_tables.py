"""Building, loading and importing large tables, against the least that it takes.

    python benchmarks/bench_tables.py [--models 2000] [--items 30000] [--rows 2000000]

Processor time of `from_arrays` (0 and 1 as float64, the same with NaN, as bytes) against one sum,
of `load_scores` of an .npz file against `numpy.load` and a sum, of a long .csv file against
reading it with pyarrow and a pivot, and of a wide one against reading it with pandas; each the
least of three, with equal tables.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import csv

from fewbench import Columns, from_arrays, import_results, load_scores

LIMITS = {"from_arrays": 12.0, "load_scores": 2.0, "csv": 1.5, "wide": 2.0}


def least(task: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """The least processor time of a few runs, and the last result."""
    spent = []
    for _ in range(times):
        started = time.process_time()
        found = task()
        spent.append(time.process_time() - started)
    return min(spent), found


def show(what: str, own: float, peer: float, limit: float) -> None:
    print(f"{what}: {own:.2f} s, {own / peer:.1f} of {peer:.3f} s (limit {limit:g})", flush=True)


def arrays(values: np.ndarray, models: list[str]) -> None:
    peer, _ = least(values.sum)
    gaps = values.copy()
    gaps[:, ::97] = np.nan
    digests = set()
    for name, table in (
        ("0 and 1", values),
        ("0, 1 and NaN", gaps),
        ("bytes", values.astype("u1")),
    ):
        own, scores = least(lambda table=table: from_arrays(table, models=models))
        assert np.array_equal(scores.cells[:50], table[:50], equal_nan=True)
        digests.add(scores.digest)
        show(f"from_arrays of {name}", own, peer, LIMITS["from_arrays"])
    assert len(digests) == 2


def npz(values: np.ndarray, models: list[str], path: Path) -> None:
    np.savez(path, scores=values, models=np.array(models))
    peer, total = least(lambda: np.load(path)["scores"].sum())
    own, scores = least(lambda: load_scores(path))
    assert np.isclose(scores.full_scores().sum() * values.shape[1], total)
    show("load_scores of .npz", own, peer, LIMITS["load_scores"])


def long_csv(rows: int, path: Path) -> None:
    n_items = 14_042
    n_models = rows // n_items
    rng = np.random.default_rng(0)
    model = np.repeat([f"organization/model-{m}" for m in range(n_models)], n_items)
    item = np.tile(
        [f"task-{i // 250}/{i * 2654435761 % 2**32:08x}" for i in range(n_items)], n_models
    )
    score = (rng.random(len(model)) < 0.6).astype(int)
    pd.DataFrame({"model": model, "item": item, "score": score}).to_csv(path, index=False)

    def peer() -> pd.DataFrame:
        table = csv.read_csv(path).to_pandas()
        return table.pivot(index="model", columns="item", values="score")

    columns = Columns(model="model", item="item", score="score")
    pivot_time, table = least(peer)
    own, reading = least(lambda: import_results(path, columns=columns))
    scores = reading.scores
    assert (table.loc[scores.model_ids, scores.item_ids].to_numpy() == scores.values).all()
    show(f"long .csv of {len(model):,} rows", own, pivot_time, LIMITS["csv"])


def wide_csv(values: np.ndarray, models: list[str], path: Path) -> None:
    index = pd.Index(models, name="model")
    frame = pd.DataFrame(values.astype(int), index, [f"item-{i}" for i in range(values.shape[1])])
    frame.to_csv(path)
    pandas_time, table = least(lambda: pd.read_csv(path, index_col="model"), 2)
    own, reading = least(lambda: import_results(path, columns=Columns(model="model")), 2)
    assert (table.to_numpy() == reading.scores.values).all()
    size = f"{len(models):,} × {values.shape[1]:,}"
    show(f"wide .csv of {size}", own, pandas_time, LIMITS["wide"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--items", type=int, default=30_000)
    parser.add_argument("--rows", type=int, default=2_000_000)
    sizes = parser.parse_args()
    values = (np.random.default_rng(0).random((sizes.models, sizes.items)) < 0.6).astype(float)
    models = [f"model-{m}" for m in range(sizes.models)]
    arrays(values, models)
    with tempfile.TemporaryDirectory() as folder:
        npz(values, models, Path(folder) / "table.npz")
        long_csv(sizes.rows, Path(folder) / "long.csv")
        wide_csv(values[:1000, :20_000], models[:1000], Path(folder) / "wide.csv")


if __name__ == "__main__":
    main()
