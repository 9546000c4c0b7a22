"""Ability-IRT: the full score by splines in the ability and the score on the subset.

Kipnis et al. 2024, "metabench: A Sparse Benchmark of Reasoning and Knowledge in Large Language
Models", arXiv 2407.12844, its score reconstruction by generalised additive models.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.additive_spline import AdditiveSpline, fit_additive_spline
from fewbench.errors import MethodError
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.item_response import SourceModel, subset_model
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_words
from fewbench.scores import Scores

Uses = Literal["both", "ability", "score"]
LEAST = 3


@dataclass(frozen=True)
class Ability:
    """A 2PL model of the chosen items gives the ability; splines turn it into the full score.

    The model is fitted to what the sources answered on the chosen items; abilities are the most
    likely ones, standard normal a priori. Sources' abilities are estimated as targets' are. Full
    score and task scores are learned apart, and kept within 0 and 1; beyond the sources they go on
    along straight lines. Continuous scores are cut into right and wrong for the ability alone.

    Parameters
    ----------
    uses : {"both", "ability", "score"}
        What the full score is predicted from: ability and score on the subset, or one of them.
    """

    uses: Uses = "both"
    costly: ClassVar[bool] = True
    needs: ClassVar = (
        Need("sources", LEAST, "splines need three sources", required=True),
        Need("distinct sources", 20, "few sources to tell items apart and draw curves through"),
    )

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedAbility":
        """Fit the item response model to the sources' answers on the subset."""
        check_words(self)
        if scores.n_models < LEAST:
            raise MethodError(
                f"splines need at least {LEAST} source models, there are {scores.n_models}",
                hint="use random, or more sources",
            )
        at = scores.positions(subset.items)
        weights = subset.weights_over(scores)
        model = subset_model(scores, at) if self.uses != "score" else None
        return FittedAbility(
            self,
            at,
            weights / weights.sum(),
            model,
            scores.values[:, at],
            scores.filled[:, at],
            scores.full_scores()[:, None],
            scores.task_scores(),
        )


@dataclass(frozen=True, eq=False)
class FittedAbility:
    """Items, their weights in the score on the subset, and their item response model.

    With the sources' answers on the items, as they are and filled, and their full and task scores.
    """

    method: Ability
    at: IntArray
    weights: FloatArray
    model: SourceModel | None
    values: FloatArray
    filled: FloatArray
    full: FloatArray
    tasks: FloatArray

    def features(self, answers: FloatArray, filled: FloatArray) -> FloatArray:
        """Return ability and score on the subset, of models with these answers on the items.

        Parameters
        ----------
        answers : ndarray, shape (models, n)
            NaN where a model was not run.
        filled : ndarray, shape (models, n)
            The same without NaN.
        """
        score = (filled @ self.weights)[:, None]
        if self.model is None:
            return score
        ability = self.model.abilities(np.arange(len(self.at)), answers).means
        return ability if self.method.uses == "ability" else np.hstack([ability, score])

    @cached_property
    def _of_sources(self) -> FloatArray:
        return self.features(self.values, self.filled)

    @cached_property
    def _full(self) -> AdditiveSpline:
        return fit_additive_spline(self._of_sources, self.full)

    @cached_property
    def _tasks(self) -> AdditiveSpline:
        return fit_additive_spline(self._of_sources, self.tasks)

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores and, if wanted, task scores, both in [0, 1]."""
        x = self.features(answers.scores, answers.scores)
        full = np.clip(self._full.predict(x)[:, 0], 0.0, 1.0)
        if not tasks:
            return Prediction(full)
        if self.tasks.shape[1] == 1:
            return Prediction(full, full[:, None])
        return Prediction(full, np.clip(self._tasks.predict(x), 0.0, 1.0))
