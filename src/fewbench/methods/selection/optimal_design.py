"""Items by greedy optimal design for the full score, and a sample.

See `fewbench.algorithms.kriging.design` and `fewbench.algorithms.kriging.posterior.choose_static`.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fewbench.algorithms.kriging import choose_static
from fewbench.methods.kriging import LEAST, NEEDS, item_costs, source_kriging
from fewbench.methods.needs import require
from fewbench.methods.sources import carrying_sources
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


@dataclass(frozen=True)
class OptimalDesign:
    """Items that lower the posterior variance of the full score most, and a sample of the others.

    A third of the items is chosen once for any target: half of the gain is for a target like the
    sources, half for one beyond them. The rest is drawn with known probabilities, for a target
    that the sources cannot predict. With fewer than 20 independent sources all items are drawn.

    - `cost`: Column of the items' attributes with what running each costs; items then count by what
      they tell per unit of cost.
    - `sources`: Number of independent sources that decides this (default: that of the scores).
    """

    cost: str | None = None
    sources: int | None = None
    needs: ClassVar = (LEAST, *NEEDS)

    def for_sources(self, scores: Scores) -> "OptimalDesign":
        """Return the selector that these sources decide on."""
        if self.sources is not None:
            return self
        return replace(self, sources=carrying_sources(scores))

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Choose a third one by one and draw the rest; the subset has the chances."""
        require(self, scores)
        model = source_kriging(scores, seed, budget, sources=self.sources)
        costs = item_costs(scores, self.cost)
        costs = None if costs is None else costs[model.candidates]
        places, chances = choose_static(model, budget, costs)
        return Subset(
            items=tuple(scores.item_ids[model.candidates[places]]),
            chances=tuple(None if np.isnan(chance) else float(chance) for chance in chances),
        )
