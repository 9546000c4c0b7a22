"""Backtest methods on models with known full scores."""

from fewbench.study.compare import compare
from fewbench.study.comparison import Comparison
from fewbench.study.comparison_page import comparison_page  # noqa: F401 - pages enter by their types
from fewbench.study.forecast import Forecast, Plan
from fewbench.study.plan import plan
from fewbench.study.search_study import SearchStudy, compare_best
from fewbench.study.splits import KINDS, Split, SplitSettings, make_split

__all__ = [
    "KINDS",
    "Comparison",
    "Forecast",
    "Plan",
    "SearchStudy",
    "Split",
    "SplitSettings",
    "compare",
    "compare_best",
    "make_split",
    "plan",
]
