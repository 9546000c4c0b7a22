"""The methods and parts, by name."""

from typing import Any

from fewbench.methods import Entry, MethodSet
from fewbench.methods.catalogue import ZHANG
from fewbench_papers.anchor_points.clusters import Medoids
from fewbench_papers.anchor_points.lines import AnchorLines

VIVEK = "Vivek et al. 2023 (Anchor Points), arXiv 2309.08638"

ENTRIES = {
    "anchor-points": Entry(
        "medoids(standardise=true)+mean",
        "k-medoids of source scores, cluster-weighted mean",
        VIVEK,
        is_main=True,
    ),
    "anchor-points-correlation": Entry(
        "medoids(metric=correlation)+mean",
        "k-medoids by the correlation of source scores, cluster-weighted mean",
        VIVEK,
    ),
    "anchor-points-predictor": Entry(
        "medoids(metric=absolute-correlation)+anchor-lines",
        "k-medoids by correlation; a line from its best medoid predicts each other item",
        VIVEK,
    ),
    "kmedoids-ridge": Entry(
        "medoids(standardise=true)+answers+ridge",
        "anchor points' items, ridge regression on the answers",
        f"items: {VIVEK}; prediction: {ZHANG}",
    ),
}
PARTS: dict[str, dict[str, type[Any]]] = {
    "selector": {"medoids": Medoids},
    "predictor": {"anchor-lines": AnchorLines},
}
METHODS = MethodSet(ENTRIES, PARTS)
