"""Imputation by principal components, as Zhang, Dorner & Hardt 2025 have it (their PCA).

"How Benchmark Prediction from Fewer Data Misses the Mark", arXiv 2506.07673. For the same idea
with a model of the noise see `fewbench.methods.prediction.low_rank`.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.algorithms.completion.imputation import Components, principal_components
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.needs import Need
from fewbench.methods.prediction.completed import completed
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Benchmark, Scores

RANKS = (2, 5, 10, 20)
STEPS = (100, 1000, 10_000)
HELD = 0.25
"""Share of the sources by which rank and steps are chosen."""


@dataclass(frozen=True)
class Imputation:
    """The items not run, imputed step by step from the sources' principal components.

    The authors' program takes the components of sources and targets together, and anew at every
    step; here they are the sources' and stay, so that no target depends on another and all steps
    are one product. Its choice of the rank never hides the held-out cells it means to hide, and so
    always falls on the first, 2; here they are hidden.

    Parameters
    ----------
    rank : int, optional
        Number of components; by default that of 2, 5, 10 and 20 which errs least on a quarter of
        the sources, held out.
    steps : int, optional
        Rounds of imputation; fewer shrink more towards the sources' mean. By default that of 100,
        1,000 and 10,000 which errs least there with that rank: with few of many items run, 100
        stop far too early. `rank=2,steps=100` is what the authors' program comes to.
    """

    rank: int | None = None
    steps: int | None = None
    needs: ClassVar = (Need("distinct sources", 20, "few sources have few components"),)

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedImputation":
        """Find the components of the sources; missing cells are filled first."""
        check_number("rank", self.rank, 0)
        check_number("steps", self.steps, 1, 1_000_000)
        rank, steps = self._chosen(scores, subset, seed)
        return FittedImputation(scores.benchmark, principal_components(scores.filled, rank), steps)

    def _chosen(self, scores: Scores, subset: Subset, seed: int) -> tuple[int, int]:
        """Choose rank and steps by the error of held-out sources' full score; of ties the least."""
        ranks = RANKS if self.rank is None else (self.rank,)
        pairs = [(r, s) for r in ranks for s in (STEPS if self.steps is None else (self.steps,))]
        order = np.random.default_rng(seed).permutation(scores.n_models)
        held = order[: round(HELD * len(order))]
        if len(pairs) == 1 or not len(held):
            return pairs[0]
        values, at = scores.filled, scores.positions(subset.items)
        components = principal_components(np.delete(values, held, axis=0), max(ranks))
        truth = values[held] @ scores.item_weights
        errors = []
        for rank, steps in pairs:
            rows = components.first(rank).impute(at, values[np.ix_(held, at)], steps)
            errors.append(np.round(np.abs(rows @ scores.item_weights - truth).mean(), 12))
        return pairs[int(np.argmin(errors))]


@dataclass(frozen=True, eq=False)
class FittedImputation:
    """The sources' components, and in how many steps they impute."""

    benchmark: Benchmark
    components: Components
    steps: int

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, the items' expected scores and, if wanted, task scores.

        As in the authors' program, means are taken of what is imputed as it comes.
        """
        items = self.components.impute(answers.items, answers.scores, self.steps)
        return completed(self.benchmark, items, answers, tasks=tasks)
