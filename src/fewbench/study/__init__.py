"""Backtest methods on models with known full scores."""

from fewbench.study.compare import compare
from fewbench.study.comparison import Comparison
from fewbench.study.splits import KINDS, Split, SplitSettings, make_split

__all__ = ["KINDS", "Comparison", "Split", "SplitSettings", "compare", "make_split"]
