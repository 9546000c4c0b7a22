"""Items chosen together by how well their answers predict the full score.

- Zhang, Dorner & Hardt 2025, "How Benchmark Prediction from Fewer Data Misses the Mark",
  arXiv 2506.07673: Lasso (`LassoPath`), Double-Optimize (`Joint`), Random-Search-Learn
  (`RidgeSearch`).
- `Greedy` is forward selection (orthogonal least squares with a penalty; Chen, Billings & Luo
  1989), which does in closed form what Double-Optimize does by gradient steps.
- Kipnis et al. 2024, "metabench: A Sparse Benchmark of Reasoning and Knowledge in Large Language
  Models", arXiv 2407.12844: cross-validated subsampling (`BestOfRandom`) and item selection by
  Fisher information (`Informative`).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench._types import IntArray
from fewbench.algorithms.choice.linear_choice import (
    choose_jointly,
    forward_selection,
    lasso_support,
)
from fewbench.algorithms.choice.subset_search import divisions, line_losses, ridge_losses, search
from fewbench.algorithms.irt.abilities import ability_grid, informative_on_a_grid
from fewbench.methods.item_response import subset_model
from fewbench.methods.needs import Need, require
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Scores

NEEDS = (Need("independent sources", 20, "few sources to choose many items by"),)


@dataclass(frozen=True)
class Greedy:
    """Items that, one by one, most lower the loss of ridge regression to the sources' full scores.

    - `alpha`: Ridge penalty of the choice. Larger values prefer items that each follow the full
      score to items that fit it closely together.
    """

    alpha: float = 1.0
    needs: ClassVar = NEEDS

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Choose one by one; the subset has no weights, for coefficients may be negative."""
        check_number("alpha", self.alpha, 1e-6, 1e6)
        chosen = forward_selection(scores.filled_cells, scores.full_scores(), budget, self.alpha)
        return filled_up(scores, chosen, budget, np.random.default_rng(seed))


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


def filled_up(scores: Scores, chosen: IntArray, budget: int, rng: np.random.Generator) -> Subset:
    """Return a subset of `budget` items: the positions chosen, then items drawn at random.

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
        notes = (f"{short} of {budget} items were drawn at random: the sources determine no more",)
    return Subset(items=tuple(scores.item_ids[items]), notes=notes)


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
