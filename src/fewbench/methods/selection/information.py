"""Information filter: of a larger subset the items that tell most of some ability each.

Kipnis et al. 2024, "metabench: A Sparse Benchmark of Reasoning and Knowledge in Large Language
Models", arXiv 2407.12844, its item selection by Fisher information.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from fewbench.algorithms.irt.steps import ability_grid, informative_on_a_grid
from fewbench.methods.item_response import subset_model
from fewbench.methods.needs import Need
from fewbench.methods.selection.best_of_random import HELD_OUT, BestOfRandom
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number, check_words
from fewbench.scores import Scores


@dataclass(frozen=True)
class Informative:
    """Items of a preselected subset that tell most at abilities spread over those of the sources.

    The preselected subset is the best of many random ones (`best-of-random`). A 2PL model is fitted
    to the sources' answers on it, and for one ability after the other, the lowest first, the item
    of most Fisher information there is taken of those not taken yet.

    Parameters
    ----------
    preselected : float
        Items preselected for each item that is wanted: 350 for 143 on average in the paper.
    grid : {"quantiles", "range"}
        Abilities as the sources' are spread, or at equal distances.
    subsets, held_out, divisions
        Of the preselection, see `BestOfRandom`.
    """

    preselected: float = 2.5
    grid: Literal["quantiles", "range"] = "quantiles"
    subsets: int = 10_000
    held_out: float = 0.1
    divisions: int = 20
    costly: ClassVar[bool] = True
    needs: ClassVar = (
        HELD_OUT,
        Need("distinct sources", 20, "few sources to tell items apart by"),
    )

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Preselect, fit and filter; the subset has no weights."""
        check_words(self)
        check_number("preselected", self.preselected, 1, 1000)
        rng = np.random.default_rng(seed)
        size = min(scores.n_items, int(np.ceil(self.preselected * budget)))
        first = BestOfRandom(self.subsets, self.held_out, self.divisions)
        at = first.search(scores, size, rng)
        model = subset_model(scores, at).model
        grid = ability_grid(model.sources.means[:, 0], budget, self.grid)
        chosen = informative_on_a_grid(model.information(grid[:, None]))
        return Subset(items=tuple(scores.item_ids[at[chosen]]))
