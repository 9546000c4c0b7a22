"""From answers to full scores by regression over the sources.

Features, a reduction and a regressor are learned as in DISCO (§4.2).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np

from fewbench._types import BoolArray, FloatArray
from fewbench.algorithms import ties
from fewbench.algorithms.ridge_and_neighbors import fit_ridge
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.needs import Extra, Need, extras_of, is_costly, needs_of, require
from fewbench.methods.prediction.completed import SeparateFits
from fewbench.methods.prediction.features import (
    Features,
    FittedFeatures,
    NoReduction,
    Reduction,
    Signature,
    Transform,
)
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Scores

Fitted = Callable[[FloatArray], FloatArray]


class Regressor(Protocol):
    """Learns to predict outputs from features."""

    interpolates: ClassVar[bool]
    """Whether predictions can never leave the range of the sources' scores."""

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Fitted:
        """Learn from x (sources, features) and y (sources, outputs)."""


@dataclass(frozen=True)
class Linear:
    """Least squares; of least norm if features outnumber sources."""

    interpolates: ClassVar[bool] = False

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Fitted:
        """Learn by singular value decomposition."""
        return fit_ridge(x, y, alpha=0.0).predict


@dataclass(frozen=True)
class Ridge:
    """Ridge regression.

    - `alpha`: The penalty (DISCO: 10); by default the one with the least leave-one-out error.
    """

    alpha: float | None = None
    interpolates: ClassVar[bool] = False

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Fitted:
        """Learn in closed form."""
        check_number("alpha", self.alpha, 0)
        return fit_ridge(x, y, self.alpha).predict


@dataclass(frozen=True)
class Regression:
    """Features of the answers, a reduction and a regressor (DISCO, §4.2).

    The full score and the task scores are learned separately, so none is fitted at the cost of
    another.
    """

    regressor: Regressor
    features: Features = field(default_factory=Signature)
    reduction: Reduction = field(default_factory=NoReduction)

    @property
    def costly(self) -> bool:
        """Whether the regressor takes long to learn."""
        return is_costly(self.regressor)

    @property
    def packs_answers(self) -> bool:
        """Whether a pack needs the sources' answers on the chosen items alone."""
        return bool(getattr(self.features, "packs_answers", False))

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the regression and its parts need."""
        two = Need("sources", 2, "a regression needs two sources", required=True)
        return (two, *needs_of(self.features, self.reduction, self.regressor))

    @property
    def extras(self) -> tuple[Extra, ...]:
        """The optional packages that its parts need."""
        return extras_of(self.features, self.reduction, self.regressor)

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedRegression":
        """Learn the reduction and the regressor; MethodError if there is only one source."""
        require(self, scores)
        features = self.features.fit(scores, subset)
        x = features.sources
        varies = np.ptp(x, axis=0) > 1e-9  # less is rounding
        reduction = self.reduction if varies.any() else NoReduction()
        transform = reduction.fit(x[:, varies], seed)
        z = transform(x[:, varies])

        def fit(y: FloatArray) -> Fitted:
            if not z.shape[1]:  # all sources answered the same: their mean is all there is
                return lambda rows: np.tile(y.mean(axis=0), (len(rows), 1))
            return self.regressor.fit(z, y, seed)

        interpolates = self.regressor.interpolates
        return FittedRegression(
            features, varies, transform, z, interpolates, SeparateFits(scores, fit)
        )


@dataclass(frozen=True, eq=False)
class FittedRegression:
    """A regression with the sources' reduced features z, shape (sources, dimensions)."""

    features: FittedFeatures
    varies: BoolArray
    transform: Transform
    z: FloatArray
    interpolates: bool
    fits: SeparateFits

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores and, if wanted, task scores, both in [0, 1]."""
        z = self.transform(self.features.of_targets(answers)[:, self.varies])
        outside = self._outside(z) if self.interpolates else None
        return replace(self.fits.predict(z, tasks=tasks), outside=outside)

    def _outside(self, z: FloatArray) -> BoolArray:
        """Return whether a target is farther from all sources than any source from the rest."""
        from scipy.spatial.distance import cdist

        between = cdist(self.z, self.z)
        np.fill_diagonal(between, np.inf)
        to_sources = cdist(z, self.z).min(axis=1)
        return np.asarray(~ties.at_least(between.min(axis=1).max(), to_sources))
