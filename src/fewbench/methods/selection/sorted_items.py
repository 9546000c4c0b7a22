"""Sort: items at equal steps from the easiest to the hardest.

The first half of Sort & Search, Prabhu et al. 2024, "Lifelong Benchmarks: Efficient Model
Evaluation in an Era of Rapid Progress", arXiv 2402.19472.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewbench.algorithms.allocation import allocate
from fewbench.methods.subset import Subset
from fewbench.scores import Scores

IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class SortedItems:
    """Every (N/n)-th of the items sorted by mean source score: the middles of n equal slices.

    Each chosen item is weighted by its slice's share of the full score.

    Parameters
    ----------
    by_task : bool
        Sort each task's items, tasks having items by their share of the full score; else all
        items in one order, as in the paper.
    """

    by_task: bool = True

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Choose the items; the seed only matters where a task's share is no whole number."""
        group_of = groups(scores, by_task=self.by_task)
        sizes = np.bincount(group_of)
        masses = np.bincount(group_of, weights=scores.item_weights)
        counts = allocate(budget, masses, sizes, np.random.default_rng(seed))
        chosen: list[int] = []
        shares: list[float] = []
        for group in np.flatnonzero(counts):
            items = easiest_first(scores, np.flatnonzero(group_of == group))
            count = int(counts[group])
            slice_of = np.arange(len(items)) * count // len(items)
            ends = np.searchsorted(slice_of, np.arange(count + 1))
            chosen.extend(items[(ends[:-1] + ends[1:] - 1) // 2].tolist())
            shares.extend(np.bincount(slice_of, scores.item_weights[items]).tolist())
        return Subset(items=tuple(scores.item_ids[chosen]), weights=tuple(shares))


def groups(scores: Scores, *, by_task: bool) -> IntArray:
    """Return which items are sorted together: each item's task, or 0, shape (items,)."""
    return scores.task_of if by_task else np.zeros(scores.n_items, dtype=np.intp)


def easiest_first(scores: Scores, items: IntArray) -> IntArray:
    """Return positions of items, highest mean source score first, equals in the table's order."""
    means = np.round(scores.filled[:, items].mean(axis=0), 12)  # a hair of rounding is no order
    return np.asarray(items[np.argsort(-means, kind="stable")])
