"""Items that no source model ran: drawn beside the chosen items, or all items as a sample.

    python benchmarks/unrun.py FOLDER [--tables helm_math,glue_rte] [--draws 2]

A tenth of the items of real tables is new: of all kinds, or among the hardest. The source models'
answers to them are left out. *Beside*: fewbench chooses among the others, and draws as large a
share of the new ones; *sample*: all items are drawn. Widths are divided by those of random sampling
with as many items, errors by its expected error. FOLDER holds the tables of intervals.py. ± is a
standard error clustered by table and draw.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd

import fewbench
from fewbench.methods.adaptive import fewbench as method
from fewbench.readers import import_results
from fewbench.scores import Scores

TABLES = ("helm_math", "helm_commonsense", "openllm2_math_musr", "glue_rte", "gsm8k_150")
NEW, TARGETS, BUDGETS = 0.1, 12, (30, 100)
NOISE = 0.35
"""Standard deviation of chance beside an item's mean score, by which hard items are chosen."""


def new_items(table: Scores, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Return the positions of the items that no source model ran."""
    n = round(NEW * table.n_items)
    means = table.filled_cells[:].mean(axis=0)
    by = rng.random(table.n_items) if kind == "any" else means + NOISE * rng.random(table.n_items)
    return np.argsort(by)[:n]


def rows(folder: Path, names: list[str], draws: int) -> Iterator[dict[str, object]]:
    """Yield a row for each run."""
    for name in names:
        table = import_results(folder / f"{name}.npz").scores
        for draw in range(draws):
            rng = np.random.default_rng([31, draw])
            order = rng.permutation(table.n_models)
            sources, targets = table.take(models=order[TARGETS:]), order[:TARGETS]
            for kind in ("any", "hard"):
                values = sources.filled_cells[:].copy()
                values[:, new_items(table, kind, rng)] = np.nan
                known = sources.changed(values=values)
                for at in targets:
                    for budget in BUDGETS:
                        for way in ("beside", "sample"):
                            found = ran(known, table.take(models=[int(at)]), budget, draw, way)
                            where = {"table": name, "draw": draw, "new": kind}
                            yield {**where, "items": budget, "way": way, **found}


def ran(sources: Scores, target: Scores, budget: int, seed: int, way: str) -> dict[str, float]:
    """Return what a run finds, beside the truth."""
    name = target.model_ids[0]
    answers = dict(zip(target.item_ids, target.filled_cells[0].tolist(), strict=True))
    how = {"seed": seed, "targets": [name], "on_progress": lambda *_: None}
    beside = method.samples_unrun if way == "beside" else lambda _: False
    with patch.object(method, "samples_unrun", beside):
        found = fewbench.run(sources, "fewbench", budget, score=answers.get, **how).estimates[name]
    half, truth = (found.interval.high - found.interval.low) / 2, float(target.full_scores()[0])
    of_tasks = [
        interval.low - 1e-9 <= score <= interval.high + 1e-9
        for score, interval in zip(
            target.task_scores()[0], found.task_intervals.values(), strict=True
        )
        if interval is not None
    ]
    return {
        "covered": float(found.interval.low - 1e-9 <= truth <= found.interval.high + 1e-9),
        "tasks covered": float(np.mean(of_tasks)) if of_tasks else np.nan,
        "width": half / found.random.half_width,
        "error": abs(found.score - truth) / found.random.expected_error,
        "bias": found.score - truth,
    }


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--draws", type=int, default=2)
    given = parser.parse_args()
    found = pd.DataFrame(rows(given.folder, given.tables.split(","), given.draws))
    measures = ["covered", "tasks covered", "width", "error", "bias"]
    cells = ["new", "items", "way"]
    by_draw = found.groupby([*cells, "table", "draw"])[measures].mean()
    means = by_draw.groupby(cells).mean().round(3).astype(str)
    errors = by_draw.groupby(cells).sem().round(3).astype(str)
    least = found.groupby([*cells, "table"])["covered"].mean().groupby(cells).min()
    table = (means + " ± " + errors).assign(**{"least of a table": least.round(2)})
    print(table.reset_index().to_markdown(index=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
