"""The methods and parts, by name."""

from typing import Any

from fewbench.methods import Entry, MethodSet
from fewbench_papers.tinybenchmarks.abilities import GPIRT, PIRT
from fewbench_papers.tinybenchmarks.anchors import IRTAnchors

POLO = "Polo et al. 2024 (tinyBenchmarks), arXiv 2402.14992"

ENTRIES = {
    "anchor-irt": Entry(
        "irt-anchors+mean",
        "k-means of item response parameters, cluster-weighted mean",
        POLO,
    ),
    "p-irt": Entry(
        "irt-anchors+p-irt",
        "the items of anchor-irt; the item response model predicts the others",
        POLO,
    ),
    "gp-irt-anchor": Entry(
        "irt-anchors+gp-irt",
        "the items of anchor-irt; weighted mean of anchor-irt and p-irt",
        POLO,
        is_main=True,
    ),
    "gp-irt-random": Entry(
        "random+gp-irt",
        "random items; weighted mean of their mean and p-irt",
        POLO,
    ),
}
PARTS: dict[str, dict[str, type[Any]]] = {
    "selector": {"irt-anchors": IRTAnchors},
    "predictor": {"p-irt": PIRT, "gp-irt": GPIRT},
}
METHODS = MethodSet(ENTRIES, PARTS)
