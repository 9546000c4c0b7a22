"""Items and weights optimised together by gradient steps.

Zhang, Dorner & Hardt 2025, "How Benchmark Prediction from Fewer Data Misses the Mark",
arXiv 2506.07673, their Double-Optimize.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.algorithms.choice.joint import choose_jointly
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


@dataclass(frozen=True)
class Joint:
    """Items that come out of optimising the choice and the weights for the full score.

    The weights found with them may be negative, which a subset's are not; `joint-weights` learns
    them again for the items chosen, in the same way.
    """

    costly: ClassVar[bool] = True
    needs: ClassVar = (Need("distinct sources", 20, "few sources to choose many items by"),)

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Optimise from random weights, drawn from the seed."""
        rng = np.random.default_rng(seed)
        chosen = choose_jointly(scores.filled, scores.full_scores(), budget, rng)
        return Subset(items=tuple(scores.item_ids[chosen]))
