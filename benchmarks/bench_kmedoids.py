"""Speed and cost of our item distances and k-medoids, next to scipy and the kmedoids package.

    python benchmarks/bench_kmedoids.py [--quick] [--scores FILE.npz]

The data are simulated answers of 400 models to 14,042 items (--quick: 3,000), from a
two-parameter logistic model; --scores adds a table of item scores (models in rows, those of
role "source" if roles are given) with small numbers of medoids. Ratios above 1 mean that ours is
faster, or dearer in cost.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench_papers.algorithms.clustering.distances import item_distances
from fewbench_papers.algorithms.clustering.kmedoids import kmedoids


def simulated_answers(n_items: int, n_models: int, seed: int = 0) -> NDArray[np.float64]:
    """0/1 answers, (n_items, n_models), of a two-parameter logistic model."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=n_models)
    discrimination = np.exp(0.3 * rng.normal(size=(n_items, 1)))
    difficulty = rng.normal(size=(n_items, 1))
    chance = 1 / (1 + np.exp(-discrimination * (ability - difficulty)))
    return (rng.random(chance.shape) < chance).astype(np.float64)


def timed(call: Callable[..., Any], *args: Any, **settings: Any) -> tuple[Any, float]:
    start = perf_counter()
    result = call(*args, **settings)
    return result, perf_counter() - start


def distance_row(columns: NDArray[np.float64], against_scipy: bool) -> NDArray[np.float32]:
    distances, ours = timed(item_distances, columns)
    line = f"manhattan distances  {len(columns):>6} items  ours {ours:8.3f} s"
    if against_scipy:
        from scipy.spatial.distance import cdist

        expected, theirs = timed(cdist, columns, columns, "cityblock")
        assert np.array_equal(distances, expected)
        line += f"   scipy cdist {theirs:8.3f} s   ratio {theirs / ours:6.1f}"
    print(line)
    result: NDArray[np.float32] = distances
    return result


def clustering_rows(distances: NDArray[np.float32], k: int, seeds: range) -> None:
    """One line for each way of running the package: median times, mean costs over the seeds."""
    ours = [timed(kmedoids, distances, k, np.random.default_rng(s)) for s in seeds]
    time = float(np.median([t for _, t in ours]))
    cost = float(np.mean([r.cost for r, _ in ours]))
    head = f"{len(distances):>6} items  k={k:<4} ours {time:8.4f} s  cost {cost:12.1f}"
    if find_spec("kmedoids") is None:
        print(head)
        return
    from kmedoids import fasterpam  # type: ignore[import-untyped]

    for name, n_cpu in (("1 thread", 1), ("default", -1)):
        theirs = [
            timed(fasterpam, distances, k, init="random", random_state=s, n_cpu=n_cpu)
            for s in seeds
        ]
        their_time = float(np.median([t for _, t in theirs]))
        their_cost = float(np.mean([r.loss for r, _ in theirs]))
        print(
            f"{head}   kmedoids ({name:8}) {their_time:8.4f} s"
            f"   speed ratio {their_time / time:5.2f}   cost ratio {cost / their_cost:.5f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="3,000 items instead of 14,042")
    parser.add_argument("--scores", metavar="FILE.npz", help="also this table of scores")
    options = parser.parse_args()
    if find_spec("kmedoids") is None:
        print("The kmedoids package is missing: only our own times. (pip install kmedoids)")

    n_items = 3_000 if options.quick else 14_042
    distances = distance_row(simulated_answers(n_items, 400), against_scipy=options.quick)
    clustering_rows(distances, 100, range(5 if options.quick else 3))

    if options.scores:
        with np.load(options.scores) as table:
            scores = table["scores"]
            if "role" in table:
                scores = scores[table["role"] == "source"]
        distances = distance_row(scores.T.astype(np.float64), against_scipy=True)
        for k in (20, 30, 40):
            clustering_rows(distances, k, range(20))


if __name__ == "__main__":
    main()
