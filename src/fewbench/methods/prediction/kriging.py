"""Full scores by fewbench's Gaussian process, from answers to any items.

The items are those of `OptimalDesign`, or any others. See `fewbench.algorithms.kriging`.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.kriging import FAR, Draw, KrigingModel, KrigingRun
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.kriging import LEAST, NEEDS, prediction_of, source_kriging
from fewbench.methods.needs import require
from fewbench.methods.sources import carrying_sources
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


@dataclass(frozen=True)
class Kriging:
    """Posterior mean of the full score, inside and beyond the sources, with its standard error.

    If the sources cannot predict a target, and part of the items is a sample, the estimate rests on
    the sample as well (see `fewbench.algorithms.kriging.posterior`).

    - `sources`: Number of independent sources that decides whether the sources can predict any
      target (default: that of the scores).
    """

    sources: int | None = None
    needs: ClassVar = (LEAST, *NEEDS)
    reach: ClassVar[float] = FAR

    def for_sources(self, scores: Scores) -> "Kriging":
        """Return the predictor that these sources decide on."""
        if self.sources is not None:
            return self
        return replace(self, sources=carrying_sources(scores))

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedKriging":
        """Fit the sources."""
        require(self, scores)
        items = scores.positions(subset.items)
        model = source_kriging(scores, seed, len(items), items, self.sources)
        chances = None
        if subset.chances is not None:
            chances = np.full(len(model.candidates), np.nan)
            of_items = np.array(subset.chances, dtype=np.float64)  # None is NaN
            chances[np.searchsorted(model.candidates, items)] = of_items
        return FittedKriging(scores, model, chances)


@dataclass(frozen=True, eq=False)
class FittedKriging:
    """The sources, their models, and the probabilities of drawn items (NaN for the others)."""

    scores: Scores
    model: KrigingModel
    chances: FloatArray | None

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict each target by itself."""
        places: IntArray = np.searchsorted(self.model.candidates, answers.items)
        runs = (self._heard(places, row) for row in answers.scores)
        return prediction_of(self.scores, self.model, runs, tasks)

    def _heard(self, places: IntArray, row: FloatArray) -> KrigingRun:
        run = KrigingRun(self.model)
        run.hear(places, row)
        if self.chances is not None and (self.model.is_sampled or run.is_unlike(left=0)):
            chosen = places[np.isnan(self.chances[places])]
            run.draws.append(Draw(chosen, None, self.chances))
        return run
