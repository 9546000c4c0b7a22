"""What both models learn of the sources, once for all targets."""

from dataclasses import dataclass

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.item_curves import fit_curves, score_logits
from fewbench.algorithms.kriging.beyond import Beyond
from fewbench.algorithms.kriging.inside import Inside
from fewbench.algorithms.soundness.likeness import duplicate_groups

CANDIDATES = 2000
"""More items than this are not compared: a systematic sample of them has as good ones."""
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
        return min(1.0, max(0.0, (MANY - self.distinct) / FEW))


def fit_kriging(
    scores: FloatArray,
    weights: FloatArray,
    rng: np.random.Generator,
    least: int = 1,
    include: IntArray | None = None,
) -> KrigingModel:
    """Fit both models to the sources.

    Parameters
    ----------
    scores : ndarray, shape (sources, items)
        In [0, 1], without gaps; at least 2 sources.
    weights : ndarray, shape (wanted, items)
        Weights of the wanted scores, each row of sum 1. Items are chosen for the first.
    rng : Generator
        Draws the candidates of a large benchmark, and breaks ties of difficulty.
    least : int
        How many candidates there must be at least.
    include : ndarray of int, optional
        Items that must be candidates.
    """
    n_items = scores.shape[1]
    share = scores.mean(axis=0)
    order = np.lexsort((rng.random(n_items), share))
    candidates = np.arange(n_items)
    n = max(CANDIDATES, least)
    if n_items > n:
        places = ((np.arange(n) + rng.random()) * n_items / n).astype(np.intp)
        known = np.empty(0, dtype=np.intp) if include is None else include
        candidates = np.unique(np.concatenate([order[places], known]))
    logits = score_logits(scores @ weights[0], n_items)
    abilities = (logits - logits.mean()) / (logits.std() + 1e-9)
    curves = fit_curves(scores, abilities)
    dispersion = 1.0
    if not np.isin(scores, (0.0, 1.0)).all():
        chances = np.clip(curves.at(abilities), 0.02, 0.98)
        dispersion = float(((scores - chances) ** 2 / (chances * (1 - chances))).mean())
    return KrigingModel(
        candidates,
        Inside(scores, weights, candidates, abilities, curves, dispersion),
        Beyond(scores, weights, candidates, abilities, curves),
        np.lexsort((rng.random(len(candidates)), share[candidates])),
        int(duplicate_groups(scores).max()) + 1,
    )
