"""A whole comparison, against the limit of a minute on two cores.

Six methods × 3 budgets × 10 repeats with intervals, on a simulated table as large as GSM8K's of
the TailoredBench paper (150 models × 1319 items), or on a table of your own:

    python benchmarks/bench_compare.py --scores scores.parquet

With --efficiency, the same comparison runs on one process and on two, with their start: the
efficiency is the time of one over twice the time of two, at least 0.85. The share of processor time
that two processes add is printed too; it does not depend on what else the machine does.
"""

import argparse
import resource
import time
from pathlib import Path

from fewbench.readers import import_results
from fewbench.study import compare
from fewbench.testing import simulate

LIMIT = 60.0
EFFICIENCY = 0.85
METHODS = [
    "random",
    "random-ridge",
    "random-linear",
    "anchor-points",
    "kmedoids-ridge",
    "clustering",
]


def timed(scores, workers: int, **grid) -> tuple[float, float]:
    """Return the seconds that pass, and those of processors."""
    used, started = processors(), time.perf_counter()
    compare(scores, METHODS, workers=workers, **grid)
    return time.perf_counter() - started, processors() - used


def processors() -> float:
    both = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


def measure_efficiency(scores) -> None:
    """Compare one process with two, taking turns."""
    grid = {"budgets": [20, 30, 40], "repeats": 10}
    compare(scores, METHODS, [20], repeats=1)  # imports, and what is computed once for a table
    one, two = [], []
    for _ in range(2):
        one.append(timed(scores, 1, **grid))
        two.append(timed(scores, 2, **grid))
    passed, used = ([min(run[at] for run in runs) for runs in (one, two)] for at in (0, 1))
    print(
        f"1 process {passed[0]:.1f} s, 2 processes {passed[1]:.1f} s: efficiency "
        f"{passed[0] / 2 / passed[1]:.2f} (wanted: {EFFICIENCY}); processor time "
        f"{used[0]:.1f} s and {used[1]:.1f} s: {used[0] / used[1]:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scores", type=Path)
    parser.add_argument("--efficiency", action="store_true")
    given = parser.parse_args()
    path = given.scores
    scores = simulate(n_models=150, n_items=1319) if path is None else import_results(path).scores
    if given.efficiency:
        measure_efficiency(scores)
        return
    took, _ = timed(scores, 2, budgets=[20, 30, 40], repeats=10)
    print(
        f"{len(METHODS)} methods × 3 budgets × 10 repeats on {scores.n_models} models × "
        f"{scores.n_items} items: {took:.1f} s, {took / LIMIT:.2f} of the limit"
    )


if __name__ == "__main__":
    main()
