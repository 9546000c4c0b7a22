"""The weights of Double-Optimize: Zhang, Dorner & Hardt 2025, arXiv 2506.07673."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.methods.base import Answers, Prediction
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.scores import Scores
from fewbench.support import FloatArray
from fewbench_papers.benchmark_prediction.linear_choice import weights_by_steps


@dataclass(frozen=True)
class JointWeights:
    """A weighted sum of the answers, with weights optimized as those of `joint`.

    Without an intercept, a target with all items right is not drawn to the sources' mean.
    """

    packs_answers: ClassVar[bool] = True
    needs: ClassVar = (Need("independent sources", 20, "few sources to learn many weights from"),)

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedWeights":
        """Learn the weights for the full score and for each task."""
        at = scores.positions(subset.items)
        outputs = np.column_stack([scores.full_scores(), scores.task_scores()])
        answers = scores.columns(at, filled=True)
        return FittedWeights(weights_by_steps(answers, outputs, np.random.default_rng(seed)))


@dataclass(frozen=True, eq=False)
class FittedWeights:
    """Weights of the chosen items, shape (n, 1 + tasks)."""

    weights: FloatArray

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores and, if wanted, task scores, in [0, 1]."""
        scores = np.clip(answers.scores @ self.weights, 0.0, 1.0)
        return Prediction(scores[:, 0], scores[:, 1:] if tasks else None)
