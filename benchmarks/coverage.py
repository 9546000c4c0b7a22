"""Coverage of 90 % intervals on real tables under several splits: the table of docs/intervals.md.

A cell shows the share of targets inside their interval, its mean width, and in brackets the share
of targets whose estimate says that they may be beyond the source models.

    python benchmarks/coverage.py FOLDER [--repeats 10] [--workers 2]

FOLDER holds the tables named below (see docs/results.md); the bundled zoo needs none.
"""

import argparse
from pathlib import Path

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
TABLES = {
    "gsm8k_150": ["random", "performance"],
    "helm_gsm": ["random", "performance"],
    "helm_med_qa": ["random", "performance"],
    "openllm2_math_musr": ["random", "performance"],
    "glue_sst2": ["random", "performance"],
    "helm_math": ["random", "performance"],
    "zoo": ["random", "group", "chronological", "performance"],
}
BUDGET = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    names = ["random", "random-ridge", *METHODS]
    print(f"| table, split ({BUDGET} items) | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for table, splits in TABLES.items():
        scores = load_zoo() if table == "zoo" else read(given.folder / f"{table}.npz").scores
        for split in splits:
            outcome = compare(
                scores,
                METHODS,
                [BUDGET],
                SplitSettings(split),  # type: ignore[arg-type]
                given.repeats,
                workers=given.workers,
            )
            cells = outcome.cells.set_index("method")
            row = [
                f"{100 * cells.loc[name, 'coverage90']:.0f} % "
                f"{100 * cells.loc[name, 'width90']:.0f} pp "
                f"({100 * cells.loc[name, 'beyond']:.0f} %)"
                for name in names
            ]
            print(f"| {table}, {split} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
