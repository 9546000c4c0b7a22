"""Items chosen one after another for ridge regression to the full score.

Forward selection (orthogonal least squares with a penalty; Chen, Billings & Luo 1989). It does in
closed form what the Double-Optimize of Zhang, Dorner & Hardt 2025 (arXiv 2506.07673) does by
gradient steps: items and their weights are chosen together for the error of the full score.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.algorithms.choice.forward_selection import forward_selection
from fewbench.methods.needs import Need
from fewbench.methods.selection.filled import filled_up
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Scores


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
    needs: ClassVar = (Need("distinct sources", 20, "few sources to choose many items by"),)

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Choose one by one; the subset has no weights, for coefficients may be negative."""
        check_number("alpha", self.alpha, 1e-6, 1e6)
        chosen = forward_selection(scores.filled, scores.full_scores(), budget, self.alpha)
        return filled_up(scores, chosen, budget, np.random.default_rng(seed))
