"""fewbench: estimate what a model would score on a whole benchmark from a few of its items."""

from fewbench._version import __version__
from fewbench.errors import FewbenchError
from fewbench.evaluation import Estimate, Evaluation
from fewbench.methods import CATALOGUE, Subset, find_method
from fewbench.scores import (
    Scale,
    Scores,
    from_arrays,
    from_long,
    from_wide,
    load_scores,
    save_scores,
)

__all__ = [
    "CATALOGUE",
    "Estimate",
    "Evaluation",
    "FewbenchError",
    "Scale",
    "Scores",
    "Subset",
    "__version__",
    "find_method",
    "from_arrays",
    "from_long",
    "from_wide",
    "load_scores",
    "save_scores",
]
