"""Methods: which items to run, and how to predict the full score from their answers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fewbench.methods.base import (
    Answers,
    FittedPredictor,
    Method,
    Prediction,
    Predictor,
    Record,
    Selector,
    Session,
)
from fewbench.methods.needs import Extra, Need
from fewbench.methods.static import StaticMethod
from fewbench.methods.subset import Provenance, Subset

if TYPE_CHECKING:
    from fewbench.methods.catalogue import CATALOGUE, Entry, find_method
    from fewbench.methods.functions import function_method
    from fewbench.methods.parts import MethodSet

__all__ = [
    "CATALOGUE",
    "Answers",
    "Entry",
    "Extra",
    "FittedPredictor",
    "Method",
    "MethodSet",
    "Need",
    "Prediction",
    "Predictor",
    "Provenance",
    "Record",
    "Selector",
    "Session",
    "StaticMethod",
    "Subset",
    "find_method",
    "function_method",
]


def __dir__() -> list[str]:
    return __all__


# The catalogue imports every method; recording the answers of a running evaluation needs none.

PLACES = {
    **dict.fromkeys(("CATALOGUE", "Entry", "find_method"), "catalogue"),
    "MethodSet": "parts",
    "function_method": "functions",
}


def __getattr__(name: str) -> Any:
    if name in PLACES:
        return getattr(import_module(f"fewbench.methods.{PLACES[name]}"), name)
    raise AttributeError(f"module 'fewbench.methods' has no attribute {name!r}")
