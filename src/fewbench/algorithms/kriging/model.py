"""What both models learn of the sources, once for all targets."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from fewbench._blocks import Matrix, by_rows, column_blocks, row_blocks
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.abilities import Abilities, fit_abilities
from fewbench.algorithms.kriging.extrapolation import Beyond, Filter
from fewbench.algorithms.kriging.inside import Inside
from fewbench.algorithms.kriging.sample import SampleModel

COMPARED, CANDIDATES, PER_ITEM = 2000, 1000, 5
"""Beyond COMPARED items, only a systematic sample is compared: it contains items as good. It has
CANDIDATES items, and twice as many whenever they are fewer than PER_ITEM for each item to run."""
KEPT = 400
"""Rounds and choices that a model keeps for targets that answer alike: at most 80 MB."""
LEAST_DISPERSION = 1e-6
"""Scores that are all alike have none, and a Gaussian without any noise has no density."""
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class KrigingModel(SampleModel):
    """The sources' scores and item statistics, and their two models.

    Attributes
    ----------
    inside : Inside
    beyond : Beyond
    """

    inside: Inside
    beyond: Beyond

    @cached_property
    def heard(self) -> dict[tuple[bytes, ...], tuple[float, Filter]]:
        """What the latest rounds of answers said, by all rounds up to each of them."""
        return {}

    @cached_property
    def chosen(self) -> dict[tuple[tuple[tuple[bytes, ...], ...], bytes], IntArray]:
        """The latest choices of items, by the targets' rounds and the items already chosen."""
        return {}

    def pool(self, asked: int) -> int:
        """Return how many candidates there are after a number of items."""
        return min(pool_size(asked, self.n_items), len(self.candidates))


def keep(latest: dict[K, V], key: K, value: V) -> None:
    """Keep a value, and the latest KEPT alone."""
    latest[key] = value
    for oldest in list(latest)[:-KEPT]:  # other threads may do so too
        latest.pop(oldest, None)


def pool_size(asked: int, n_items: int) -> int:
    """Return how many candidates a benchmark has after a number of items.

    >>> [pool_size(asked, 14042) for asked in (0, 200, 201, 1000, 2000)]
    [1000, 1000, 2000, 8000, 14042]
    """
    n = CANDIDATES
    while n < PER_ITEM * asked:
        n *= 2
    return n_items if n_items <= max(COMPARED, n) else n


def fit_kriging(
    scores: Matrix,
    weights: FloatArray,
    order: IntArray,
    distinct: int,
    per_group: float = 1.0,
    asked: int = 0,
    include: IntArray | None = None,
) -> KrigingModel:
    """Fit both models to the sources.

    Parameters
    ----------
    scores : Matrix, shape (sources, items)
        In [0, 1], without gaps; at least 2 sources.
    weights : ndarray, shape (wanted, items)
        Weights of the wanted scores, each row of sum 1. Items are chosen for the first.
    order : ndarray of int, shape (items,)
        The order in which a sample takes the items. The first are the candidates of a large
        benchmark, whatever the sources.
    distinct : int
        Number of independent sources: with few, items are drawn.
    per_group : float
        How many sources there are for each independent one: members of a family answer alike.
    asked : int
        Number of items in the run: the candidates of a shorter run are among those of a longer one.
    include : ndarray of int, optional
        Items that must be candidates.
    """
    n_items = scores.shape[1]
    rank = np.arange(n_items)
    if (n := pool_size(asked, n_items)) < n_items:
        rank = np.full(n_items, n_items)
        rank[order[:n]] = np.arange(n)
        if include is not None:
            rank[include] = np.minimum(rank[include], n)
    candidates = np.flatnonzero(rank < n_items)
    full = by_rows(scores, lambda part: part @ weights[0])
    abilities = fit_abilities(scores, full, n_items)
    dispersion = 1.0
    parts = (scores[rows] for rows in row_blocks(scores))
    if not all(((part == 0) | (part == 1)).all() for part in parts):
        dispersion = max(_dispersion(scores, abilities), LEAST_DISPERSION)
    return KrigingModel(
        candidates,
        weights[:, candidates],
        abilities.take(candidates),
        abilities.chances @ weights.T,
        np.count_nonzero(weights, axis=1).astype(np.float64),
        np.searchsorted(candidates, order[rank[order] < n_items]),
        rank[candidates],
        dispersion,
        distinct,
        n_items,
        Inside.fit(scores, weights, candidates, abilities, dispersion, per_group),
        Beyond.fit(scores, weights, candidates, abilities),
    )


def _dispersion(scores: Matrix, abilities: Abilities) -> float:
    """Return the variance of scores about the curves, as a share of that of right and wrong."""
    sums = []
    for items in (every := column_blocks(scores)):
        chances = np.clip(abilities.curves.take(items).at(abilities.sources), 0.02, 0.98)
        squares = (scores[:, items] - chances) ** 2 / (chances * (1 - chances))
        if len(every) == 1:
            return float(squares.mean())
        sums.append(float(squares.sum()))
    return sum(sums) / (scores.shape[0] * scores.shape[1])
