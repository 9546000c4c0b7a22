"""Weights of the chosen items by gradient steps, without an intercept.

Zhang, Dorner & Hardt 2025, "How Benchmark Prediction from Fewer Data Misses the Mark",
arXiv 2506.07673, the weights of their Double-Optimize.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench._types import FloatArray
from fewbench.algorithms.choice.joint import weights_by_steps
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


@dataclass(frozen=True)
class JointWeights:
    """A weighted sum of the answers, its weights optimised as those of `joint` are.

    With no intercept, a target that gets all items right is not drawn to the sources' mean.
    """

    needs: ClassVar = (Need("distinct sources", 20, "few sources to learn many weights from"),)

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedWeights":
        """Learn the weights for the full score and for each task."""
        at = scores.positions(subset.items)
        outputs = np.column_stack([scores.full_scores(), scores.task_scores()])
        weights = weights_by_steps(scores.filled[:, at], outputs, np.random.default_rng(seed))
        return FittedWeights(weights)


@dataclass(frozen=True, eq=False)
class FittedWeights:
    """Weights of the chosen items, shape (n, 1 + tasks)."""

    weights: FloatArray

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores and, if wanted, task scores, in [0, 1]."""
        said = np.clip(answers.scores @ self.weights, 0.0, 1.0)
        return Prediction(said[:, 0], said[:, 1:] if tasks else None)
