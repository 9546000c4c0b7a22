"""Anchor points: items at the middle of clusters, weighted by cluster.

- `Medoids`: k-medoids of the items by the sources' scores. Vivek et al. 2023, "Anchor Points:
  Benchmarking Models with Much Fewer Examples", arXiv 2309.08638.
- `Clusters`: k-means within each task, the item nearest each center; the baseline "clustering
  (historical)" of Two-Stage Collaborative Filtering (Eq. 5).
- `IRTAnchors`: items that represent others with similar item response parameters. Polo et al. 2024,
  "tinyBenchmarks: evaluating LLMs with fewer examples", arXiv 2402.14992, §3.2.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.clustering.distances import Metric, item_distances
from fewbench.algorithms.clustering.kmeans import representatives
from fewbench.algorithms.clustering.kmedoids import kmedoids
from fewbench.algorithms.sampling import allocate, task_sizes
from fewbench.methods.confidence import Values, confidence, needs_for
from fewbench.methods.item_response import NEEDS, source_model
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number, check_words
from fewbench.scores import Scores


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
