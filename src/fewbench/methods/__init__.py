"""Methods: which items to run, and how to predict the full score from their answers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fewbench.methods.base import (
    AUTO,
    Answers,
    FittedPredictor,
    Method,
    Prediction,
    Predictor,
    Record,
    Selector,
    Session,
)
from fewbench.methods.needs import Extra, Need, extras_of, needs_of, obstacle, supply
from fewbench.methods.static import StaticMethod
from fewbench.methods.subset import Provenance, Subset

if TYPE_CHECKING:
    from fewbench.methods.catalogue import (
        ADAPTIVE,
        ADVICE,
        CATALOGUE,
        FEW,
        Advice,
        Entry,
        find_method,
    )

__all__ = [
    "ADAPTIVE",
    "ADVICE",
    "AUTO",
    "CATALOGUE",
    "FEW",
    "Advice",
    "Answers",
    "Entry",
    "Extra",
    "FittedPredictor",
    "Method",
    "Need",
    "Prediction",
    "Predictor",
    "Provenance",
    "Record",
    "Selector",
    "Session",
    "StaticMethod",
    "Subset",
    "extras_of",
    "find_method",
    "needs_of",
    "obstacle",
    "supply",
]

# The catalogue imports every method; recording the answers of a running evaluation needs none.
_OF_CATALOGUE = ("ADAPTIVE", "ADVICE", "CATALOGUE", "FEW", "Advice", "Entry", "find_method")


def __getattr__(name: str) -> Any:
    if name in _OF_CATALOGUE:
        return getattr(import_module("fewbench.methods.catalogue"), name)
    raise AttributeError(f"module 'fewbench.methods' has no attribute {name!r}")
