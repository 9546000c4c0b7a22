"""Imputation by principal components, as Zhang, Dorner & Hardt 2025 have it (their PCA).

"How Benchmark Prediction from Fewer Data Misses the Mark", arXiv 2506.07673. For the same idea
with a model of the noise see `fewbench.methods.prediction.low_rank`.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fewbench.algorithms.completion.imputation import Components, principal_components
from fewbench.errors import MethodError
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.scores import Scores

FloatArray = NDArray[np.float64]

RANKS = (2, 5, 10, 20)
HELD = 0.25
"""Share of the sources by which the rank is chosen."""


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
        the sources, held out. `rank=2` is what the authors' program comes to.
    steps : int
        Rounds of imputation (the authors: at most 100). Fewer shrink more towards the sources'
        mean.
    """

    rank: int | None = None
    steps: int = 100
    needs: ClassVar = (Need("distinct sources", 20, "few sources have few components"),)

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedImputation":
        """Find the components of the sources; missing cells are filled first."""
        if self.rank is not None and self.rank < 0:
            raise MethodError(f"rank is {self.rank}", hint="use 0 or more, or leave it out")
        if self.steps < 1:
            raise MethodError(f"steps is {self.steps}", hint="use 1 or more")
        rank = self._rank(scores, subset, seed) if self.rank is None else self.rank
        return FittedImputation(self, scores, principal_components(scores.filled, rank))

    def _rank(self, scores: Scores, subset: Subset, seed: int) -> int:
        """Choose the rank by the error of the full score of held-out sources; the first of ties."""
        order = np.random.default_rng(seed).permutation(scores.n_models)
        held = order[: round(HELD * len(order))]
        if not len(held) or len(held) == len(order):
            return RANKS[0]
        values, at = scores.filled, scores.positions(subset.items)
        components = principal_components(np.delete(values, held, axis=0), max(RANKS))
        truth = values[held] @ scores.item_weights
        errors = []
        for rank in RANKS:
            rows = components.first(rank).impute(at, values[np.ix_(held, at)], self.steps)
            errors.append(np.round(np.abs(rows @ scores.item_weights - truth).mean(), 12))
        return RANKS[int(np.argmin(errors))]


@dataclass(frozen=True, eq=False)
class FittedImputation:
    """The sources' components."""

    method: Imputation
    scores: Scores
    components: Components

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, the items' expected scores and, if wanted, task scores.

        As in the authors' program, means are taken of what is imputed as it comes.
        """
        items = self.components.impute(answers.items, answers.scores, self.method.steps)
        full = np.clip(items @ self.scores.item_weights, 0.0, 1.0)
        means = np.clip(self.scores.task_means(items), 0.0, 1.0) if tasks else None
        return Prediction(full, means, np.clip(items, 0.0, 1.0))
