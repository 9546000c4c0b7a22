"""Items that the lasso keeps: an L1-penalised linear model from all items to the full score.

Zhang, Dorner & Hardt 2025, "How Benchmark Prediction from Fewer Data Misses the Mark",
arXiv 2506.07673, their Lasso.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.algorithms.choice.forward_selection import lasso_support
from fewbench.methods.needs import Need
from fewbench.methods.selection.filled import filled_up
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


@dataclass(frozen=True)
class LassoPath:
    """The first `budget` items that the lasso uses at once as its penalty falls.

    The authors try a thousand penalties from 0.0001 up and may stop at fewer items than asked;
    here the path is followed exactly. A lasso cannot use more items than there are sources, less
    one: the rest of a larger budget is drawn at random.
    """

    needs: ClassVar = (Need("distinct sources", 20, "few sources to choose many items by"),)

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Follow the path; the subset has no weights, for coefficients may be negative."""
        chosen = lasso_support(scores.filled, scores.full_scores(), budget)
        return filled_up(scores, chosen, budget, np.random.default_rng(seed))
