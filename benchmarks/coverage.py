"""Coverage of 90 % intervals on real tables under several splits: the tables of docs/intervals.md.

A cell shows the share of targets inside their interval, its mean width, and in brackets the share
of targets whose estimate says that they may be beyond the source models. Below are means over
tables by split: coverage, and the width relative to that of random sampling.

    python benchmarks/coverage.py FOLDER [--methods a,b] [--repeats 10] [--workers 2]

FOLDER holds the tables named below (see docs/results.md); the bundled zoo needs none.
"""

import argparse
from pathlib import Path

import numpy as np

from fewbench.datasets import load_zoo
from fewbench.readers import read
from fewbench.study import SplitSettings, compare

METHODS = [
    "greedy-ridge",
    "random-stratified",
    "random-linear",
    "anchor-points",
    "kmedoids-ridge",
    "clustering",
    "disco-jsd-ridge",
    "random-signature-knn",
]
BY_STRENGTH = ["random", "performance", "gap"]
TABLES = {
    "gsm8k_150": BY_STRENGTH,
    "helm_gsm": BY_STRENGTH,
    "helm_med_qa": BY_STRENGTH,
    "openllm2_math_musr": BY_STRENGTH,
    "glue_sst2": BY_STRENGTH,
    "helm_math": BY_STRENGTH,
    "zoo": ["random", "group", "chronological", "performance"],
}
SETTINGS = {"gap": SplitSettings("performance", targets=0.3, gap=0.2)}
BUDGET = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--methods", default=",".join(METHODS), help="by commas")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    names = ["random", "random-ridge", *given.methods.split(",")]
    print(f"| table, split ({BUDGET} items) | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    shown: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for table, splits in TABLES.items():
        scores = load_zoo() if table == "zoo" else read(given.folder / f"{table}.npz").scores
        for split in splits:
            settings = SETTINGS.get(split) or SplitSettings(split)  # type: ignore[arg-type]
            repeats = given.repeats if settings.is_drawn else min(given.repeats, 3)
            outcome = compare(scores, names[2:], [BUDGET], settings, repeats, workers=given.workers)
            cells = outcome.cells.set_index("method")
            row = [
                f"{100 * cells.loc[name, 'coverage90']:.0f} % "
                f"{100 * cells.loc[name, 'width90']:.0f} pp "
                f"({100 * cells.loc[name, 'beyond']:.0f} %)"
                for name in names
            ]
            print(f"| {table}, {split} | " + " | ".join(row) + " |", flush=True)
            for name in names:
                width = cells.loc[name, "width90"] / cells.loc["random", "width90"]
                shown.setdefault((split, name), []).append((cells.loc[name, "coverage90"], width))
    for split in dict.fromkeys(split for split, _ in shown):
        means = (np.mean(shown[split, name], axis=0) for name in names)
        said = [f"{100 * covered:.0f} % × {width:.2f}" for covered, width in means]
        print(f"| *mean, {split}* | " + " | ".join(said) + " |")


if __name__ == "__main__":
    main()
