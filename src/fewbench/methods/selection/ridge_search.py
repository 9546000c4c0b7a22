"""Random search: of many random subsets the one on whose answers ridge regression errs least.

The selection of Random-Search-Learn in Zhang, Dorner & Hardt 2025, "How Benchmark Prediction from
Fewer Data Misses the Mark", arXiv 2506.07673.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.algorithms.choice.subset_search import divisions, ridge_losses, search
from fewbench.methods.needs import Need
from fewbench.methods.selection.best_of_random import HELD_OUT, check_search, check_sources
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


@dataclass(frozen=True)
class RidgeSearch:
    """The random subset from whose answers ridge regression best predicts held-out sources.

    Best is the least mean absolute error on sources that were held out, divided once, as in the
    authors' program; it tries 10,000 subsets, which takes ten times as long.

    Parameters
    ----------
    subsets : int
        How many are tried.
    held_out : float
        Share of the sources that is held out.
    """

    subsets: int = 1000
    held_out: float = 0.25
    costly: ClassVar[bool] = True
    needs: ClassVar = (
        HELD_OUT,
        Need("distinct sources", 20, "few sources to choose among many subsets by"),
    )

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Draw subsets and keep the best; it has no weights."""
        check_search(self.subsets, self.held_out, 1)
        check_sources(scores)
        rng = np.random.default_rng(seed)
        held_out = divisions(scores.n_models, self.held_out, 1, rng)[:, 0]
        losses = ridge_losses(scores.filled, scores.full_scores(), held_out)
        cells = 4 * scores.n_models * budget
        best = search(scores.n_items, budget, self.subsets, losses, cells, rng)
        return Subset(items=tuple(scores.item_ids[best]))
