"""A ratio estimator from survey statistics (Cochran 1977, ch. 6), used for tasks.

If the chosen tasks are easier than all of them, they are so for the source models too; the use is
ours.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.methods.base import Answers, Prediction
from fewbench.methods.prediction.mean import FittedMean, Mean
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


@dataclass(frozen=True)
class AnchorRatio:
    """P = s_X · full / s_X of all source models together."""

    packs_answers: ClassVar[bool] = True

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedAnchorRatio":
        """Compute the ratio."""
        at = scores.positions(subset.items)
        weights = subset.weights_over(scores)
        of_chosen = float((scores.columns(at, filled=True) @ weights).sum() / weights.sum())
        full = float(scores.full_scores().sum())
        ratio = full / of_chosen if of_chosen > 0 else 1.0
        return FittedAnchorRatio(Mean().fit(scores, subset, seed), ratio)


@dataclass(frozen=True, eq=False)
class FittedAnchorRatio:
    """The mean of the answers and its multiplier."""

    mean: FittedMean
    ratio: float

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, at most 1; a task with items scores their mean."""
        full = np.clip(self.mean.full(answers) * self.ratio, 0.0, 1.0)
        if not tasks:
            return Prediction(full)
        return Prediction(full, self.mean.tasks(answers, full))
