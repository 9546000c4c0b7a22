"""Methods: which items to run, and how to predict the full score from their answers."""

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
from fewbench.methods.catalogue import (
    ADAPTIVE,
    ADVICE,
    CATALOGUE,
    FEW,
    Advice,
    Entry,
    find_method,
)
from fewbench.methods.needs import Extra, Need, extras_of, needs_of, obstacle, supply
from fewbench.methods.static import StaticMethod
from fewbench.methods.subset import Provenance, Subset

__all__ = [
    "ADAPTIVE",
    "ADVICE",
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
