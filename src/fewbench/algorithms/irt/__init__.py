"""Item response theory: abilities of models and parameters of items."""

from fewbench.algorithms.irt.binary import best_cuts, binary
from fewbench.algorithms.irt.dimensions import choose_dimensions
from fewbench.algorithms.irt.fit import Estimation, fit_irt
from fewbench.algorithms.irt.model import Abilities, Form, ItemResponse

__all__ = [
    "Abilities",
    "Estimation",
    "Form",
    "ItemResponse",
    "best_cuts",
    "binary",
    "choose_dimensions",
    "fit_irt",
]
