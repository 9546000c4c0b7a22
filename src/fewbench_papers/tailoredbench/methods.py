"""The methods and parts, by name."""

from typing import Any

from fewbench.methods import Entry, MethodSet
from fewbench.methods.parts import WHOLE
from fewbench_papers.tailoredbench.tailored import Tailored

TAILORED = "Yuan et al. 2025, TailoredBench"

ENTRIES = {
    "tailored": Entry(
        "tailored",
        "items chosen by the source models that answer like the target; calibrated clusters",
        TAILORED,
        is_main=True,
    ),
    "tailored-as-printed": Entry(
        "tailored(printed=true)",
        "as tailored, by the paper's equations instead of its program",
        TAILORED,
    ),
}
PARTS: dict[str, dict[str, type[Any]]] = {
    WHOLE: {"tailored": Tailored},
}
METHODS = MethodSet(ENTRIES, PARTS)
