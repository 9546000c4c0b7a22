"""Sort: items at equal steps from the easiest to the hardest.

The first half of Sort & Search, Prabhu et al. 2024, "Lifelong Benchmarks: Efficient Model
Evaluation in an Era of Rapid Progress", arXiv 2402.19472, with its three orders.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fewbench._types import IntArray
from fewbench.algorithms.completion.staircase import reorder
from fewbench.algorithms.sampling import allocate
from fewbench.methods.confidence import PROBABILITIES
from fewbench.methods.difficulty import difficulty_index
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_words
from fewbench.scores import Scores

Order = Literal["sum", "confidence", "recursive"]


@dataclass(frozen=True)
class SortedItems:
    """Each (N/n)-th item in order of mean source score: the middles of n equal slices.

    Each chosen item has its slice's share of the full score as weight.

    - `by_task`: Sort each task's items, with items per task by its share of the full score;
      otherwise sort all items together, as in the paper.
    - `order` ("sum", "confidence", "recursive"): Sort by the mean source score; by the sources'
      mean probability of the right option; or by the score, with ties resolved by the sources whose
      thresholds lie among them (see `fewbench.algorithms.completion.staircase.reorder`).
    """

    by_task: bool = True
    order: Order = "sum"

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the order needs."""
        return (PROBABILITIES,) if self.order == "confidence" else ()

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Choose the items; the seed matters only if a task's share is not a whole number."""
        check_words(self)
        group_of = groups(scores, by_task=self.by_task)
        orders = sorted_groups(scores, group_of, self.order)
        sizes = np.bincount(group_of)
        masses = np.bincount(group_of, weights=scores.item_weights)
        counts = allocate(budget, masses, sizes, np.random.default_rng(seed))
        chosen: list[int] = []
        shares: list[float] = []
        for group in np.flatnonzero(counts):
            items = orders[group]
            count = int(counts[group])
            slice_of = np.arange(len(items)) * count // len(items)
            ends = np.searchsorted(slice_of, np.arange(count + 1))
            chosen.extend(items[(ends[:-1] + ends[1:] - 1) // 2].tolist())
            shares.extend(np.bincount(slice_of, scores.item_weights[items]).tolist())
        return Subset(items=tuple(scores.item_ids[chosen]), weights=tuple(shares))


def groups(scores: Scores, *, by_task: bool) -> IntArray:
    """Return the group in which each item is sorted: its task, or 0, shape (items,)."""
    return scores.task_of if by_task else np.zeros(scores.n_items, dtype=np.intp)


def sorted_groups(scores: Scores, group_of: IntArray, order: Order) -> list[IntArray]:
    """Return the positions of each group's items, easiest first."""
    easy = difficulty_index(scores, "probabilities" if order == "confidence" else "scores")
    found = []
    for group in range(int(group_of.max()) + 1):
        items = np.flatnonzero(group_of == group)
        places = np.argsort(-easy[items], kind="stable")  # equals in the table's order
        if order == "recursive":
            places = reorder(scores.filled[:, items], places)
        found.append(np.asarray(items[places]))
    return found
