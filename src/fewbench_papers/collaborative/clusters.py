"""The baseline "clustering (historical)" of Two-Stage Collaborative Filtering (Eq. 5).

k-means within each task, the item nearest each center, weighted by cluster.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.algorithms.sampling import allocate, task_sizes
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Scores
from fewbench.support import FloatArray, IntArray
from fewbench_papers.algorithms.clustering.kmeans import representatives


@dataclass(frozen=True)
class Clusters:
    """Items nearest the k-means centers of each task's source-score columns.

    - `minimum`: As in the selector `stratified`.
    """

    minimum: int = 0
    needs: ClassVar = (Need("independent sources", 20, "few sources distinguish few items"),)

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Cluster each task's items; weights are the clusters' shares of the full score."""
        check_number("minimum", self.minimum, 0, 1_000_000)
        return cluster_subset(
            scores, lambda items: scores.filled[:, items].T, budget, seed, self.minimum
        )


def cluster_subset(
    scores: Scores,
    points: Callable[[IntArray], FloatArray],
    budget: int,
    seed: int,
    minimum: int = 0,
) -> Subset:
    """Cluster each task's items as points, and choose the item nearest each center.

    `points` maps positions of items, shape (n,), to points, shape (n, dimensions). Tasks share the
    budget in proportion to their weight in the full score, or get `minimum` items and share the
    rest by their size. The subset's weights are the clusters'
    shares of the full score: Eq. 5, summed over the tasks.
    """
    rng = np.random.default_rng(seed)
    sizes = np.bincount(scores.task_of)
    masses = np.bincount(scores.task_of, weights=scores.item_weights)
    counts = task_sizes(budget, sizes, minimum) if minimum else allocate(budget, masses, sizes, rng)
    chosen: list[int] = []
    shares: list[float] = []
    for task in np.flatnonzero(counts):
        items = np.flatnonzero(scores.task_of == task)
        picked, labels = representatives(points(items), int(counts[task]), int(rng.integers(2**31)))
        chosen.extend(items[picked].tolist())
        shares.extend(np.bincount(labels, scores.item_weights[items], len(picked)).tolist())
    return Subset(items=tuple(scores.item_ids[chosen]), weights=tuple(shares))
