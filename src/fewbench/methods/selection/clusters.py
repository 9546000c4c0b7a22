"""Clustering of past scores: k-means within each task, the item nearest each centre.

The baseline "clustering (historical)" of Two-Stage Collaborative Filtering (Eq. 5).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fewbench.algorithms.allocation import allocate
from fewbench.errors import MethodError
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
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
        if self.restarts < 1:
            raise MethodError(f"restarts is {self.restarts}", hint="use 1 or more")
        rng = np.random.default_rng(seed)
        sizes = np.bincount(scores.task_of)
        masses = np.bincount(scores.task_of, weights=scores.item_weights)
        counts = allocate(budget, masses, sizes, rng)
        chosen: list[int] = []
        shares: list[float] = []
        for task in np.flatnonzero(counts):
            items = np.flatnonzero(scores.task_of == task)
            picked, labels = _representatives(
                scores.filled[:, items].T,
                int(counts[task]),
                int(rng.integers(2**31)),
                self.restarts,
            )
            chosen.extend(items[picked].tolist())
            shares.extend(np.bincount(labels, scores.item_weights[items], len(picked)).tolist())
        return Subset(items=tuple(scores.item_ids[chosen]), weights=tuple(shares))


def _representatives(
    columns: NDArray[np.float64], k: int, seed: int, restarts: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return k distinct items nearest the k-means centres, and every item's cluster."""
    if k == len(columns):
        return np.arange(k), np.arange(k)
    distinct = len(np.unique(columns, axis=0))
    if distinct <= k:  # k-means cannot make more clusters than there are distinct points
        _, first, labels = np.unique(columns, axis=0, return_index=True, return_inverse=True)
        more = np.setdiff1d(np.arange(len(columns)), first)[: k - distinct]
        labels[more] = distinct + np.arange(len(more))
        return np.concatenate([first, more]), labels
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # sums in another order could turn ties
        fitted = KMeans(k, n_init=restarts, random_state=seed).fit(columns)
    squared = (columns**2).sum(axis=1)[:, None] - 2 * columns @ fitted.cluster_centers_.T
    squared += (fitted.cluster_centers_**2).sum(axis=1)
    squared[fitted.labels_[:, None] != np.arange(k)] = np.inf  # only a cluster's own members
    return squared.argmin(axis=0), fitted.labels_.astype(np.intp)
