"""Items on which the sources disagree most (DISCO, Rubinstein et al. 2025, §4.1.2).

Both selectors take the items with the highest disagreement; ties go to the earlier item.
Without option probabilities, disagreement is that of the two classes (c, 1 - c). Missing cells are
left out. An item without any run has disagreement 0.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fewbench.algorithms import ties
from fewbench.algorithms.option_probabilities import (
    jensen_shannon,
    predictive_diversity,
    two_class,
)
from fewbench.algorithms.sampling import allocate
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Scores
from fewbench.support import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Disagreement(ABC):
    """Settings and selection that the two share.

    - `models`: Use the disagreement among this many random sources (the paper's M); by default all.
    - `stratified`: Choose equal numbers of items per task (Table 2 b) instead of the top of all.
    """

    models: int | None = None
    stratified: bool = False
    instead: ClassVar[str] = "use random items"

    @abstractmethod
    def disagreement(self, scores: Scores, rows: IntArray) -> FloatArray:
        """Return each item's disagreement among the models in `rows`, shape (items,).

        Rows are given because a few models may lack items that the table has.
        """

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Return the `budget` items with the highest disagreement, highest first."""
        check_number("models", self.models, 1)
        rng = np.random.default_rng(seed)
        rows = np.arange(scores.n_models)
        if self.models is not None and self.models < scores.n_models:
            rows = np.sort(rng.permutation(scores.n_models)[: self.models])
        measure = self.disagreement(scores, rows)
        order = ties.argsort(-measure)
        if self.stratified:
            order = order[_within_share(scores, order, budget, rng)]
        chosen = order[:budget]
        notes = _ties(measure, chosen, self.instead)
        return Subset(items=tuple(scores.item_ids[chosen]), notes=notes)


@dataclass(frozen=True)
class PredictiveDiversity(Disagreement):
    """Predictive diversity score, PDS (Eq. 1)."""

    instead: ClassVar[str] = "PDS of right and wrong alone has two values; use jsd"
    needs: ClassVar = (
        Need("probabilities", 1, "PDS of right and wrong alone has two values: use JSD"),
    )

    def disagreement(self, scores: Scores, rows: IntArray) -> FloatArray:
        """Return each item's PDS."""
        by_model, n_options = _options(scores, rows)
        return predictive_diversity(by_model, n_options)


@dataclass(frozen=True)
class JensenShannon(Disagreement):
    """Generalized Jensen-Shannon divergence, JSD (Proposition 1)."""

    needs: ClassVar = (
        Need("probabilities", 1, "JSD of right and wrong alone sees only how hard an item is"),
    )

    def disagreement(self, scores: Scores, rows: IntArray) -> FloatArray:
        """Return each item's JSD in nats."""
        return jensen_shannon(_options(scores, rows)[0])


def _ties(measure: FloatArray, chosen: IntArray, instead: str) -> tuple[str, ...]:
    """Return a note if the table's order, not disagreement, decided most items."""
    level = ties.levels(measure)
    tied = level == level[chosen[-1]]
    among = int(tied[chosen].sum())
    if among == int(tied.sum()) or among <= len(chosen) / 2:
        return ()
    return (
        f"{among} of the {len(chosen)} items are the first of {int(tied.sum())} in the table that "
        f"disagree equally: disagreement is a poor guide here ({instead})",
    )


def _options(scores: Scores, rows: IntArray) -> tuple[Iterable[NDArray[Any]], IntArray]:
    if scores.probabilities is None:
        return two_class(scores.cells[row] for row in rows), np.full(scores.n_items, 2)
    by_model = scores.probabilities.take(rows).by_model()
    return by_model, scores.items["n_options"].to_numpy(np.intp)


def _within_share(
    scores: Scores, order: IntArray, budget: int, rng: np.random.Generator
) -> BoolArray:
    """Return whether each item of `order` is within its task's equal share."""
    sizes = np.bincount(scores.task_of)
    counts = allocate(budget, np.ones(len(sizes)), sizes, rng)
    of_task = scores.task_of[order]
    rank = np.empty(len(order), dtype=np.intp)
    for task in range(len(sizes)):
        rank[of_task == task] = np.arange(sizes[task])
    return np.asarray(rank < counts[of_task])
