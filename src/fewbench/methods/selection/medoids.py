"""Anchor points: k-medoids of the items by how past models scored on them.

Vivek et al. 2023, "Anchor Points: Benchmarking Models with Much Fewer Examples",
arXiv 2309.08638.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.algorithms.clustering.distances import Metric, item_distances
from fewbench.algorithms.clustering.kmedoids import kmedoids
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Scores


@dataclass(frozen=True)
class Medoids:
    """Items at the centre of clusters of source-score columns, weighted by cluster.

    Parameters
    ----------
    metric : {"manhattan", "euclidean", "cosine", "correlation", "absolute-correlation"}
        Distance between two items' columns of source scores.
    standardise : bool
        First bring each source's scores to mean 0 and variance 1.
    restarts : int
        Random starts; the cheapest clustering is kept.
    """

    metric: Metric = "manhattan"
    standardise: bool = False
    restarts: int = 1
    needs: ClassVar = (Need("distinct sources", 20, "few sources tell few items apart"),)

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Cluster the items and return the medoids, each with its cluster's share."""
        check_number("restarts", self.restarts, 1, 1000)
        distances = item_distances(scores.filled.T, self.metric, self.standardise)
        found = kmedoids(distances, budget, np.random.default_rng(seed), restarts=self.restarts)
        shares = np.bincount(found.labels, weights=scores.item_weights, minlength=budget)
        return Subset(items=tuple(scores.item_ids[found.medoids]), weights=tuple(shares.tolist()))
