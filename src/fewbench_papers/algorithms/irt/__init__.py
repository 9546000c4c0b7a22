"""Item response theory: abilities of models and parameters of items."""

from fewbench_papers.algorithms.irt.fit import choose_dimensions, fit_irt
from fewbench_papers.algorithms.irt.model import IrtAbilities, ItemResponse, best_cuts, binary

__all__ = [
    "IrtAbilities",
    "ItemResponse",
    "best_cuts",
    "binary",
    "choose_dimensions",
    "fit_irt",
]
