"""gp-IRT: between the weighted mean of the answers and p-IRT, whichever errs less counting more.

Polo et al. 2024, "tinyBenchmarks: evaluating LLMs with fewer examples", arXiv 2402.14992, Eq. 3.2
and appendix E.2 (generalised p-IRT).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fewbench._types import FloatArray
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.item_response import NEEDS, expectation_error
from fewbench.methods.prediction.mean import FittedMean, Mean
from fewbench.methods.prediction.p_irt import PIRT, FittedPIRT
from fewbench.methods.subset import Subset
from fewbench.scores import Scores

ANCHORS = 4.0
"""A weighted item counts as so many random ones, as in the authors' program."""


@dataclass(frozen=True)
class GPIRT:
    """λ · (weighted mean) + (1 - λ) · p-IRT, with λ = b² / (v/n + b²).

    b is the mean absolute error of the model's expectation for held-out sources, v the variance of
    a source's scores over the items, averaged over sources, and n the number of answers, four
    times that where the subset has weights. Tasks have a λ each.

    Parameters
    ----------
    dimensions : int, optional
        Abilities of the item response model; by default as many as best predict held-out cells.
    spread : float
        Standard deviation of the prior of a target's ability; the sources' is 1.
    """

    dimensions: int | None = None
    spread: float = 2.0
    costly: ClassVar[bool] = True
    needs: ClassVar = NEEDS

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedGPIRT":
        """Fit the item response model and find how far its expectations are off."""
        p_irt = PIRT(self.dimensions, self.spread).fit(scores, subset, seed)
        weights = np.column_stack([scores.item_weights, scores.task_weights])
        variance = (scores.filled**2 @ weights - (scores.filled @ weights) ** 2).mean(axis=0)
        at = scores.positions(subset.items)
        counts = np.bincount(scores.task_of[at], minlength=len(scores.tasks))
        if subset.weights is None:  # unequal shares of the full score count as fewer answers
            own = scores.item_weights[at]
            answered = np.append(own.sum() ** 2 / (own**2).sum(), counts)
        else:
            answered = ANCHORS * np.append(len(at), counts)
        error = expectation_error(scores, self.dimensions, self.spread)
        return FittedGPIRT(
            Mean().fit(scores, subset, seed),
            p_irt,
            _share(error**2, variance, answered),
        )


@dataclass(frozen=True, eq=False)
class FittedGPIRT:
    """The two predictors, and the share of the weighted mean in the full score and each task."""

    mean: FittedMean
    p_irt: FittedPIRT
    share: FloatArray

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, the items' expected scores and, if wanted, task scores."""
        plain = self.mean.predict(answers, tasks=tasks)
        model = self.p_irt.predict(answers, tasks=tasks)
        full = self.share[0] * plain.scores + (1.0 - self.share[0]) * model.scores
        if plain.tasks is None or model.tasks is None:
            return replace(model, scores=full)
        by_task = self.share[1:] * plain.tasks + (1.0 - self.share[1:]) * model.tasks
        return replace(model, scores=full, tasks=by_task)


def _share(squared_error: FloatArray, variance: FloatArray, answered: FloatArray) -> FloatArray:
    """Return λ; 0 where nothing was answered, 1 where neither errs (nothing varies)."""
    of_mean = variance / np.maximum(answered, 1e-12)
    total = of_mean + squared_error
    return np.where(
        answered > 0, np.where(total > 0, squared_error / np.maximum(total, 1e-300), 1.0), 0.0
    )
