"""Random items: a simple random sample, one stratified by task, or one by strata of easy items.

`Strata`: Fogliato et al. 2024, "A Framework for Efficient Model Evaluation through Stratification,
Sampling, and Estimation", ECCV 2024, arXiv 2406.07320: stratified simple random sampling over
k-means strata of a proxy of the target's success on each item. The authors' proxy is the target's
own confidence on all items, which is not known here before items are run: it is how the sources do
on the item.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.clustering.kmeans import line_clusters
from fewbench.algorithms.sampling import allocate, draw
from fewbench.methods.ease import PROBABILITIES, Proxy, ease
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number, check_words
from fewbench.scores import Scores

Allocation = Literal["proportional", "neyman"]
LEAST_VARIANCE = 0.05  # of a stratum in Neyman allocation, as in the authors' program


@dataclass(frozen=True)
class Random:
    """A simple random sample without replacement; a larger budget extends a smaller one."""

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Draw `budget` items; every set of that size is equally likely."""
        drawn = np.random.default_rng(seed).permutation(scores.n_items)[:budget]
        return Subset(items=tuple(scores.item_ids[drawn]))


@dataclass(frozen=True)
class Stratified:
    """A random sample of each task, sized by the task's share of the full score.

    Weights make the weighted mean unbiased: each task's share over its items where every task is
    sure of an item (post-stratification); else tasks are drawn too and every item counts the same.
    """

    needs: ClassVar = (Need("tasks", 2, "with one task it is plain random sampling"),)

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Draw `budget` items over all tasks."""
        rng = np.random.default_rng(seed)
        sizes = np.bincount(scores.task_of)
        masses = np.bincount(scores.task_of, weights=scores.item_weights)
        counts = allocate(budget, masses, sizes, rng)
        drawn = [
            rng.permutation(np.flatnonzero(scores.task_of == task))[:count]
            for task, count in enumerate(counts)
        ]
        chosen = np.concatenate(drawn)
        # By what is sure, not by what was drawn: to weigh by luck would be biased.
        sure = bool((budget * masses > 1.0 - 1e-9).all())
        share = masses / counts if sure else np.full(len(counts), 1.0 / budget)
        return Subset(
            items=tuple(scores.item_ids[chosen]),
            weights=tuple(share[scores.task_of[chosen]].tolist()),
        )


@dataclass(frozen=True)
class Strata:
    """A random sample of each stratum of items that are as easy to the sources.

    Every stratum is sure of an item: one whose share of the budget is less than one item is
    merged with the nearer of its neighbours (the authors' program merges those of fewer than 10
    items). Weights are the items' weights in the full score over their probabilities to be
    chosen, so that the weighted mean is the Horvitz-Thompson estimate, unbiased whatever the
    proxy is worth. Where items weigh differently (macro averages) their probabilities in a
    stratum are in proportion to their weights.

    Parameters
    ----------
    strata : int
        Number of strata, at most.
    allocation : {"proportional", "neyman"}
        A stratum's number of items goes by its share of the full score; or by that times the
        standard deviation expected of right and wrong there, sqrt(p (1 - p)) of the mean proxy p.
    proxy : {"scores", "probabilities"}
        The sources' mean score on an item; or the mean probability that they give to the right
        option.
    """

    strata: int = 10
    allocation: Allocation = "proportional"
    proxy: Proxy = "scores"

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the proxy needs."""
        some = Need("distinct sources", 5, "few sources tell little of how easy an item is")
        return (some, PROBABILITIES) if self.proxy == "probabilities" else (some,)

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Draw `budget` items over all strata."""
        check_words(self)
        check_number("strata", self.strata, 1)
        proxy = ease(scores, self.proxy)
        weights = scores.item_weights
        stratum_of = self._sure(line_clusters(proxy, self.strata), proxy, weights, budget)
        rng = np.random.default_rng(seed)
        sizes = np.bincount(stratum_of)
        counts = allocate(budget, self._masses(stratum_of, proxy, weights), sizes, rng)
        chosen: list[int] = []
        over: list[float] = []
        for stratum in np.flatnonzero(counts):
            items = np.flatnonzero(stratum_of == stratum)
            drawn, chances = draw(int(counts[stratum]), weights[items], rng)
            chosen.extend(items[drawn].tolist())
            over.extend((weights[items] / chances)[drawn].tolist())
        return Subset(items=tuple(scores.item_ids[chosen]), weights=tuple(over))

    def _masses(self, stratum_of: IntArray, proxy: FloatArray, weights: FloatArray) -> FloatArray:
        """Return what the numbers of items are in proportion to, shape (strata,)."""
        shares = np.bincount(stratum_of, weights)
        if self.allocation == "proportional":
            return np.asarray(shares)
        p = np.bincount(stratum_of, weights * proxy) / shares
        return np.asarray(shares * np.sqrt(np.maximum(p * (1.0 - p), LEAST_VARIANCE)))

    def _sure(
        self, stratum_of: IntArray, proxy: FloatArray, weights: FloatArray, budget: int
    ) -> IntArray:
        """Merge strata until each may expect an item or more, the least first."""
        while stratum_of.max() > 0:
            masses = self._masses(stratum_of, proxy, weights)
            least = int(masses.argmin())
            if budget * masses[least] >= masses.sum() * (1.0 - 1e-9):
                break
            centres = np.bincount(stratum_of, proxy) / np.bincount(stratum_of)
            gaps = np.diff(centres, prepend=-np.inf, append=np.inf)
            upper = least + 1 if gaps[least + 1] < gaps[least] else least
            stratum_of = stratum_of - (stratum_of >= upper)
        return stratum_of
