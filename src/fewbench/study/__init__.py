"""Backtests of methods on models whose truth is known."""

from fewbench.study.compare import compare
from fewbench.study.comparison import Comparison
from fewbench.study.splits import KINDS, Split, SplitSettings, make_split

__all__ = ["KINDS", "Comparison", "Split", "SplitSettings", "compare", "make_split"]
