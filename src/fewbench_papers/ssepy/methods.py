"""The methods and parts, by name."""

from typing import Any

from fewbench.methods import Entry, MethodSet
from fewbench_papers.ssepy.difference import Difference
from fewbench_papers.ssepy.strata import Strata

SSEPY = "Fogliato et al. 2024 (SSEPY), arXiv 2406.07320"

ENTRIES = {
    "ssepy": Entry(
        "strata+mean",
        "random items from strata of similar difficulty, Horvitz-Thompson mean",
        SSEPY,
    ),
    "ssepy-neyman": Entry(
        "strata(allocation=neyman)+mean",
        "as ssepy, with more items where right and wrong are equally likely",
        SSEPY,
    ),
    "ssepy-difference": Entry(
        "strata+difference",
        "the items of ssepy, difference estimator over the source models' mean",
        SSEPY,
    ),
}
PARTS: dict[str, dict[str, type[Any]]] = {
    "selector": {"strata": Strata},
    "predictor": {"difference": Difference},
}
METHODS = MethodSet(ENTRIES, PARTS)
