"""Items chosen together by how well their answers predict the full score.

`Greedy` is forward selection (orthogonal least squares with a penalty; Chen, Billings & Luo 1989),
which does in closed form what Double-Optimize (Zhang, Dorner & Hardt 2025) does by gradient steps.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench._types import IntArray
from fewbench.algorithms.choice.linear_choice import forward_selection
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Scores

NEEDS = (Need("independent sources", 20, "few sources to choose many items by"),)


@dataclass(frozen=True)
class Greedy:
    """Items that, one by one, most lower the loss of ridge regression to the sources' full scores.

    - `alpha`: Ridge penalty of the choice. Larger values prefer items that each follow the full
      score to items that fit it closely together.
    """

    alpha: float = 1.0
    needs: ClassVar = NEEDS

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Choose one by one; the subset has no weights, for coefficients may be negative."""
        check_number("alpha", self.alpha, 1e-6, 1e6)
        chosen = forward_selection(scores.filled_cells, scores.full_scores(), budget, self.alpha)
        return filled_up(scores, chosen, budget, np.random.default_rng(seed))


def filled_up(scores: Scores, chosen: IntArray, budget: int, rng: np.random.Generator) -> Subset:
    """Return a subset of `budget` items: the positions chosen, then items drawn at random.

    >>> from fewbench.testing import simulate
    >>> subset = filled_up(simulate(4, 10), np.array([7, 2]), 4, np.random.default_rng(0))
    >>> subset.items[:2], len(subset.items)
    (('item-7', 'item-2'), 4)
    """
    short = budget - len(chosen)
    items = chosen
    notes: tuple[str, ...] = ()
    if short > 0:
        others = np.setdiff1d(np.arange(scores.n_items), chosen)
        items = np.concatenate([chosen, rng.permutation(others)[:short]])
        notes = (f"{short} of {budget} items were drawn at random: the sources determine no more",)
    return Subset(items=tuple(scores.item_ids[items]), notes=notes)
