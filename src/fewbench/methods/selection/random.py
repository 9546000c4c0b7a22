"""Random items: simple, or stratified by task."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench._types import IntArray
from fewbench.algorithms.sampling import allocate, task_sizes
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Scores


@dataclass(frozen=True)
class Random:
    """A simple random sample without replacement; a larger budget extends a smaller one."""

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Draw `budget` items; each set of that size is equally likely."""
        drawn = random_order(scores.n_items, seed)[:budget]
        chance = len(drawn) / scores.n_items
        return Subset(items=tuple(scores.item_ids[drawn]), chances=(chance,) * len(drawn))


def random_order(n_items: int, seed: int) -> IntArray:
    """Return all items in the order in which a simple random sample takes them."""
    return np.random.default_rng(seed).permutation(n_items)


@dataclass(frozen=True)
class Stratified:
    """A random sample of each task, sized by the task's share of the full score.

    Weights make the weighted mean unbiased. If each task is certain to get an item, a task's items
    share the task's weight (post-stratification); otherwise tasks are drawn too, and all items
    count the same.

    - `minimum`: Items of each task, or all of a smaller one. The larger tasks share the rest of the
      budget by their numbers of items. With 0, tasks have their shares alone.
    """

    minimum: int = 0
    needs: ClassVar = (Need("tasks", 2, "with one task it is plain random sampling"),)

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Draw `budget` items over all tasks."""
        check_number("minimum", self.minimum, 0, 1_000_000)
        rng = np.random.default_rng(seed)
        sizes = np.bincount(scores.task_of)
        masses = np.bincount(scores.task_of, weights=scores.item_weights)
        counts = task_sizes(budget, sizes, self.minimum)
        if self.minimum and counts.all():
            sure, chances = True, counts / sizes
        else:
            counts = allocate(budget, masses, sizes, rng)
            chances = np.minimum(budget * masses / sizes, 1.0)
            # By inclusion, not by the draw: weights that depend on the draw would be biased.
            sure = bool((budget * masses > 1.0 - 1e-9).all())
        drawn = [
            rng.permutation(np.flatnonzero(scores.task_of == task))[:count]
            for task, count in enumerate(counts)
        ]
        chosen = np.concatenate(drawn)
        share = masses / counts if sure else np.full(len(counts), 1.0 / budget)
        return Subset(
            items=tuple(scores.item_ids[chosen]),
            weights=tuple(share[scores.task_of[chosen]].tolist()),
            chances=tuple(chances[scores.task_of[chosen]].tolist()),
        )
