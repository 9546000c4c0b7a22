"""Items on which the sources disagree most (DISCO, Rubinstein et al. 2025, §4.1.2).

All three take the top items by a score of disagreement; ties go to the earlier item. Without
option probabilities the score is that of the two classes (c, 1 - c).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench.algorithms.allocation import allocate
from fewbench.algorithms.disagreement import (
    Normalisation,
    correctness_variance,
    jensen_shannon,
    predictive_diversity,
    two_class,
)
from fewbench.errors import MethodError
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


@dataclass(frozen=True)
class Disagreement(ABC):
    """What the three have in common.

    Parameters
    ----------
    models : int, optional
        Disagreement among a random subset of that many sources (the paper's M); all by default.
        The subset follows from the seed.
    stratified : bool
        Equal numbers of items of each task (Table 2 b) instead of the top of all.
    """

    models: int | None = None
    stratified: bool = False

    @abstractmethod
    def disagreement(self, sources: Scores) -> NDArray[np.float64]:
        """Return each item's score of disagreement, shape (items,)."""

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Return the `budget` items of most disagreement, the highest first."""
        if self.models is not None and self.models < 1:
            raise MethodError(f"disagreement among {self.models} models", hint="use 1 or more")
        rng = np.random.default_rng(seed)
        sources = scores
        if self.models is not None and self.models < scores.n_models:
            asked = np.sort(rng.permutation(scores.n_models)[: self.models])
            sources = scores.complete().take(models=asked)
        order = np.argsort(-self.disagreement(sources), kind="stable")
        if self.stratified:
            order = order[_within_share(scores, order, budget, rng)]
        return Subset(items=tuple(scores.item_ids[order[:budget]]))


@dataclass(frozen=True)
class PredictiveDiversity(Disagreement):
    """Predictive diversity score, PDS (Eq. 1).

    Parameters
    ----------
    normalise : {"options", "none", "excess"}
        See `fewbench.algorithms.disagreement.predictive_diversity`.
    """

    normalise: Normalisation = "options"

    def disagreement(self, sources: Scores) -> NDArray[np.float64]:
        """Return each item's PDS."""
        by_model, n_options = _options(sources)
        return predictive_diversity(by_model, n_options, self.normalise)


@dataclass(frozen=True)
class JensenShannon(Disagreement):
    """Generalised Jensen-Shannon divergence, JSD (Proposition 1)."""

    def disagreement(self, sources: Scores) -> NDArray[np.float64]:
        """Return each item's JSD in nats."""
        return jensen_shannon(_options(sources)[0])


@dataclass(frozen=True)
class CorrectnessVariance(Disagreement):
    """Variance over the sources of the score itself, for tables of correctness only."""

    def disagreement(self, sources: Scores) -> NDArray[np.float64]:
        """Return each item's variance."""
        return correctness_variance(sources.filled)


def _options(sources: Scores) -> tuple[Iterable[NDArray[Any]], NDArray[np.intp]]:
    if sources.probabilities is None:
        return two_class(sources.filled), np.full(sources.n_items, 2)
    return sources.probabilities.by_model(), sources.items["n_options"].to_numpy(np.intp)


def _within_share(
    scores: Scores, order: NDArray[np.intp], budget: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Whether each item of `order` is among the first of its task's equal share."""
    sizes = np.bincount(scores.task_of)
    counts = allocate(budget, np.ones(len(sizes)), sizes, rng)
    of_task = scores.task_of[order]
    rank = np.empty(len(order), dtype=np.intp)
    for task in range(len(sizes)):
        rank[of_task == task] = np.arange(sizes[task])
    return np.asarray(rank < counts[of_task])
