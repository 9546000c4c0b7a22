"""Methods: which items to run, and what their answers say of the full score."""

from fewbench.methods.base import (
    Answers,
    FittedPredictor,
    Method,
    Prediction,
    Predictor,
    Selector,
    Session,
)
from fewbench.methods.catalogue import ADAPTIVE, CATALOGUE, Entry, find_method
from fewbench.methods.needs import Need, needs_of
from fewbench.methods.static import StaticMethod
from fewbench.methods.subset import Provenance, Subset

__all__ = [
    "ADAPTIVE",
    "CATALOGUE",
    "Answers",
    "Entry",
    "FittedPredictor",
    "Method",
    "Need",
    "Prediction",
    "Predictor",
    "Provenance",
    "Selector",
    "Session",
    "StaticMethod",
    "Subset",
    "find_method",
    "needs_of",
]
