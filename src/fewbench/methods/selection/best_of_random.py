"""Best for validation: of many random subsets the one that best tells held-out sources' scores.

Kipnis et al. 2024, "metabench: A Sparse Benchmark of Reasoning and Knowledge in Large Language
Models", arXiv 2407.12844, its cross-validated subsampling.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench._types import IntArray
from fewbench.algorithms.choice.subset_search import divisions, line_losses, search
from fewbench.errors import MethodError
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Scores

LEAST = 3
HELD_OUT = Need("sources", LEAST, "sources are held out", required=True)


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
    needs: ClassVar = (
        HELD_OUT,
        Need("distinct sources", 20, "few sources to choose among many subsets by"),
    )

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
