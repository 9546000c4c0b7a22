"""Score reconstruction by generalized additive models: splines in ability and subset score.

Kipnis et al. 2024, "metabench: A Sparse Benchmark of Reasoning and Knowledge in Large Language
Models", arXiv 2407.12844.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from fewbench.methods.base import Answers, Prediction
from fewbench.methods.needs import Need, require
from fewbench.methods.prediction.completed import SeparateFits
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_words
from fewbench.scores import Scores
from fewbench.support import FloatArray
from fewbench_papers.metabench.additive_spline import fit_additive_spline
from fewbench_papers.tinybenchmarks.item_response import (
    subset_model,
)

Uses = Literal["both", "ability", "score"]


@dataclass(frozen=True)
class Ability:
    """A 2PL model of the chosen items gives the ability; splines turn it into the full score.

    The model is fitted to the sources' answers on the chosen items. Abilities are the most likely
    ones under a standard normal prior, for sources and targets alike. Splines for the full score
    and each task are learned separately, clipped to [0, 1], and continue along straight lines
    beyond the sources. Fractional scores are cut into right and wrong for the ability only.

    - `uses` ("both", "ability", "score"): Predict the full score from the ability and the score on
      the subset, or from one of them.
    """

    uses: Uses = "both"
    costly: ClassVar[bool] = True
    packs_answers: ClassVar[bool] = True
    needs: ClassVar = (
        Need("sources", 3, "splines need three sources", required=True),
        Need("independent sources", 20, "few sources to tell items apart and draw curves through"),
    )

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedAbility":
        """Fit the item response model to the sources' answers on the subset."""
        check_words(self)
        require(self, scores)
        at = scores.positions(subset.items)
        weights = subset.weights_over(scores)
        weights = weights / weights.sum()
        model = subset_model(scores, at) if self.uses != "score" else None

        def features(answers: FloatArray, filled: FloatArray) -> FloatArray:
            score: FloatArray = (filled @ weights)[:, None]
            if model is None:
                return score
            ability = model.abilities(np.arange(len(at)), answers).means
            both = [ability] if self.uses == "ability" else [ability, score]
            return np.hstack(both)

        of_sources = features(scores.columns(at), scores.columns(at, filled=True))
        fits = SeparateFits(scores, lambda y: fit_additive_spline(of_sources, y).predict)
        return FittedAbility(features, fits)


@dataclass(frozen=True, eq=False)
class FittedAbility:
    """Features from answers and filled answers, shape (models, n), and splines over them."""

    features: Callable[[FloatArray, FloatArray], FloatArray]
    fits: SeparateFits

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores and, if wanted, task scores, both in [0, 1]."""
        return self.fits.predict(self.features(answers.scores, answers.scores), tasks=tasks)
