"""A subset of chosen items, filled up at random where there are fewer than wanted."""

import numpy as np

from fewbench._types import IntArray
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


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
