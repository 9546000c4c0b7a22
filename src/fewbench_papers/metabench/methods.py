"""The methods and parts, by name."""

from typing import Any

from fewbench.methods import Entry, MethodSet
from fewbench_papers.disco.methods import DISCO
from fewbench_papers.metabench.ability import Ability
from fewbench_papers.metabench.subsets import BestOfRandom, Informative

KIPNIS = "Kipnis et al. 2024 (metabench), arXiv 2407.12844"

ENTRIES = {
    "metabench": Entry(
        "informative+ability",
        "informative items of the best random subset; splines in ability and subset score",
        KIPNIS,
        is_main=True,
    ),
    "metabench-unfiltered": Entry(
        "best-of-random+ability",
        "best random subset on held-out source models; splines in ability and subset score",
        f"{KIPNIS}; so in {DISCO}, Table 1",
    ),
    "best-for-validation": Entry(
        "best-of-random+ability(uses=score)",
        "best random subset on held-out source models; a spline in its score",
        f"{KIPNIS}, cross-validated subsampling",
    ),
}
PARTS: dict[str, dict[str, type[Any]]] = {
    "selector": {"best-of-random": BestOfRandom, "informative": Informative},
    "predictor": {"ability": Ability},
}
METHODS = MethodSet(ENTRIES, PARTS)
