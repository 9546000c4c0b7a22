"""The methods and parts, by name."""

from typing import Any

from fewbench.methods import Entry, MethodSet
from fewbench.methods.parts import WHOLE
from fewbench_papers.fluid.fluid import Fluid

HOFMANN = "Hofmann et al. 2025 (Fluid Benchmarking), arXiv 2509.11106"

ENTRIES = {
    "fluid": Entry(
        "fluid",
        "random items, then those with most Fisher information; corrected expected scores",
        HOFMANN,
        is_main=True,
    ),
    "fluid-as-printed": Entry(
        "fluid(random=0,estimate=answers)",
        "items with most Fisher information at the current ability; expected scores",
        HOFMANN,
    ),
}
PARTS: dict[str, dict[str, type[Any]]] = {
    WHOLE: {"fluid": Fluid},
}
METHODS = MethodSet(ENTRIES, PARTS)
