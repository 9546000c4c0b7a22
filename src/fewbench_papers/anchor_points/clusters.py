"""Anchor points: items at the middle of clusters, weighted by cluster.

- `Medoids`: k-medoids of the items by the sources' scores. Vivek et al. 2023, "Anchor Points:
  Benchmarking Models with Much Fewer Examples", arXiv 2309.08638.
- `Clusters`: k-means within each task, the item nearest each center; the baseline "clustering
  (historical)" of Two-Stage Collaborative Filtering (Eq. 5).
- `IRTAnchors`: items that represent others with similar item response parameters. Polo et al. 2024,
  "tinyBenchmarks: evaluating LLMs with fewer examples", arXiv 2402.14992, §3.2.
"""

from dataclasses import dataclass

import numpy as np

from fewbench.methods.confidence import Values, confidence, needs_for
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number, check_words
from fewbench.scores import Scores
from fewbench_papers.algorithms.clustering.distances import Metric, item_distances
from fewbench_papers.algorithms.clustering.kmedoids import kmedoids


@dataclass(frozen=True)
class Medoids:
    """Items at the center of clusters of the sources' columns, weighted by cluster.

    - `metric` ("manhattan", "euclidean", "cosine", "correlation", "absolute-correlation"): Distance
      between two items' columns.
    - `standardise`: First scale each source's values to mean 0 and variance 1.
    - `restarts`: Random starts; the cheapest clustering is kept.
    - `values` ("scores", "probabilities"): Compare items by the sources' scores, or by their
      probabilities of the right option (Anchor Points' confidence).
    """

    metric: Metric = "manhattan"
    standardise: bool = False
    restarts: int = 1
    values: Values = "scores"

    @property
    def needs(self) -> tuple[Need, ...]:
        """Enough sources, and option probabilities if items are compared by them."""
        some = Need("independent sources", 20, "few sources distinguish few items")
        return (some, *needs_for(self.values))

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Cluster the items and return the medoids, each with its cluster's share.

        Raises MethodError if items are to be compared by probabilities that the scores lack.
        """
        check_words(self)
        check_number("restarts", self.restarts, 1, 1000)
        values = scores.filled if self.values == "scores" else confidence(scores).sources
        distances = item_distances(values.T, self.metric, self.standardise)
        clusters = kmedoids(distances, budget, np.random.default_rng(seed), restarts=self.restarts)
        shares = np.bincount(clusters.labels, weights=scores.item_weights, minlength=budget)
        return Subset(
            items=tuple(scores.item_ids[clusters.medoids]), weights=tuple(shares.tolist())
        )
