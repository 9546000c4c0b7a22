"""From answers to full scores by regression over the sources."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fewbench._types import BoolArray, FloatArray
from fewbench.errors import MethodError
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.needs import Extra, Need, extras_of, is_costly, needs_of
from fewbench.methods.prediction.features import (
    Features,
    FittedFeatures,
    NoReduction,
    Reduction,
    Signature,
    Transform,
)
from fewbench.methods.prediction.regressors import Fitted, Regressor
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


@dataclass(frozen=True)
class Regression:
    """Features of the answers, fewer dimensions, a regressor (DISCO, §4.2).

    The full score and the task scores are learned apart: what is best for one is not bent to
    fit the others.
    """

    regressor: Regressor
    features: Features = field(default_factory=Signature)
    reduction: Reduction = field(default_factory=NoReduction)

    @property
    def costly(self) -> bool:
        """Whether the regressor takes long to learn."""
        return is_costly(self.regressor)

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the regression needs, and its parts."""
        two = Need("sources", 2, "a regression needs two sources", required=True)
        return (two, *needs_of(self.features, self.reduction, self.regressor))

    @property
    def extras(self) -> tuple[Extra, ...]:
        """The optional packages that its parts need."""
        return extras_of(self.features, self.reduction, self.regressor)

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedRegression":
        """Learn the reduction and the regressor from the sources; MethodError if just one."""
        if scores.n_models < 2:
            raise MethodError(
                f"regression needs at least 2 source models, there are {scores.n_models}"
            )
        features = self.features.fit(scores, subset)
        x = features.sources
        varies = np.ptp(x, axis=0) > 1e-9  # less is rounding
        reduction = self.reduction if varies.any() else NoReduction()
        transform = reduction.fit(x[:, varies], seed)
        return FittedRegression(
            self.regressor,
            features,
            scores.full_scores()[:, None],
            scores.task_scores(),
            seed,
            varies,
            transform,
            transform(x[:, varies]),
        )


@dataclass(frozen=True, eq=False)
class FittedRegression:
    """A regression that knows the sources' reduced features z, shape (sources, dimensions).

    With their full scores, shape (sources, 1), and task scores, shape (sources, tasks).
    """

    regressor: Regressor
    features: FittedFeatures
    full: FloatArray
    tasks: FloatArray
    seed: int
    varies: BoolArray
    transform: Transform
    z: FloatArray

    @cached_property
    def _full(self) -> Fitted:
        return self._fit(self.full)

    @cached_property
    def _tasks(self) -> Fitted:
        return self._fit(self.tasks)

    def _fit(self, y: FloatArray) -> Fitted:
        if not self.z.shape[1]:  # all sources answered the same: their mean is all there is
            return lambda rows: np.tile(y.mean(axis=0), (len(rows), 1))
        return self.regressor.fit(self.z, y, self.seed)

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores and, if wanted, task scores, both in [0, 1]."""
        x = self.features.of_targets(answers)
        z = self.transform(x[:, self.varies])
        full = np.clip(self._full(z)[:, 0], 0.0, 1.0)
        outside = self._outside(z) if self.regressor.interpolates else None
        if not tasks:
            return Prediction(full, outside=outside)
        if self.tasks.shape[1] == 1:
            return Prediction(full, full[:, None], outside=outside)
        return Prediction(full, np.clip(self._tasks(z), 0.0, 1.0), outside=outside)

    def _outside(self, z: FloatArray) -> BoolArray:
        """Whether a target lies farther from all sources than any source does from the rest."""
        from scipy.spatial.distance import cdist

        between = cdist(self.z, self.z)
        np.fill_diagonal(between, np.inf)
        to_sources = cdist(z, self.z).min(axis=1)
        return np.asarray(to_sources > between.min(axis=1).max())
