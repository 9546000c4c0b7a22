"""Items by greedy optimal design for the full score. See `fewbench.algorithms.kriging.design`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench._seeds import child_seed
from fewbench.algorithms.kriging import choose_static
from fewbench.methods.kriging import NEEDS, item_costs, source_kriging
from fewbench.methods.needs import require
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


@dataclass(frozen=True)
class OptimalDesign:
    """Items that lower the posterior variance of the full score most, chosen once for any target.

    Half of the gain is for a target like the sources, half for one beyond them.

    - `cost`: Column of the items' attributes with what running each costs; items then count by what
      they tell per unit of cost. With fewer than 20 distinct sources items are a systematic
      sample, and costs do not count.
    """

    cost: str | None = None
    needs: ClassVar = NEEDS

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Choose one by one; the subset has no weights."""
        require(self, scores)
        model = source_kriging(scores, seed, budget)
        costs = item_costs(scores, self.cost)
        costs = None if costs is None else costs[model.candidates]
        start = np.random.default_rng(child_seed(seed, 9)).random()
        places = choose_static(model, budget, costs, float(start))
        return Subset(items=tuple(scores.item_ids[model.candidates[places]]))
