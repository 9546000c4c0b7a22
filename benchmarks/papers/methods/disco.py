"""What DISCO compares with: Anchor-corr, a reduction by UMAP, and three more regressors."""

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from fewbench._types import FloatArray
from fewbench.errors import MissingExtraError
from fewbench.methods.prediction.features import Transform
from fewbench.methods.prediction.regression import Fitted
from fewbench.methods.subset import Subset
from fewbench.methods.written import write
from fewbench.scores import Scores
from fewbench_papers.algorithms.clustering.kmeans import representatives

STARTS = 5
"""Random starts of k-means, as in DISCO's program."""


@dataclass(frozen=True)
class ScoreAnchors:
    """Items nearest the k-means centers of the source models' scores (Anchor-corr, Table 1).

    As in the program, the items of all tasks are clustered together, by their weights in the full
    score; `clusters` does so in each task.
    """

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Cluster the items; weights are the clusters' shares of the full score."""
        weights = scores.item_weights
        chosen, labels = representatives(
            scores.filled.T, budget, seed, STARTS, weights * scores.n_items
        )
        shares = np.bincount(labels, weights, budget)
        return Subset(items=tuple(scores.item_ids[chosen]), weights=tuple(shares.tolist()))


@dataclass(frozen=True)
class UMAP:
    """Uniform manifold approximation (Table 2 d); needs umap-learn.

    - `components`: At most; limited to sources - 2.
    """

    components: int = 64

    def fit(self, x: FloatArray, seed: int) -> Transform:
        """Return the map learned by umap-learn."""
        try:
            import umap
        except ImportError as error:
            raise MissingExtraError(
                "the reduction 'umap' needs umap-learn", hint="pip install umap-learn"
            ) from error
        model = umap.UMAP(
            n_components=max(1, min(self.components, len(x) - 2)),
            n_neighbors=min(15, len(x) - 1),
            random_state=seed,
            n_jobs=1,
        ).fit(x)
        return lambda rows: cast(FloatArray, np.asarray(model.transform(rows), dtype=np.float64))

    def describe(self) -> str:
        return write("umap", self)


@dataclass(frozen=True)
class Lasso:
    """Lasso regression with the penalty 1e-4."""

    interpolates: ClassVar[bool] = False

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Fitted:
        """Learn with scikit-learn."""
        from sklearn.linear_model import Lasso as SklearnLasso

        return _sklearn(SklearnLasso(1e-4, max_iter=20_000, random_state=seed), x, y)

    def describe(self) -> str:
        return "lasso"


@dataclass(frozen=True)
class Boosting:
    """Gradient boosting with 200 trees, one model per output."""

    costly: ClassVar[bool] = True
    interpolates: ClassVar[bool] = False

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Fitted:
        """Learn with scikit-learn."""
        from sklearn.ensemble import GradientBoostingRegressor
        from sklearn.multioutput import MultiOutputRegressor

        one = GradientBoostingRegressor(n_estimators=200, random_state=seed)
        return _sklearn(one if y.shape[1] == 1 else MultiOutputRegressor(one), x, y)

    def describe(self) -> str:
        return "boosting"


@dataclass(frozen=True)
class MLP:
    """Multilayer perceptron with 128 hidden units per layer, trained for all its epochs.

    Unlike in the paper, outputs are standardized over the sources: unscaled, their errors are too
    small for the steps, and the perceptron errs about as much as the sources' mean. DISCO trains
    with AdamW (learning rate 1e-3) and does not give a batch size; here scikit-learn's Adam takes
    batches of 32 without a penalty; one batch of all source models has the same error. AdamW's own
    weight decay shrinks weights by 1e-5 a step.

    - `layers`: 2 (one hidden layer, 200 epochs) or 3 (two hidden layers, 700 epochs).
    """

    layers: int = 2
    costly: ClassVar[bool] = True
    interpolates: ClassVar[bool] = False

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Fitted:
        """Learn with scikit-learn."""
        import warnings

        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor

        epochs = 200 if self.layers == 2 else 700
        model = MLPRegressor(
            hidden_layer_sizes=(128,) * (self.layers - 1),
            alpha=0.0,
            batch_size=min(32, len(x)),
            learning_rate_init=1e-3,
            max_iter=epochs,
            n_iter_no_change=epochs,  # it does not stop before
            random_state=seed,
        )
        mean, spread = y.mean(axis=0), y.std(axis=0)
        spread[spread < 1e-9] = 0.0  # less is rounding: the sources agree, and so does the target
        with warnings.catch_warnings():
            # The number of epochs is the paper's; stopping there is meant.
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = _sklearn(model, x, (y - mean) / np.where(spread > 0, spread, 1.0))
        return lambda rows: np.asarray(mean + spread * fitted(rows))

    def describe(self) -> str:
        return write("mlp", self)


def _sklearn(model: Any, x: FloatArray, y: FloatArray) -> Fitted:
    """Fit a scikit-learn regressor, which takes a single output flat."""
    model.fit(x, y[:, 0] if y.shape[1] == 1 else y)
    return lambda rows: np.asarray(model.predict(rows), dtype=np.float64).reshape(len(rows), -1)
