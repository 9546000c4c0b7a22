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
    from fewbench.methods.catalogue import CATALOGUE, find_method

__all__ = [
    "CATALOGUE",
    "Answers",
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
    "find_method",
]

# The catalogue imports every method; recording the answers of a running evaluation needs none.


def __getattr__(name: str) -> Any:
    if name in ("CATALOGUE", "find_method"):
        return getattr(import_module("fewbench.methods.catalogue"), name)
    raise AttributeError(f"module 'fewbench.methods' has no attribute {name!r}")
