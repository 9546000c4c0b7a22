"""Time of choosing tasks against a limit, and beside a plain greedy choice.

    python benchmarks/bench_tasks.py

1,000 simulated tasks, 50 to be chosen, on S and on S'. The limit of 2 processor seconds is for the
whole: similarities, eigenvectors, choice. The plain choice works every gain out at every step.
"""

import time
from functools import partial

import numpy as np

from fewbench._threads import one_thread
from fewbench_papers.bento import Similarity, TaskMatrix
from fewbench_papers.bento.facility_location import facility_location
from papers.methods.bento import MatchedSim, best_facilities, chooser_of

TASKS, K, LIMIT = 1000, 50, 2.0


def simulated(n: int, seed: int = 0) -> TaskMatrix:
    """Tasks that are mixtures of thirty kinds, some of them easier."""
    rng = np.random.default_rng(seed)
    rows = 0.02 * rng.normal(size=(n, 30)) @ rng.normal(size=(30, n)) / np.sqrt(30)
    rows += 0.01 * rng.normal(size=(n, n)) + rng.uniform(0.3, 0.8, size=n)
    names = tuple(f"task-{i}" for i in range(n))
    return TaskMatrix(rows, names, np.full(n, 100), rows.mean(axis=0), "simulated")


def plain_greedy(s: np.ndarray, k: int) -> list[int]:
    covered, chosen = np.zeros(len(s)), []
    for _ in range(k):
        gains = np.maximum(s - covered[:, None], 0).sum(axis=0)
        gains[chosen] = -np.inf
        chosen.append(int(gains.argmax()))
        covered = np.maximum(covered, s[:, chosen[-1]])
    return chosen


def seconds(work) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def line(what: str, spent: float, beside: str) -> None:
    print(f"  {what:<24} {spent:6.2f} s   {beside}")


def main() -> None:
    matrix = simulated(TASKS)
    print(f"choosing {K} of {TASKS:,} tasks, processor seconds")
    with one_thread():
        for method in ("bento-sim", "bento-le", MatchedSim(within=0.001)):
            spent = seconds(partial(chooser_of(method).order, matrix, K, 0))
            line(str(method), spent, f"{spent / LIMIT:5.2f} of the limit of {LIMIT:g} s")
        s = Similarity().sim(matrix.rows)
        lazy = seconds(lambda: facility_location(s, K))
        plain = seconds(lambda: plain_greedy(s, K))
        print(
            f"  greedy choice alone      {lazy:6.2f} s   {plain / lazy:5.1f} times as fast as plain"
        )
        small = Similarity().sim(simulated(150).rows)
        start = facility_location(small, 10)
        found = best_facilities(small, 10, start=start.chosen)
        spent = seconds(lambda: best_facilities(small, 10, start=start.chosen))
        gap = 1 - start.value / found.value
        print(
            f"  exact, 10 of 150 tasks   {spent:6.2f} s   the greedy choice covers {gap:.2%} less"
        )


if __name__ == "__main__":
    main()
