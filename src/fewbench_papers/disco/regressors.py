"""The regressors of DISCO's Table 2 (e) beside ridge regression, with its settings."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.algorithms import ties
from fewbench.algorithms.ridge_and_neighbors import nearest
from fewbench.errors import MethodError
from fewbench.methods.needs import Need
from fewbench.methods.prediction.regression import Fitted
from fewbench.methods.written import check_number
from fewbench.support import FloatArray


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
