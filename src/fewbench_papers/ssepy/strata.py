"""Random items of strata of similar difficulty.

Fogliato et al. 2024, "A Framework for Efficient Model Evaluation through Stratification, Sampling,
and Estimation", ECCV 2024, arXiv 2406.07320: stratified simple random sampling over k-means strata
of a proxy of the target's success on each item. The authors' proxy is the target's own confidence
on all items. That is unknown before items are run, so here the proxy is the sources' success on the
item.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fewbench.algorithms import ties
from fewbench.algorithms.sampling import allocate, draw
from fewbench.methods.confidence import Values, needs_for
from fewbench.methods.difficulty import difficulty_index
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number, check_words
from fewbench.scores import Scores
from fewbench.support import FloatArray, IntArray
from fewbench_papers.algorithms.clustering.kmeans import line_clusters

Allocation = Literal["proportional", "neyman"]
LEAST_VARIANCE = 0.05  # of a stratum in Neyman allocation, as in the authors' program


@dataclass(frozen=True)
class Strata:
    """A random sample of each stratum of items that are equally easy for the sources.

    Each stratum is certain to get an item: a stratum with a share of less than one item is merged
    with its nearer neighbor (the authors' program merges strata of fewer than 10 items). Weights
    are the items' weights in the full score over their inclusion probabilities, so the weighted
    mean is the Horvitz-Thompson estimate, unbiased for any proxy. If items weigh differently
    (macro averages), their probabilities within a stratum are proportional to their weights.

    - `strata`: Most strata.
    - `allocation` ("proportional", "neyman"): A stratum's number of items is proportional to its
      share of the full score, or to that share times the expected standard deviation of right and
      wrong there, sqrt(p (1 - p)) of the mean proxy p.
    - `proxy` ("scores", "probabilities"): The sources' mean score on an item, or their mean
      probability of the right option.
    """

    strata: int = 10
    allocation: Allocation = "proportional"
    proxy: Values = "scores"

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the proxy needs."""
        some = Need("independent sources", 5, "few sources tell little of how easy an item is")
        return (some, *needs_for(self.proxy))

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Draw `budget` items over all strata."""
        check_words(self)
        check_number("strata", self.strata, 1)
        proxy = difficulty_index(scores, self.proxy)
        weights = scores.item_weights
        stratum_of = self._sure(line_clusters(proxy, self.strata), proxy, weights, budget)
        rng = np.random.default_rng(seed)
        sizes = np.bincount(stratum_of)
        counts = allocate(budget, self._masses(stratum_of, proxy, weights), sizes, rng)
        chosen: list[int] = []
        over: list[float] = []
        kept_chances: list[float] = []
        for stratum in np.flatnonzero(counts):
            items = np.flatnonzero(stratum_of == stratum)
            drawn, chances = draw(int(counts[stratum]), weights[items], rng)
            chosen.extend(items[drawn].tolist())
            over.extend((weights[items] / chances)[drawn].tolist())
            kept_chances.extend(np.minimum(chances[drawn], 1.0).tolist())
        return Subset(
            items=tuple(scores.item_ids[chosen]), weights=tuple(over), chances=tuple(kept_chances)
        )

    def _masses(self, stratum_of: IntArray, proxy: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the masses, shape (strata,), to which the numbers of items are proportional."""
        shares = np.bincount(stratum_of, weights)
        if self.allocation == "proportional":
            return np.asarray(shares)
        p = np.bincount(stratum_of, weights * proxy) / shares
        return np.asarray(shares * np.sqrt(np.maximum(p * (1.0 - p), LEAST_VARIANCE)))

    def _sure(
        self, stratum_of: IntArray, proxy: FloatArray, weights: FloatArray, budget: int
    ) -> IntArray:
        """Merge strata, the smallest first, until each expects at least one item."""
        while stratum_of.max() > 0:
            masses = self._masses(stratum_of, proxy, weights)
            least = int(ties.argmin(masses))
            if budget * masses[least] >= masses.sum() * (1.0 - 1e-9):
                break
            centres = np.bincount(stratum_of, proxy) / np.bincount(stratum_of)
            gaps = np.diff(centres, prepend=-np.inf, append=np.inf)
            upper = least + 1 if gaps[least + 1] < gaps[least] else least
            stratum_of = stratum_of - (stratum_of >= upper)
        return stratum_of
