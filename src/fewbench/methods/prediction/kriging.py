"""Full scores by fewbench's Gaussian process, from answers to any items.

The items are those of `OptimalDesign`, or any others. See `fewbench.algorithms.kriging`.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.kriging import KrigingModel, Run
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.kriging import NEEDS, prediction_of, source_kriging
from fewbench.methods.needs import require
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


@dataclass(frozen=True)
class Kriging:
    """Posterior mean of the full score, inside and beyond the sources, with its standard error."""

    needs: ClassVar = NEEDS

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedKriging":
        """Fit the sources."""
        require(self, scores)
        items = scores.positions(subset.items)
        return FittedKriging(source_kriging(scores, seed, len(items), items))


@dataclass(frozen=True, eq=False)
class FittedKriging:
    """The sources' models."""

    model: KrigingModel

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict each target by itself."""
        places: IntArray = np.searchsorted(self.model.candidates, answers.items)
        runs = (self._heard(places, row) for row in answers.scores)
        return prediction_of(self.model, runs, tasks)

    def _heard(self, places: IntArray, row: FloatArray) -> Run:
        run = Run(self.model)
        run.hear(places, row)
        return run
