"""Clustering of past scores: k-means within each task, the item nearest each centre.

The baseline "clustering (historical)" of Two-Stage Collaborative Filtering (Eq. 5).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.clustering.kmeans import representatives
from fewbench.algorithms.sampling import allocate
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Scores


@dataclass(frozen=True)
class Clusters:
    """Items nearest the k-means centres of each task's source-score columns.

    Parameters
    ----------
    restarts : int
        Random starts of k-means; the best is kept.
    """

    restarts: int = 1
    needs: ClassVar = (Need("distinct sources", 20, "few sources tell few items apart"),)

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Cluster each task's items; weights are the clusters' shares of the full score."""
        check_number("restarts", self.restarts, 1, 1000)
        return cluster_subset(
            scores, lambda items: scores.filled[:, items].T, budget, seed, self.restarts
        )


def cluster_subset(
    scores: Scores,
    points: Callable[[IntArray], FloatArray],
    budget: int,
    seed: int,
    restarts: int,
) -> Subset:
    """Cluster each task's items as points, and choose the item nearest each centre.

    Parameters
    ----------
    points : callable
        Takes positions of items, shape (n,), and returns a point for each, shape (n, dimensions).
    budget : int
        Shared among tasks in proportion to their weight in the full score.

    Returns
    -------
    Subset
        Weights are the clusters' shares of the full score: Eq. 5, summed over the tasks.
    """
    rng = np.random.default_rng(seed)
    sizes = np.bincount(scores.task_of)
    masses = np.bincount(scores.task_of, weights=scores.item_weights)
    counts = allocate(budget, masses, sizes, rng)
    chosen: list[int] = []
    shares: list[float] = []
    for task in np.flatnonzero(counts):
        items = np.flatnonzero(scores.task_of == task)
        picked, labels = representatives(
            points(items), int(counts[task]), int(rng.integers(2**31)), restarts
        )
        chosen.extend(items[picked].tolist())
        shares.extend(np.bincount(labels, scores.item_weights[items], len(picked)).tolist())
    return Subset(items=tuple(scores.item_ids[chosen]), weights=tuple(shares))
