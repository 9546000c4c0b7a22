"""Items chosen together, so that a linear model of their answers predicts the full score.

Zhang, Dorner & Hardt 2025, "How Benchmark Prediction from Fewer Data Misses the Mark",
arXiv 2506.07673: their Lasso and Double-Optimize (`Joint`). `Greedy` is forward selection
(orthogonal least squares with a penalty; Chen, Billings & Luo 1989), which does in closed form what
Double-Optimize does by gradient steps: items and their weights are chosen together for the error
of the full score.

Items by a search among random subsets: the one that best tells held-out sources' scores.

Kipnis et al. 2024, "metabench: A Sparse Benchmark of Reasoning and Knowledge in Large Language
Models", arXiv 2407.12844, its cross-validated subsampling (`BestOfRandom`) and its item selection
by Fisher information (`Informative`). Zhang, Dorner & Hardt 2025, "How Benchmark Prediction from
Fewer Data Misses the Mark", arXiv 2506.07673, the selection of Random-Search-Learn (`RidgeSearch`).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from fewbench._types import IntArray
from fewbench.algorithms.choice.linear_choice import (
    choose_jointly,
    forward_selection,
    lasso_support,
)
from fewbench.algorithms.choice.subset_search import divisions, line_losses, ridge_losses, search
from fewbench.algorithms.irt.steps import ability_grid, informative_on_a_grid
from fewbench.errors import MethodError
from fewbench.methods.item_response import subset_model
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number, check_words
from fewbench.scores import Scores

NEEDS = (Need("distinct sources", 20, "few sources to choose many items by"),)


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
    needs: ClassVar = NEEDS

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Choose one by one; the subset has no weights, for coefficients may be negative."""
        check_number("alpha", self.alpha, 1e-6, 1e6)
        chosen = forward_selection(scores.filled, scores.full_scores(), budget, self.alpha)
        return filled_up(scores, chosen, budget, np.random.default_rng(seed))


@dataclass(frozen=True)
class LassoPath:
    """The first `budget` items that the lasso uses at once as its penalty falls.

    The authors try a thousand penalties from 0.0001 up and may stop at fewer items than asked;
    here the path is followed exactly. A lasso cannot use more items than there are sources, less
    one: the rest of a larger budget is drawn at random.
    """

    needs: ClassVar = NEEDS

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Follow the path; the subset has no weights, for coefficients may be negative."""
        chosen = lasso_support(scores.filled, scores.full_scores(), budget)
        return filled_up(scores, chosen, budget, np.random.default_rng(seed))


@dataclass(frozen=True)
class Joint:
    """Items that come out of optimising the choice and the weights for the full score.

    The weights found with them may be negative, which a subset's are not; `joint-weights` learns
    them again for the items chosen, in the same way.
    """

    costly: ClassVar[bool] = True
    needs: ClassVar = NEEDS

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Optimise from random weights, drawn from the seed."""
        rng = np.random.default_rng(seed)
        chosen = choose_jointly(scores.filled, scores.full_scores(), budget, rng)
        return Subset(items=tuple(scores.item_ids[chosen]))


def filled_up(scores: Scores, chosen: IntArray, budget: int, rng: np.random.Generator) -> Subset:
    """Return a subset of `budget` items: those chosen, then others drawn at random.

    Parameters
    ----------
    chosen : ndarray of int, at most `budget`
        Positions of items.

    Examples
    --------
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
        notes = (f"{short} of {budget} items were drawn at random: the sources choose no more",)
    return Subset(items=tuple(scores.item_ids[items]), notes=notes)


LEAST = 3
HELD_OUT = Need("sources", LEAST, "sources are held out", required=True)
SEARCH_NEEDS = (
    HELD_OUT,
    Need("distinct sources", 20, "few sources to choose among many subsets by"),
)


@dataclass(frozen=True)
class BestOfRandom:
    """The random subset from whose score a line best predicts the full score of held-out sources.

    Best is the least mean squared error on sources through which the line was not drawn, over
    several divisions of the sources; the paper draws a smooth curve, and divides them once.

    Parameters
    ----------
    subsets : int
        How many are tried.
    held_out : float
        Share of the sources that is held out.
    divisions : int
        How often they are divided anew.
    """

    subsets: int = 10_000
    held_out: float = 0.1
    divisions: int = 20
    costly: ClassVar[bool] = True
    needs: ClassVar = SEARCH_NEEDS

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Draw subsets and keep the best; it has no weights."""
        best = self.search(scores, budget, np.random.default_rng(seed))
        return Subset(items=tuple(scores.item_ids[best]))

    def search(self, scores: Scores, size: int, rng: np.random.Generator) -> IntArray:
        """Return the positions of the best subset's items, increasing."""
        check_search(self.subsets, self.held_out, self.divisions)
        check_sources(scores)
        held_out = divisions(scores.n_models, self.held_out, self.divisions, rng)
        losses = line_losses(scores.filled, scores.full_scores(), scores.item_weights, held_out)
        return search(scores.n_items, size, self.subsets, losses, 4 * scores.n_models, rng)


def check_search(subsets: int, held_out: float, divisions: int) -> None:
    """Raise MethodError if a setting of a search is out of range."""
    check_number("subsets", subsets, 1, 10_000_000)
    check_number("divisions", divisions, 1, 1000)
    check_number("held_out", held_out, 0.001, 0.999)


def check_sources(scores: Scores) -> None:
    """Raise MethodError if there are too few sources to hold one out."""
    if scores.n_models < LEAST:
        raise MethodError(
            f"to hold sources out takes at least {LEAST}, there are {scores.n_models}",
            hint="use random, or more sources",
        )


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
    needs: ClassVar = SEARCH_NEEDS

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
