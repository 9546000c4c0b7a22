"""From answers to full scores by regression over the sources.

Regressors are those of DISCO's Table 2 (e), with its settings. `JointWeights` are the weights of
Double-Optimize: Zhang, Dorner & Hardt 2025, "How Benchmark Prediction from Fewer Data Misses the
Mark", arXiv 2506.07673.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np

from fewbench._types import BoolArray, FloatArray
from fewbench.algorithms import ties
from fewbench.algorithms.choice.linear_choice import weights_by_steps
from fewbench.algorithms.ridge_and_neighbors import fit_ridge, nearest
from fewbench.errors import MethodError
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
class Neighbours:
    """Mean of the full scores of the nearest sources by cosine.

    Cosine is that of DISCO's program; its paper says Euclidean.

    - `k`: Number of nearest sources (DISCO: 1).
    """

    k: int = 1
    interpolates: ClassVar[bool] = True

    @property
    def needs(self) -> tuple[Need, ...]:
        """As many sources as neighbors."""
        return (
            Need("sources", self.k, f"k={self.k} neighbors need as many sources", required=True),
        )

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Fitted:
        """Remember the sources."""
        check_number("k", self.k, 1)
        if self.k > len(x):
            raise MethodError(
                f"k={self.k} neighbors need as many source models; there are {len(x)}",
                hint=f"use k={len(x)} or fewer",
            )
        return lambda rows: np.asarray(y[nearest(rows, x, self.k)].mean(axis=1))


@dataclass(frozen=True)
class Forest:
    """Random forest with scikit-learn's defaults and `trees` trees, seeded."""

    trees: int = 100
    costly: ClassVar[bool] = True
    interpolates: ClassVar[bool] = True

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Fitted:
        """Learn with scikit-learn."""
        check_number("trees", self.trees, 1, 100_000)
        from sklearn.ensemble import RandomForestRegressor

        # Rounded, so that splits of equal gain are equal, whatever the order of the sums.
        features = ties.Grid(x)
        forest = RandomForestRegressor(self.trees, random_state=seed)
        y = ties.Grid(y)(y)
        forest.fit(features(x), y[:, 0] if y.shape[1] == 1 else y)  # a single output is taken flat
        return lambda rows: np.asarray(forest.predict(features(rows))).reshape(len(rows), -1)


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
