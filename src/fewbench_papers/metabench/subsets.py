"""Cross-validated subsampling, and items of most Fisher information.

Kipnis et al. 2024, "metabench: A Sparse Benchmark of Reasoning and Knowledge in Large Language
Models", arXiv 2407.12844.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.methods.needs import Need, require
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Scores
from fewbench.support import IntArray
from fewbench_papers.algorithms.irt.abilities import ability_grid, informative_on_a_grid
from fewbench_papers.algorithms.subset_search import divisions, line_losses, search
from fewbench_papers.tinybenchmarks.item_response import subset_model

HELD_OUT = Need("sources", 3, "sources are held out", required=True)
SEARCH_NEEDS = (
    HELD_OUT,
    Need("independent sources", 20, "few sources to choose among many subsets by"),
)


@dataclass(frozen=True)
class BestOfRandom:
    """The random subset whose score best predicts held-out sources' full scores by a line.

    The best has the least mean squared error on a tenth of the sources, held out from the line,
    over 20 splits of the sources; the paper fits a smooth curve and splits once.

    - `subsets`: Number of subsets tried.
    """

    subsets: int = 10_000
    costly: ClassVar[bool] = True
    needs: ClassVar = SEARCH_NEEDS

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Draw subsets and keep the best; it has no weights."""
        best = self.search(scores, budget, np.random.default_rng(seed))
        return Subset(items=tuple(scores.item_ids[best]))

    def search(self, scores: Scores, size: int, rng: np.random.Generator) -> IntArray:
        """Return the positions of the best subset's items, increasing."""
        check_number("subsets", self.subsets, 1, 10_000_000)
        require(self, scores)
        held_out = divisions(scores.n_models, 0.1, 20, rng)
        losses = line_losses(scores.filled, scores.full_scores(), scores.item_weights, held_out)
        return search(scores.n_items, size, self.subsets, losses, 4 * scores.n_models, rng)


PRESELECTED = 2.5
"""Preselected items per chosen item: 350 for 143 on average in the paper."""


@dataclass(frozen=True)
class Informative:
    """Items of a preselected subset that are most informative at abilities like the sources'.

    The preselected subset is the best of many random ones (`best-of-random`). A 2PL model is
    fitted to the sources' answers on it. For each ability, lowest first, the remaining item with
    the highest Fisher information is taken. Abilities are distributed like the sources'.

    - `subsets`: Number of subsets tried in the preselection.
    """

    subsets: int = 10_000
    costly: ClassVar[bool] = True
    needs: ClassVar = (
        HELD_OUT,
        Need("independent sources", 20, "few sources to tell items apart by"),
    )

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Preselect, fit and filter; the subset has no weights."""
        rng = np.random.default_rng(seed)
        size = min(scores.n_items, int(np.ceil(PRESELECTED * budget)))
        at = BestOfRandom(self.subsets).search(scores, size, rng)
        model = subset_model(scores, at).model
        grid = ability_grid(model.sources.means[:, 0], budget)
        chosen = informative_on_a_grid(model.information(grid[:, None]))
        return Subset(items=tuple(scores.item_ids[at[chosen]]))
