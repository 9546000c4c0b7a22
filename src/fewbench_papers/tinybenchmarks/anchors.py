"""Items that represent others with similar item response parameters.

Polo et al. 2024, "tinyBenchmarks: evaluating LLMs with fewer examples", arXiv 2402.14992, §3.2.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.methods.subset import Subset
from fewbench.scores import Scores
from fewbench_papers.algorithms.clustering.kmeans import representatives
from fewbench_papers.tinybenchmarks.item_response import NEEDS, source_model


@dataclass(frozen=True)
class IRTAnchors:
    """Items nearest the k-means centers of discriminations and intercepts, weighted by cluster."""

    costly: ClassVar[bool] = True
    needs: ClassVar = NEEDS

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Cluster the items; weights are the clusters' shares of the full score."""
        model = source_model(scores).model
        # Rounded, so that items answered alike are alike to the last digit.
        points = np.column_stack([model.discrimination, model.intercept])
        points = np.asarray(np.round(points, 4), dtype=np.float64)
        rng = np.random.default_rng(seed)
        weights = None if scores.counts_equally else scores.item_weights * scores.n_items
        chosen, labels = representatives(points, budget, int(rng.integers(2**31)), weights=weights)
        shares = np.bincount(labels, scores.item_weights, budget)
        return Subset(items=tuple(scores.item_ids[chosen]), weights=tuple(shares.tolist()))
