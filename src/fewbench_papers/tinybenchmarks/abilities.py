"""Predictors by item response models: Ability-IRT, p-IRT and gp-IRT.

`Ability`: Kipnis et al. 2024, "metabench: A Sparse Benchmark of Reasoning and Knowledge in Large
Language Models", arXiv 2407.12844, score reconstruction by generalized additive models. `PIRT` and
`GPIRT`: Polo et al. 2024, "tinyBenchmarks: evaluating LLMs with fewer examples", arXiv 2402.14992,
Eq. 3.1 (performance-IRT), Eq. 3.2 and appendix E.2 (generalized p-IRT).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fewbench.methods.base import Answers, Prediction
from fewbench.methods.prediction.completed import FittedItems
from fewbench.methods.prediction.mean import FittedMean, Mean
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Scores
from fewbench.support import FloatArray
from fewbench_papers.tinybenchmarks.item_response import (
    NEEDS,
    expectation_error,
    source_model,
)


@dataclass(frozen=True)
class PIRT:
    """Mean of the answers and, for other items, of the chances of a right answer at the ability.

    The ability is the most likely one a posteriori. The authors' program has no prior, so few
    answers can drive an ability to infinity (like a `spread` of 100). Fractional scores are cut
    into right and wrong to estimate abilities.

    - `spread`: Standard deviation of the prior of a target's ability. The sources' is 1, and a
      target may exceed all sources (docs/methods/irt.md has numbers).
    """

    spread: float = 2.0
    costly: ClassVar[bool] = True
    packs_answers: ClassVar[bool] = True
    needs: ClassVar = NEEDS

    def fit(self, scores: Scores, subset: Subset, seed: int) -> FittedItems:
        """Fit the sources' item response model; MethodError if a setting is out of range."""
        check_number("spread", self.spread, 0.001, 1000)
        fitted = source_model(scores)

        def expected(answers: Answers) -> FloatArray:
            abilities = fitted.abilities(answers.items, answers.scores, self.spread)
            return fitted.model.expected(abilities.means)

        return FittedItems(scores.benchmark, expected, fitted.notes)


ANCHORS = 4.0
"""A weighted item counts as this many random ones, as in the authors' program."""


@dataclass(frozen=True)
class GPIRT:
    """λ · (weighted mean) + (1 - λ) · p-IRT, with λ = b² / (v/n + b²).

    b is the mean absolute error of the model's expectation for held-out sources. v is the variance
    of a source's scores over the items, averaged over sources. n is the number of answers, four
    times that where the subset has weights. Each task has its own λ. `spread` is that of `PIRT`.
    """

    spread: float = 2.0
    costly: ClassVar[bool] = True
    packs_answers: ClassVar[bool] = True
    needs: ClassVar = NEEDS

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedGPIRT":
        """Fit the item response model and measure the error of its expectations."""
        p_irt = PIRT(self.spread).fit(scores, subset, seed)
        weights = np.column_stack([scores.item_weights, scores.task_weights])
        variance = scores.remember("variances", lambda: _variances(scores.filled, weights))
        at = scores.positions(subset.items)
        counts = np.bincount(scores.task_of[at], minlength=len(scores.tasks))
        if subset.weights is None:  # unequal shares of the full score count as fewer answers
            of_items = scores.item_weights[at]
            answered = np.append(of_items.sum() ** 2 / (of_items**2).sum(), counts)
        else:
            answered = ANCHORS * np.append(len(at), counts)
        error = expectation_error(scores, self.spread)
        return FittedGPIRT(
            Mean().fit(scores, subset, seed),
            p_irt,
            _share(error**2, variance, answered),
        )


@dataclass(frozen=True, eq=False)
class FittedGPIRT:
    """The two predictors, and the weighted mean's share of the full score and of each task."""

    mean: FittedMean
    p_irt: FittedItems
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


def _variances(values: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray((values**2 @ weights - (values @ weights) ** 2).mean(axis=0))


def _share(squared_error: FloatArray, variance: FloatArray, answered: FloatArray) -> FloatArray:
    """Return λ: 0 where nothing was answered, 1 where neither has an error."""
    of_mean = variance / np.maximum(answered, 1e-12)
    total = of_mean + squared_error
    return np.where(
        answered > 0, np.where(total > 0, squared_error / np.maximum(total, 1e-300), 1.0), 0.0
    )
