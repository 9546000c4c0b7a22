"""Items of which nothing is known: each may be anything from 0 to 1, whatever command asks.

Two kinds. Items that came later (an extension), where the target has no answer and no source model
ran: they are never predicted from the others. And items like those requested and not
answered although later ones were: they failed, so they may be the hard ones. A score is then

    (1 - open) known + open [0, 1]

with the interval of the known part, and of its share (`intervals.weighted_sum`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fewbench._names import counted, some
from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.methods.base import Answers, Prediction
from fewbench.scores import Scores
from fewbench.uncertainty.intervals import TINY, Uncertainty, unknown, weighted_sum

MIDDLE = 0.5
"""Score of items that nothing says anything about: the middle of what they may be."""
NOTHING = np.empty(0, dtype=np.intp)


def are_unseen(scores: Scores, items: IntArray, *, beside: bool = False) -> BoolArray:
    """Return the items of which nothing is known, shape (items,).

    No source model ran them, and the target answered none that came with the same extension.

    Parameters
    ----------
    scores : Scores
    items : ndarray of int, shape (n,)
        Positions of the items that the target answered.
    beside : bool
        Whether items that no source model ran are a sample of their own.
    """
    cohorts = scores.cohort_of
    if not len(items) or not (beside or cohorts.any()):
        return np.zeros(scores.n_items, dtype=bool)
    seen = items[scores.unrun[items]] if beside else items
    return np.asarray(scores.unrun & ~np.isin(cohorts, cohorts[seen]))


def with_middle(prediction: Prediction, scores: Scores, answered: Sequence[IntArray]) -> Prediction:
    """Return a prediction that has unseen items in the middle, given each target's items."""
    rows, tasks = prediction.scores.copy(), prediction.tasks
    tasks = None if tasks is None else tasks.copy()
    for row, items in enumerate(answered):
        unseen = are_unseen(scores, items, beside=prediction.ran is not None)
        if unseen.any():
            rows[row] = _in_middle(rows[row], float(scores.item_weights[unseen].sum()))
            if tasks is not None:
                tasks[row] = _in_middle(tasks[row], scores.task_weights[unseen].sum(axis=0))
    return replace(prediction, scores=rows, tasks=tasks)


def _in_middle(estimates: Any, shares: Any) -> Any:
    return np.where(shares < 1 - TINY, (1 - shares) * estimates, 0.0) + shares * MIDDLE


@dataclass(frozen=True, eq=False)
class OpenItems:
    """How much of a weighted mean over items is open, given a target's answers.

    Parameters
    ----------
    scores : Scores
    answers : Answers
        One row.
    weights : ndarray, shape (items,)
        Weights of the items, of sum 1.
    chances : ndarray, shape (items,), optional
        Each item's chance to be requested (default: the same).
    beside : bool
        As for `are_unseen`.
    """

    scores: Scores
    answers: Answers
    weights: FloatArray
    chances: FloatArray | None = None
    beside: bool = False

    @cached_property
    def _unseen(self) -> BoolArray:
        unseen = are_unseen(self.scores, self.answers.items, beside=self.beside)
        return unseen & (self.weights > 0)

    @cached_property
    def unseen(self) -> float:
        """Share of the items that nothing says anything about."""
        return float(self.weights[self._unseen].sum())

    @cached_property
    def _lost(self) -> IntArray:
        lost = NOTHING if self.answers.lost is None else self.answers.lost
        return lost[(self.weights[lost] > 0) & ~self._unseen[lost]]

    @cached_property
    def lost(self) -> float:
        """Share of the other items that are like those requested and not answered."""
        if not len(self._lost):
            return 0.0
        loads = self.weights
        if self.chances is not None:
            loads = loads / np.maximum(self.chances, TINY)
        lost = float(loads[self._lost].sum())
        return lost / (lost + float(loads[self.answers.items].sum()))

    @property
    def is_all(self) -> bool:
        """Whether nothing else is left."""
        return (1 - self.unseen) * (1 - self.lost) < TINY

    @property
    def n_known(self) -> int:
        """About how many items are like those that were answered: these stand for them."""
        return max(round(self._n_seen * (1 - self.lost)), self._n_answered)

    @cached_property
    def _n_seen(self) -> int:
        return int(np.count_nonzero(self.weights) - np.count_nonzero(self._unseen))

    @cached_property
    def _n_answered(self) -> int:
        return int(np.count_nonzero(self.weights[self.answers.items]))

    def estimate_of_known(self, estimate: float) -> float:
        """Return the part of an estimate that is of the other items, of one `with_middle`."""
        if self.unseen > 1 - TINY:
            return estimate
        return min(max((estimate - self.unseen * MIDDLE) / (1 - self.unseen), 0.0), 1.0)

    def around(self, known: Uncertainty, estimate: float) -> Uncertainty:
        """Return the uncertainty of the whole, given that of the known part."""
        from scipy.special import ndtri

        share = (1 - self.unseen) * (1 - self.lost)
        if share > 1 - TINY:
            return known
        if self.is_all:
            return replace(unknown(estimate), warnings=self._notes)
        n, mean = self._n_answered + len(self._lost), known.estimate
        left = max(1 / n - 1 / self._n_seen, 0.0) if n else 0.0
        spread = (1 - self.unseen) * math.sqrt(self.lost * (1 - self.lost) * left)

        def of_share(level: float) -> tuple[float, float]:  # how far the share may be off
            reach = spread * float(ndtri(0.5 + level / 2))
            return reach * mean, reach * (1 - mean)

        bounds, open_ = (known.least, known.most), 1 - share
        found = weighted_sum([(share, known)], estimate, bounds, open_=open_, doubt=of_share)
        return replace(found, warnings=(*known.warnings, *self._notes))

    @property
    def _notes(self) -> tuple[str, ...]:
        notes = []
        if self.unseen:
            n = counted(int(self._unseen.sum()), "item")
            notes.append(
                f"{n} ({self.unseen:.0%} of the score) ran neither on the target nor on a source "
                "model, so they count as anything from the worst score to the best, and in the "
                "estimate as the middle. Run them: fewbench ask lists them"
            )
        if n_lost := len(self._lost):
            asked = counted(n_lost + self._n_answered, "item")
            notes.append(
                f"{n_lost:,} of the first {asked} asked have no answer{self._lacking}, and they "
                "may be hard ones: the interval counts them as anything from the worst score to "
                "the best. Record their answers, wrong ones for failures that count as wrong"
            )
        return tuple(notes)

    @property
    def _lacking(self) -> str:
        """Say which tasks have no answer at all."""
        task_of, tasks = self.scores.task_of, self.scores.tasks
        lacking = np.setdiff1d(task_of[self._lost], task_of[self.answers.items])
        return f" (none of {some([tasks[at] for at in lacking])})" if len(lacking) else ""
