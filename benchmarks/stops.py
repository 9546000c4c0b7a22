"""Items until an interval is narrow enough, and whether plans keep what they say.

    python benchmarks/stops.py FOLDER [--half-widths 0.05,0.08] [--draws 5] [--plans 2]

Targets are like the source models, strong ones or beyond a gap (the splits of intervals.py). Runs
stop at a half width. A plan for that half width is made on the sources alone, and targets then run
as many items as it says: its half width is what they have. FOLDER holds the tables of intervals.py.
± is a standard error clustered by table and draw.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import fewbench
from fewbench.evaluation import Stop
from fewbench.readers import import_results
from fewbench.scores import Scores
from fewbench.study.splits import SplitSettings, make_split

TABLES = ("helm_math", "openllm2_math_musr", "helm_gsm", "alpaca_eval_58", "glue_rte")
SPLITS = {
    "like": SplitSettings("random"),
    "top": SplitSettings("performance"),
    "gap": SplitSettings("performance", targets=0.3, gap=0.2),
}
TARGETS = 6
"""Targets of a draw."""


def ran(sources: Scores, target: Scores, seed: int, **limit: object) -> tuple[int, float, bool]:
    """Return the items of a run, its half width and whether the interval holds the truth."""
    name = target.model_ids[0]
    answers = dict(zip(target.item_ids, target.filled_cells[0].tolist(), strict=True))
    how = {"seed": seed, "targets": [name], "on_progress": lambda *_: None}
    result = fewbench.run(sources, "fewbench", score=answers.get, **limit, **how)
    of = result.targets[name]
    ends = of.estimate.interval
    truth = float(target.full_scores()[0])
    inside = ends.low - 1e-9 <= truth <= ends.high + 1e-9
    return of.items_run, (ends.high - ends.low) / 2, inside


def rows(folder: Path, halves: list[float], draws: int, plans: int) -> Iterator[dict[str, object]]:
    """Yield a row for each run."""
    for name in TABLES:
        table = import_results(folder / f"{name}.npz").scores
        for draw in range(draws):
            for kind, settings in SPLITS.items():
                split = make_split(table, settings, draw, draw)
                sources = table.take(models=split.sources).changed()
                order = np.random.default_rng(draw).permutation(split.targets)[:TARGETS]
                targets = [table.take(models=[at]) for at in order]
                for half in halves:
                    at = {"table": name, "draw": draw, "split": kind, "asked": half}
                    for target in targets:
                        came = ran(sources, target, draw, stop=Stop(half_width=half))
                        yield at | dict(zip(("items", "half", "held"), came, strict=True))
                    if kind != "like" or draw >= plans:
                        continue
                    made = fewbench.plan(sources, half_width=half, expect="like", repeats=3)
                    (forecast,) = made.forecasts
                    print(name, draw, half, made.answer, file=sys.stderr)
                    for target in targets if forecast.method == "fewbench" else []:
                        came = ran(sources, target, draw, budget=forecast.items)
                        row = dict(zip(("items", "half", "held"), came, strict=True))
                        yield at | {"split": "planned"} | row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half-widths", default="0.05,0.08")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--plans", type=int, default=2)
    given = parser.parse_args()
    halves = [float(half) for half in given.half_widths.split(",")]
    found = pd.DataFrame(rows(given.folder, halves, given.draws, given.plans))
    print("| targets | asked | runs | items | half width | covered |\n|---|---|---|---|---|---|")
    for (kind, half), part in found.groupby(["split", "asked"], sort=False):
        cells = part.groupby(["table", "draw"])[["items", "half", "held"]].mean()
        mean, error = cells.mean(), cells.std(ddof=1) / np.sqrt(len(cells))
        print(
            f"| {kind} | ± {half:.0%} | {len(part)} | {mean['items']:.0f} ± {error['items']:.0f} | "
            f"{mean['half']:.3f} | {mean['held']:.3f} ± {error['held']:.3f} |"
        )


if __name__ == "__main__":
    main()
