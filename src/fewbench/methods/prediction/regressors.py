"""Regressors from features to full scores; DISCO's Table 2 (e) and their settings there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from fewbench._types import FloatArray
from fewbench.algorithms.ridge_and_neighbors import Metric, fit_ridge, nearest
from fewbench.errors import MethodError
from fewbench.methods.needs import Need
from fewbench.methods.written import check_number

Fitted = Callable[[FloatArray], FloatArray]


class Regressor(Protocol):
    """Learns to predict outputs from features."""

    interpolates: ClassVar[bool]
    """Whether predictions can never leave the range of the sources' scores."""

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Fitted:
        """Learn from x (sources, features) and y (sources, outputs)."""


@dataclass(frozen=True)
class Linear:
    """Least squares, of least norm where features outnumber sources."""

    interpolates: ClassVar[bool] = False

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Fitted:
        """Learn by singular value decomposition."""
        return fit_ridge(x, y, alpha=0.0).predict


@dataclass(frozen=True)
class Ridge:
    """Ridge regression.

    Parameters
    ----------
    alpha : float, optional
        The penalty (DISCO: 10); by default the one with the least leave-one-out error.
    """

    alpha: float | None = None
    interpolates: ClassVar[bool] = False

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Fitted:
        """Learn in closed form."""
        check_number("alpha", self.alpha, 0)
        return fit_ridge(x, y, self.alpha).predict


@dataclass(frozen=True)
class Neighbours:
    """Mean of the nearest sources' full scores.

    Parameters
    ----------
    k : int
        How many (DISCO: 1).
    metric : {"cosine", "euclidean"}
        Cosine as in DISCO's program; its paper says Euclidean.
    """

    k: int = 1
    metric: Metric = "cosine"
    interpolates: ClassVar[bool] = True

    @property
    def needs(self) -> tuple[Need, ...]:
        """As many sources as neighbours."""
        return (Need("sources", self.k, f"there are no k={self.k} neighbours", required=True),)

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Fitted:
        """Remember the sources."""
        check_number("k", self.k, 1)
        if self.k > len(x):
            raise MethodError(
                f"{self.k} neighbours of {len(x)} source models", hint=f"use k={len(x)} or fewer"
            )
        return lambda rows: np.asarray(y[nearest(rows, x, self.k, self.metric)].mean(axis=1))


@dataclass(frozen=True)
class Forest:
    """Random forest with scikit-learn's defaults, seeded.

    Parameters
    ----------
    trees : int
    """

    trees: int = 100
    costly: ClassVar[bool] = True
    interpolates: ClassVar[bool] = True

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Fitted:
        """Learn with scikit-learn."""
        check_number("trees", self.trees, 1, 100_000)
        from sklearn.ensemble import RandomForestRegressor

        return _sklearn(RandomForestRegressor(self.trees, random_state=seed), x, y)


@dataclass(frozen=True)
class Lasso:
    """Lasso regression.

    Parameters
    ----------
    alpha : float
        The penalty (DISCO: 1e-4).
    """

    alpha: float = 1e-4
    interpolates: ClassVar[bool] = False

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Fitted:
        """Learn with scikit-learn."""
        check_number("alpha", self.alpha, 1e-6)
        from sklearn.linear_model import Lasso as SklearnLasso

        return _sklearn(SklearnLasso(self.alpha, max_iter=20_000, random_state=seed), x, y)


@dataclass(frozen=True)
class Boosting:
    """Gradient boosting, one model an output.

    Parameters
    ----------
    trees : int
        DISCO: 200.
    """

    trees: int = 200
    costly: ClassVar[bool] = True
    interpolates: ClassVar[bool] = False

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Fitted:
        """Learn with scikit-learn."""
        check_number("trees", self.trees, 1, 100_000)
        from sklearn.ensemble import GradientBoostingRegressor
        from sklearn.multioutput import MultiOutputRegressor

        one = GradientBoostingRegressor(n_estimators=self.trees, random_state=seed)
        return _sklearn(one if y.shape[1] == 1 else MultiOutputRegressor(one), x, y)


@dataclass(frozen=True)
class MLP:
    """Multilayer perceptron with 128 hidden units a layer.

    DISCO trains with AdamW (learning rate 1e-3); scikit-learn's Adam with its L2 penalty stands
    in for it. "Layers" counts as there: two layers have one hidden layer, three have two.

    Parameters
    ----------
    layers : int
        2 (200 epochs) or 3 (700 epochs).
    """

    layers: int = 2
    costly: ClassVar[bool] = True
    interpolates: ClassVar[bool] = False

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Fitted:
        """Learn with scikit-learn."""
        check_number("layers", self.layers, 2, 3)
        import warnings

        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor

        model = MLPRegressor(
            hidden_layer_sizes=(128,) * (self.layers - 1),
            max_iter=200 if self.layers == 2 else 700,
            learning_rate_init=1e-3,
            random_state=seed,
        )
        with warnings.catch_warnings():
            # The number of epochs is the paper's; stopping there is meant.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return _sklearn(model, x, y)


def _sklearn(model: Any, x: FloatArray, y: FloatArray) -> Fitted:
    """Fit a scikit-learn regressor; one output is handed over flat, as it wants it."""
    flat = y[:, 0] if y.shape[1] == 1 else y
    model.fit(x, flat)
    return lambda rows: np.asarray(model.predict(rows), dtype=np.float64).reshape(len(rows), -1)
