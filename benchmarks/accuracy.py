"""Accuracy on real tables, beside the figures of an independent re-implementation.

    python benchmarks/accuracy.py FOLDER [--repeats 10] [--workers 2]

FOLDER holds gsm8k_150.npz and llmub_mmlu.npz (see docs/results.md). Prints the
numbers of docs/methods/disco.md and docs/methods/random.md.
"""

import argparse
from pathlib import Path

import numpy as np

from fewbench.readers import read
from fewbench.scores import Scores
from fewbench.study import SplitSettings, compare


def random_sampling(scores: Scores, repeats: int) -> None:
    outcome = compare(scores, ["random"], [20, 30, 40], SplitSettings("given"), repeats, level=None)
    of_targets = scores.take(models=np.flatnonzero(scores.models["role"] == "target"))
    p, n_items = of_targets.full_scores(), scores.n_items
    print("\nGSM8K, given split, random sampling: error against theory")
    for row in outcome.cells.query("method == 'random'").to_dict("records"):
        n = int(row["budget"])
        theory = np.sqrt(2 / np.pi * p * (1 - p) / n * (1 - n / n_items)).mean()
        print(f"  {n:4d} items  {row['mae']:.4f}  theory {theory:.4f}  {row['mae'] / theory:.3f}")


def show(title: str, scores: Scores, methods: list[str], budgets: list[int], split: str, **more):  # type: ignore[no-untyped-def]
    outcome = compare(scores, methods, budgets, SplitSettings(split), level=None, **more)
    print(f"\n{title}")
    for method in methods:
        cells = outcome.cells[outcome.cells["method"] == method]
        errors = " ".join(
            f"{100 * row['mae']:.2f}±{100 * row['mae_se']:.2f}" for row in cells.to_dict("records")
        )
        taus = " ".join(f"{tau:.3f}" for tau in cells["kendall_tau"])
        print(f"  {method:<36} error (pp) {errors}  tau {taus}")
    for warning in outcome.warnings:
        print(f"  {warning}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    many = {"repeats": given.repeats, "workers": given.workers}
    gsm8k = read(given.folder / "gsm8k_150.npz").scores
    random_sampling(gsm8k, 200)
    show(
        "GSM8K, given split, 20/30/40 items",
        gsm8k,
        ["anchor-points", "kmedoids-ridge"],
        [20, 30, 40],
        "given",
        repeats=30,
        workers=given.workers,
    )
    mmlu = read(given.folder / "llmub_mmlu.npz").scores
    show(
        "MMLU, checkpoints held out, 10/30/100 items",
        mmlu,
        ["disco-jsd-ridge", "disco-pds-rf", "random+signature+ridge(alpha=1)", "kmedoids-ridge"],
        [10, 30, 100],
        "group",
        **many,
    )
    show(
        "MMLU, random split of runs, 10/30/100 items",
        mmlu,
        ["random-signature-knn"],
        [10, 30, 100],
        "random",
        **many,
    )


if __name__ == "__main__":
    main()
