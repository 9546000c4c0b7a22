"""fewbench: estimate what a model would score on a whole benchmark from a few of its items."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fewbench._version import __version__

if TYPE_CHECKING:
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

# Where each name is. A module is imported when one of its names is first used: pandas, SciPy and
# pydantic, which most modules need, take longer to import than a program may want to wait.
_MODULES = {
    "CATALOGUE": "methods",
    "Estimate": "evaluation",
    "Evaluation": "evaluation",
    "FewbenchError": "errors",
    "Scale": "scores",
    "Scores": "scores",
    "Subset": "methods",
    "find_method": "methods",
    "from_arrays": "scores",
    "from_long": "scores",
    "from_wide": "scores",
    "load_scores": "scores",
    "save_scores": "scores",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"fewbench.{_MODULES[name]}"), name)
    if name in _MODULES.values():
        return import_module(f"fewbench.{name}")
    raise AttributeError(f"module 'fewbench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_MODULES.values()})
