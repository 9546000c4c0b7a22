"""Items chosen together by how well their answers predict the full score.

Zhang, Dorner & Hardt 2025, "How Benchmark Prediction from Fewer Data Misses the Mark", arXiv
2506.07673: Lasso (`LassoPath`), Double-Optimize (`Joint`), Random-Search-Learn (`RidgeSearch`).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.methods.needs import require
from fewbench.methods.selection.core_sets import NEEDS, filled_up
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Scores
from fewbench_papers.algorithms.subset_search import divisions, ridge_losses, search
from fewbench_papers.benchmark_prediction.linear_choice import choose_jointly, lasso_support
from fewbench_papers.metabench.subsets import SEARCH_NEEDS


@dataclass(frozen=True)
class LassoPath:
    """The first `budget` items that the lasso uses at once as its penalty falls.

    The authors try a thousand penalties from 0.0001 up and may stop at fewer items; here the path
    is followed exactly. A lasso uses fewer items than there are sources: the rest of a larger
    budget is drawn at random.
    """

    needs: ClassVar = NEEDS

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Follow the path; the subset has no weights, for coefficients may be negative."""
        chosen = lasso_support(scores.filled, scores.full_scores(), budget)
        return filled_up(scores, chosen, budget, np.random.default_rng(seed))


@dataclass(frozen=True)
class Joint:
    """Items from optimizing the choice and the weights for the full score together.

    These weights may be negative, which a subset's weights cannot be; `joint-weights` learns them
    again for the chosen items in the same way.
    """

    costly: ClassVar[bool] = True
    needs: ClassVar = NEEDS

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Optimize from random weights."""
        rng = np.random.default_rng(seed)
        chosen = choose_jointly(scores.filled, scores.full_scores(), budget, rng)
        return Subset(items=tuple(scores.item_ids[chosen]))


@dataclass(frozen=True)
class RidgeSearch:
    """The random subset with answers from which ridge regression best predicts held-out sources.

    The best has the least mean absolute error on a held-out quarter of the sources, split once as
    in the authors' program. That program tries 10,000 subsets, which takes ten times as long.

    - `subsets`: Number of subsets tried.
    """

    subsets: int = 1000
    costly: ClassVar[bool] = True
    needs: ClassVar = SEARCH_NEEDS

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Draw subsets and keep the best; it has no weights."""
        check_number("subsets", self.subsets, 1, 10_000_000)
        require(self, scores)
        rng = np.random.default_rng(seed)
        held_out = divisions(scores.n_models, 0.25, 1, rng)[:, 0]
        losses = ridge_losses(scores.filled, scores.full_scores(), held_out)
        cells = 4 * scores.n_models * budget
        best = search(scores.n_items, budget, self.subsets, losses, cells, rng)
        return Subset(items=tuple(scores.item_ids[best]))
