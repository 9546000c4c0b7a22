"""A whole comparison, against the limit of a minute on two cores.

Six methods × 3 budgets × 10 repeats with intervals, on a simulated table as large as GSM8K's of
the TailoredBench paper (150 models × 1319 items), or on a table of your own:

    python benchmarks/bench_compare.py --scores scores.parquet
"""

import argparse
import time
from pathlib import Path

from fewbench.readers import read
from fewbench.study import compare
from fewbench.testing import simulate

LIMIT = 60.0
METHODS = [
    "random",
    "random-ridge",
    "random-linear",
    "anchor-points",
    "kmedoids-ridge",
    "clustering",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scores", type=Path)
    path = parser.parse_args().scores
    scores = simulate(n_models=150, n_items=1319) if path is None else read(path).scores
    started = time.perf_counter()
    compare(scores, METHODS, [20, 30, 40], repeats=10, workers=2)
    took = time.perf_counter() - started
    print(
        f"{len(METHODS)} methods × 3 budgets × 10 repeats on {scores.n_models} models × "
        f"{scores.n_items} items: {took:.1f} s, {took / LIMIT:.2f} of the limit"
    )


if __name__ == "__main__":
    main()
