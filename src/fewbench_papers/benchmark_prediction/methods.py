"""The methods and parts, by name."""

from typing import Any

from fewbench.methods import Entry, MethodSet
from fewbench.methods.catalogue import ZHANG
from fewbench_papers.benchmark_prediction.choosers import Joint, LassoPath, RidgeSearch
from fewbench_papers.benchmark_prediction.completed import Imputation, LowRankCompletion
from fewbench_papers.benchmark_prediction.weights import JointWeights

ENTRIES = {
    "random-pca": Entry(
        "random+imputation",
        "random items, the others imputed by the source models' principal components",
        ZHANG,
    ),
    "lasso-ridge": Entry(
        "lasso-path+answers+ridge",
        "items that the lasso keeps, ridge regression on the answers",
        ZHANG,
    ),
    "double-optimize": Entry(
        "joint+joint-weights",
        "items and weights optimized together by gradient steps, weighted sum",
        ZHANG,
    ),
    "random-low-rank": Entry(
        "random+completion",
        "random items, low-rank completion of the others",
        "Tipping & Bishop 1999; completion as in UCBE-LRF, Zhou et al. 2025",
    ),
    "random-search-ridge": Entry(
        "ridge-search+answers+ridge",
        "best random subset for ridge regression on the answers, and that regression",
        f"{ZHANG}, Random-Search-Learn",
    ),
}
PARTS: dict[str, dict[str, type[Any]]] = {
    "selector": {"ridge-search": RidgeSearch, "lasso-path": LassoPath, "joint": Joint},
    "predictor": {
        "completion": LowRankCompletion,
        "imputation": Imputation,
        "joint-weights": JointWeights,
    },
}
METHODS = MethodSet(ENTRIES, PARTS)
