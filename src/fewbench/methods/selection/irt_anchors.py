"""IRT anchors: items that stand for others of like parameters in the item response model.

Polo et al. 2024, "tinyBenchmarks: evaluating LLMs with fewer examples", arXiv 2402.14992, §3.2.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.algorithms.clustering.kmeans import representatives
from fewbench.methods.item_response import NEEDS, source_model
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Scores


@dataclass(frozen=True)
class IRTAnchors:
    """Items nearest the k-means centres of discriminations and intercepts, weighted by cluster.

    Parameters
    ----------
    dimensions : int, optional
        Abilities of the item response model; by default as many as best predict held-out cells.
    restarts : int
        Random starts of k-means; the best is kept.
    """

    dimensions: int | None = None
    restarts: int = 1
    costly: ClassVar[bool] = True
    needs: ClassVar = NEEDS

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Cluster the items; weights are the clusters' shares of the full score."""
        check_number("restarts", self.restarts, 1, 1000)
        model = source_model(scores, self.dimensions).model
        # Rounded, so that items answered alike are alike to the last digit.
        points = np.column_stack([model.discrimination, model.intercept])
        points = np.asarray(np.round(points, 4), dtype=np.float64)
        rng = np.random.default_rng(seed)
        weights = None if scores.average == "micro" else scores.item_weights * scores.n_items
        chosen, labels = representatives(
            points, budget, int(rng.integers(2**31)), self.restarts, weights
        )
        shares = np.bincount(labels, scores.item_weights, budget)
        return Subset(items=tuple(scores.item_ids[chosen]), weights=tuple(shares.tolist()))
