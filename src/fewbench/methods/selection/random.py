"""Random items: a simple random sample, or one stratified by task."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.algorithms.sampling import allocate
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


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
