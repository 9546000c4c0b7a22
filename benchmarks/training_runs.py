"""Checkpoints as source models: the tables of benchmarks/results/training_runs.md.

Real training runs (A 25 checkpoints; B, C and D six each, of other seeds, sizes and data) are the
source models. Targets are later checkpoints of the same run, or checkpoints of another run. The
same targets are estimated with families from the names, with meaningless names, and without source
models.

    python benchmarks/training_runs.py FOLDER [--seeds 4] [--budgets 50,100,150,200]
    python benchmarks/training_runs.py FOLDER --alike

With --alike: how often random samples of models get the warning that they answer alike.

FOLDER holds training_runs.npz, and for --alike the tables named below.
"""

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import fewbench
from fewbench.datasets import load_zoo
from fewbench.errors import EstimateWarning
from fewbench.methods.sources import are_alike
from fewbench.readers import import_results
from fewbench.scores import Benchmark, Scores

LATER = 15
"""Checkpoints of run A before its later ones."""
ORDINARY = (
    "helm_gsm", "helm_med_qa", "helm_commonsense", "helm_math", "gsm8k_150", "openllm2_math_musr",
    "alpaca_eval_58",
)  # fmt: skip
RELATED = ("glue_rte", "glue_sst2", "llmub_mmlu", "training_runs")
SIZES, SAMPLES = (20, 25, 30, 40), 60
MOST_ITEMS = 2000


def cases(scores: Scores) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield each case: its name, and the positions of its source models and of its targets."""
    run = np.array([name.partition("/")[0] for name in scores.model_ids])
    a, others = np.flatnonzero(run == "A"), np.flatnonzero(run != "A")
    yield "another run, from 25 checkpoints of one", a, others
    yield "another run, from 18 checkpoints of three", others, a[1::3]
    yield "later checkpoints, from 15 of the run", a[:LATER], a[LATER:]
    yield "later checkpoints, from 15 and three other runs", np.r_[a[:LATER], others], a[LATER:]


def unnamed(scores: Scores) -> Scores:
    """Return the same scores with meaningless names."""
    names = [f"model-{at}" for at in range(scores.n_models)]
    return scores.changed(models=scores.models.set_axis(names))


def estimates(
    sources: Scores | Benchmark, scores: Scores, targets: np.ndarray, budget: int, seeds: int
) -> Iterator[dict[str, float]]:
    """Yield the miss, half width and error of each estimate, in percentage points."""
    full = dict(zip(scores.model_ids, scores.full_scores().tolist(), strict=True))
    names = [f"target {scores.model_ids[target]}" for target in targets]
    for seed in range(seeds):
        evaluation = fewbench.Evaluation(sources, "auto", budget, names, seed)
        while asked := {name: items for name, items in evaluation.ask().items() if len(items)}:
            for name, items in asked.items():
                row = scores.cells[scores.model_ids.index(name.removeprefix("target "))]
                items = list(items)
                values = row[scores.positions(items)].tolist()
                evaluation.tell(name, dict(zip(items, values, strict=True)))
        for name, estimate in evaluation.estimate().items():
            truth, interval = full[name.removeprefix("target ")], estimate.interval
            yield {
                "covered": float(interval.low - 1e-9 <= truth <= interval.high + 1e-9),
                "error": 100 * abs(estimate.score - truth),
                "half": 50 * (interval.high - interval.low),
                "held_out": float(estimate.interval_kind == "held-out"),
                "alike": float(any("more alike" in text for text in estimate.warnings)),
            }


def backtest(folder: Path, budgets: list[int], seeds: int) -> None:
    """Print coverage, error and half width of every case."""
    scores = import_results(folder / "training_runs.npz").scores
    print(
        "| targets | items | source models | coverage | error, pp | half width, pp | model path |"
    )
    print("|---" * 7 + "|")
    for case, sources, targets in cases(scores):
        table = scores.take(models=sources)
        kinds = {"families by names": table, "names that say nothing": unnamed(table)}
        for budget in budgets:
            for kind, given in [*kinds.items(), ("none", scores.benchmark)]:
                rows = pd.DataFrame(estimates(given, scores, targets, budget, seeds))
                mean = rows.mean()
                path = f"{mean['held_out']:.0%}"
                if mean["alike"]:
                    path += f", warned {rows['alike'].sum() / rows['held_out'].sum():.0%}"
                print(
                    f"| {case} ({len(rows)}) | {budget} | {kind} | {mean['covered']:.2f} | "
                    f"{mean['error']:.2f} | {mean['half']:.2f} | {path} |",
                    flush=True,
                )


def alike(folder: Path) -> None:
    """Print the share of random samples of models that get the warning."""
    rng = np.random.default_rng(0)
    print("| table | models | " + " | ".join(map(str, SIZES)) + " | all |")
    print("|---" * (len(SIZES) + 3) + "|")
    for name in (*ORDINARY, "zoo", *RELATED):
        table = load_zoo() if name == "zoo" else import_results(folder / f"{name}.npz").scores
        items = np.linspace(0, table.n_items - 1, min(table.n_items, MOST_ITEMS)).astype(int)
        table = unnamed(table.take(items=items).changed(probabilities=None))
        table = table.changed(models=table.models.drop(columns="family", errors="ignore"))
        shares = []
        for size in SIZES:
            parts = (rng.permutation(table.n_models)[:size] for _ in range(SAMPLES))
            shares.append(np.mean([are_alike(table.take(models=np.sort(part))) for part in parts]))
        every = "warned" if are_alike(table) else "–"
        print(f"| {name} | {table.n_models} | " + " | ".join(f"{x:.0%}" for x in shares),
              f"| {every} |", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--budgets", default="50,100,150,200")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--alike", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore", EstimateWarning)
    if given.alike:
        alike(given.folder)
    else:
        backtest(given.folder, [int(budget) for budget in given.budgets.split(",")], given.seeds)


if __name__ == "__main__":
    main()
