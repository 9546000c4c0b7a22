"""Two-stage collaborative filtering: models are users, items are items.

"Efficient Evaluation of Large Language Models via Collaborative Filtering" (anonymous, 2025).
Stage 1 asks for the items that tell apart the sources, and among them those that answer as the
target does; stage 2 predicts every other item from the answers to items like it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from fewbench.algorithms.completion.item_neighbours import Importance, ItemNeighbours
from fewbench.algorithms.completion.transport import check_solver
from fewbench.errors import MethodError
from fewbench.methods.adaptive.importance_session import ImportanceSession, ItemCompletion
from fewbench.methods.adaptive.low_rank_items import LowRankItems
from fewbench.methods.adaptive.past_tasks import Mixture, past_by_task
from fewbench.methods.adaptive.task_completion import TaskCompletion
from fewbench.methods.adaptive.task_sizes import in_rounds, task_sizes
from fewbench.methods.base import Method
from fewbench.methods.needs import Extra, Need
from fewbench.methods.written import check_number, check_words, write
from fewbench.scores import Scores


@dataclass(frozen=True)
class Collaborative(Method):
    """Items chosen for each target in rounds, other items predicted by those like them.

    The paper gives no values of its settings and finds the errors robust to them; the defaults
    were chosen by cross-validation over sources (benchmarks/tune_collaborative.py). Random is
    only which of equally important items is taken. The transport plan need not be unique: where
    it is not, the solver's is taken.

    Parameters
    ----------
    similar_sources : int
        |S|: how many sources most like the target (cosine of the answers to a task's items).
    alpha : float
        Weight of an item's importance to all sources; the rest is that to the similar ones
        (Eq. 7).
    rounds : int
        How often a target is asked; the first asks for the probe set, the same for all.
    similar_tasks : float
        tau_0: tasks are similar where the cosine of the sources' scores on them is so high.
    most_items : int
        Similar tasks are taken, the most similar first, while their answered items and the task's
        own, which always take part, are no more than this: with more, transport is slow and gains
        little.
    low_importance : float
        tau_1: items whose importance is below the mean of the selected over this are predicted
        by the mean of all sources (Eq. 10).
    least_similarity : float
        tau_2, and `quantile` q: an item is predicted by the target's answers to the items most
        like it if their mean similarity is tau_3 or more, the larger of tau_2 and the
        q-quantile over the task; else by the mean of the similar sources.
    quantile : float
    neighbours : int
        How many items most like it.
    weighted : bool
        Weigh them by similarity.
    importance : {"variance", "balance"}
        Eq. 6, or Eq. 11 for right-or-wrong scores.
    transport : bool
        Add items made by optimal transport of the answers to similar tasks (Eq. 9); needs the
        extra `transport`.
    minimum : int
        Items of every task that the budget should pay for; smaller tasks are taken whole.
    prediction : {"similarity", "low-rank"}
        Stage 2, or a low-rank completion of all items in its place (as UCBE-LRF in Table 5).

    Examples
    --------
    >>> Collaborative(transport=False, alpha=0.5).describe()
    'collaborative(alpha=0.5,transport=false)'
    """

    similar_sources: int = 10
    alpha: float = 0.75
    rounds: int = 5
    similar_tasks: float = 0.95
    most_items: int = 200
    low_importance: float = 1.5
    least_similarity: float = 0.8
    quantile: float = 0.5
    neighbours: int = 3
    weighted: bool = False
    importance: Importance = "variance"
    transport: bool = True
    minimum: int = 20
    prediction: Literal["similarity", "low-rank"] = "similarity"
    needs: ClassVar[tuple[Need, ...]] = (
        Need("distinct sources", 20, "few sources tell few items apart"),
        Need("tasks", 2, "on a single task plain random sampling is often closer"),
    )

    @property
    def extras(self) -> tuple[Extra, ...]:
        """The solver of optimal transport, where it is used."""
        if not self.transport or self.prediction != "similarity":
            return ()
        return (Extra("transport", "POT", "ot"),)

    def start(
        self, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> ImportanceSession:
        """Share the budget among the tasks and open a session."""
        self._check(scores)
        past = past_by_task(scores, self.importance, seed)
        sizes = task_sizes(budget, np.bincount(scores.task_of), self.minimum)
        mixture = Mixture(self.importance, self.alpha)
        completion: ItemCompletion
        if self.prediction == "low-rank":
            completion = LowRankItems(scores, budget, seed)
        else:
            completion = TaskCompletion(
                past,
                mixture,
                similar_sources=self.similar_sources,
                similar_tasks=self.similar_tasks,
                most_items=self.most_items,
                low_importance=self.low_importance,
                nearest=ItemNeighbours(
                    self.neighbours, self.weighted, self.least_similarity, self.quantile
                ),
                transport=self.transport,
            )
        return ImportanceSession(
            scores,
            past,
            in_rounds(sizes, self.rounds),
            mixture,
            self.similar_sources,
            completion,
            targets,
        )

    def describe(self) -> str:
        """Return the method and the settings that differ, as the command line writes them."""
        return write("collaborative", self)

    def _check(self, scores: Scores) -> None:
        check_words(self)
        for name in ("similar_sources", "rounds", "neighbours"):
            check_number(name, getattr(self, name), 1, 1_000_000)
        for name in ("alpha", "quantile"):
            check_number(name, getattr(self, name), 0, 1)
        for name in ("similar_tasks", "least_similarity"):  # cosines
            check_number(name, getattr(self, name), -1, 1)
        check_number("low_importance", self.low_importance, 0.001)
        for name in ("minimum", "most_items"):
            check_number(name, getattr(self, name), 0, 1_000_000)
        if self.importance == "balance" and not scores.is_binary:
            raise MethodError(
                "importance=balance is for scores that are right or wrong",
                hint="use importance=variance",
            )
        if self.transport and self.prediction == "similarity":
            check_solver()  # before the user has paid for answers
