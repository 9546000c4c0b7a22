"""p-IRT and gp-IRT: answers where there are, what the item response model expects elsewhere.

Polo et al. 2024, "tinyBenchmarks: evaluating LLMs with fewer examples", arXiv 2402.14992, Eq. 3.1
(performance-IRT), Eq. 3.2 and appendix E.2 (generalised p-IRT: between the weighted mean of the
answers and p-IRT, whichever errs less counting more).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fewbench._types import FloatArray
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.item_response import NEEDS, SourceModel, expectation_error, source_model
from fewbench.methods.prediction.completed import completed
from fewbench.methods.prediction.mean import FittedMean, Mean
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Benchmark, Scores


@dataclass(frozen=True)
class PIRT:
    """Mean of the answers and of the chances, at the target's ability, to be right on the rest.

    The ability is the most likely one a posteriori; the authors' program has no prior, so that
    few answers can drive an ability to infinity (a `spread` of 100 comes to the same). The
    abilities of continuous scores come of scores cut into right and wrong.

    Parameters
    ----------
    dimensions : int, optional
        Abilities of the item response model; by default as many as best predict held-out cells.
    spread : float
        Standard deviation of the prior of a target's ability; the sources' is 1, and a target may
        be better than all of them (docs/methods/p-irt.md has the figures).
    """

    dimensions: int | None = None
    spread: float = 2.0
    costly: ClassVar[bool] = True
    needs: ClassVar = NEEDS

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedPIRT":
        """Fit the item response model of the sources; MethodError if a setting is out of range."""
        check_number("spread", self.spread, 0.001, 1000)
        return FittedPIRT(scores.benchmark, source_model(scores, self.dimensions), self.spread)


@dataclass(frozen=True, eq=False)
class FittedPIRT:
    """The sources' item response model, and the spread of abilities a priori."""

    benchmark: Benchmark
    model: SourceModel
    spread: float

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, the items' expected scores and, if wanted, task scores."""
        abilities = self.model.abilities(answers.items, answers.scores, self.spread)
        items = self.model.model.expected(abilities.means)
        said = completed(self.benchmark, items, answers, tasks=tasks)
        return replace(said, notes=self.model.notes)


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
