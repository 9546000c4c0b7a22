"""The sources' Gaussian process, which fewbench's own selector, predictor and method share."""

from collections.abc import Iterable

import numpy as np

from fewbench._names import counted
from fewbench._seeds import child_seed
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.kriging import FEW, KrigingModel, Run, fit_kriging
from fewbench.errors import MethodError
from fewbench.methods.base import Prediction
from fewbench.methods.needs import Need
from fewbench.scores import Scores

NEEDS = (
    Need("sources", 2, "items are told apart by how sources differ on them", required=True),
    Need(
        "distinct sources",
        FEW,
        "few sources say little of how items hang together: items are a systematic sample by "
        "difficulty, and the estimate is close to its mean",
    ),
)


def source_kriging(
    scores: Scores, seed: int, budget: int, include: IntArray | None = None
) -> KrigingModel:
    """Fit the sources for the full score and every task; `include` are items that may be asked."""
    if scores.n_models < 2:
        raise MethodError(
            f"fewbench learns from at least 2 source models, there are {scores.n_models}"
        )
    weights = np.vstack([scores.item_weights, scores.task_weights.T])
    rng = np.random.default_rng(child_seed(seed, 8))
    return fit_kriging(scores.filled, weights, rng, budget, include)


def prediction_of(model: KrigingModel, runs: Iterable[Run], tasks: bool) -> Prediction:
    """Return the estimates of runs, one row each."""
    found = [run.estimate() for run in runs]
    scores = np.array([one.scores for one in found])
    few = (
        f"{counted(model.distinct, 'distinct source model')}, and {FEW} are needed to choose items "
        "well: they are a systematic sample, and the estimate is close to its mean"
    )
    return Prediction(
        scores[:, 0],
        scores[:, 1:] if tasks else None,
        notes=(few,) if model.is_sampled else (),
        spread=np.array([one.errors[0] for one in found]),
    )


def item_costs(scores: Scores, column: str | None) -> FloatArray | None:
    """Return the cost of every item, shape (items,); MethodError if the column does not say it."""
    if column is None:
        return None
    if column not in scores.items:
        raise MethodError(
            f"the items have no column {column!r}",
            hint=f"they have {', '.join(map(str, scores.items.columns)) or 'none'}",
        )
    import pandas as pd

    costs = pd.to_numeric(scores.items[column], errors="coerce").to_numpy(dtype=np.float64)
    wrong = ~(np.isfinite(costs) & (costs > 0))
    if wrong.any():
        at = int(wrong.argmax())
        raise MethodError(
            f"the cost of item {scores.items.index[at]!r} in column {column!r} is {costs[at]}",
            hint="every item needs a cost above 0",
        )
    return costs
