"""What both models learn of the sources, once for all targets."""

from dataclasses import dataclass

import numpy as np

from fewbench._blocks import Matrix, by_columns, by_rows, column_blocks, row_blocks
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.item_curves import ItemCurves, fit_curves, score_logits
from fewbench.algorithms.kriging.beyond import Beyond
from fewbench.algorithms.kriging.inside import Inside
from fewbench.algorithms.soundness.likeness import count_distinct

COMPARED, CANDIDATES, PER_ITEM = 2000, 1000, 5
"""Of more items than COMPARED only a systematic sample is compared: it has as good ones. It has
CANDIDATES items, and twice as many whenever they are fewer than PER_ITEM for each that is asked."""
GOLDEN = 0.6180339887498949
FEW, MANY = 20, 45
"""Distinct sources: below FEW all items are a systematic sample, below MANY part of the later."""


@dataclass(frozen=True, eq=False)
class KrigingModel:
    """The sources' two models.

    Attributes
    ----------
    candidates : ndarray of int, shape (candidates,)
        Positions of the items that may be asked, sorted.
    inside : Inside
    beyond : Beyond
    difficulty : ndarray of int, shape (candidates,)
        The candidates from the hardest to the easiest, ties at random.
    distinct : int
        How many sources there are, near copies counted once.
    """

    candidates: IntArray
    inside: Inside
    beyond: Beyond
    difficulty: IntArray
    distinct: int

    @property
    def is_sampled(self) -> bool:
        """Whether all items are a systematic sample, for lack of sources."""
        return self.distinct < FEW

    @property
    def sampled_share(self) -> float:
        """Share of the later items that are a systematic sample, whatever the target's answers."""
        return part((MANY - self.distinct) / FEW)


def part(x: float) -> float:
    """Return x cut to [0, 1]."""
    return min(1.0, max(0.0, x))


def pool_size(asked: int, n_items: int) -> int:
    """Return how many candidates a benchmark has after so many items.

    >>> [pool_size(asked, 14042) for asked in (0, 200, 201, 1000, 2000)]
    [1000, 1000, 2000, 8000, 14042]
    """
    n = CANDIDATES
    while n < PER_ITEM * asked:
        n *= 2
    return n_items if n_items <= max(COMPARED, n) else n


def _spread(n: int, total: int, start: float) -> IntArray:
    """Return n places of a line of them, spread evenly; those of a smaller n come first."""
    steps = np.arange(4 * n + 100)
    places = ((start + steps * GOLDEN) % 1 * total).astype(np.intp)
    _, first = np.unique(places, return_index=True)
    return places[np.sort(first)][:n]


def fit_kriging(
    scores: Matrix,
    weights: FloatArray,
    rng: np.random.Generator,
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
    rng : Generator
        Draws the candidates of a large benchmark, and breaks ties of difficulty.
    asked : int
        How many items are asked: the candidates of fewer are among those of more.
    include : ndarray of int, optional
        Items that must be candidates.
    """
    n_items = scores.shape[1]
    share = by_columns(scores, lambda part: part.mean(axis=0))
    order = np.lexsort((rng.random(n_items), share))
    candidates = np.arange(n_items)
    start = rng.random()
    if (n := pool_size(asked, n_items)) < n_items:
        known = np.empty(0, dtype=np.intp) if include is None else include
        candidates = np.unique(np.concatenate([order[_spread(n, n_items, start)], known]))
    logits = score_logits(by_rows(scores, lambda part: part @ weights[0]), n_items)
    abilities = (logits - logits.mean()) / (logits.std() + 1e-9)
    curves = fit_curves(scores, abilities)
    dispersion = 1.0
    parts = (scores[rows] for rows in row_blocks(scores))
    if not all(((part == 0) | (part == 1)).all() for part in parts):
        dispersion = _dispersion(scores, abilities, curves)
    return KrigingModel(
        candidates,
        Inside(scores, weights, candidates, abilities, curves, dispersion),
        Beyond(scores, weights, candidates, abilities, curves),
        np.lexsort((rng.random(len(candidates)), share[candidates])),
        count_distinct(scores[:, candidates]),
    )


def _dispersion(scores: Matrix, abilities: FloatArray, curves: ItemCurves) -> float:
    """Return the variance of scores about the curves, as a share of that of right and wrong."""
    sums = []
    for items in (every := column_blocks(scores)):
        chances = np.clip(curves.of(items).at(abilities), 0.02, 0.98)
        squares = (scores[:, items] - chances) ** 2 / (chances * (1 - chances))
        if len(every) == 1:
            return float(squares.mean())
        sums.append(float(squares.sum()))
    return sum(sums) / (scores.shape[0] * scores.shape[1])
