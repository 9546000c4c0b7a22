"""Items chosen together, so that a linear model of their answers predicts the full score.

Zhang, Dorner & Hardt 2025, "How Benchmark Prediction from Fewer Data Misses the Mark",
arXiv 2506.07673: their Lasso and Double-Optimize (`Joint`). `Greedy` is forward selection
(orthogonal least squares with a penalty; Chen, Billings & Luo 1989), which does in closed form what
Double-Optimize does by gradient steps: items and their weights are chosen together for the error
of the full score.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench._types import IntArray
from fewbench.algorithms.choice.forward_selection import forward_selection, lasso_support
from fewbench.algorithms.choice.joint import choose_jointly
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Scores

NEEDS = (Need("distinct sources", 20, "few sources to choose many items by"),)


@dataclass(frozen=True)
class Greedy:
    """Items of which each most lowers the loss of ridge regression to the sources' full scores.

    Parameters
    ----------
    alpha : float
        The ridge penalty while choosing. Larger ones prefer items that go along with the full
        score themselves to items that together fit it closely.
    """

    alpha: float = 1.0
    needs: ClassVar = NEEDS

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Choose one by one; the subset has no weights, for coefficients may be negative."""
        check_number("alpha", self.alpha, 1e-6, 1e6)
        chosen = forward_selection(scores.filled, scores.full_scores(), budget, self.alpha)
        return filled_up(scores, chosen, budget, np.random.default_rng(seed))


@dataclass(frozen=True)
class LassoPath:
    """The first `budget` items that the lasso uses at once as its penalty falls.

    The authors try a thousand penalties from 0.0001 up and may stop at fewer items than asked;
    here the path is followed exactly. A lasso cannot use more items than there are sources, less
    one: the rest of a larger budget is drawn at random.
    """

    needs: ClassVar = NEEDS

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Follow the path; the subset has no weights, for coefficients may be negative."""
        chosen = lasso_support(scores.filled, scores.full_scores(), budget)
        return filled_up(scores, chosen, budget, np.random.default_rng(seed))


@dataclass(frozen=True)
class Joint:
    """Items that come out of optimising the choice and the weights for the full score.

    The weights found with them may be negative, which a subset's are not; `joint-weights` learns
    them again for the items chosen, in the same way.
    """

    costly: ClassVar[bool] = True
    needs: ClassVar = NEEDS

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Optimise from random weights, drawn from the seed."""
        rng = np.random.default_rng(seed)
        chosen = choose_jointly(scores.filled, scores.full_scores(), budget, rng)
        return Subset(items=tuple(scores.item_ids[chosen]))


def filled_up(scores: Scores, chosen: IntArray, budget: int, rng: np.random.Generator) -> Subset:
    """Return a subset of `budget` items: those chosen, then others drawn at random.

    Parameters
    ----------
    chosen : ndarray of int, at most `budget`
        Positions of items.

    Examples
    --------
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
        notes = (f"{short} of {budget} items were drawn at random: the sources choose no more",)
    return Subset(items=tuple(scores.item_ids[items]), notes=notes)
