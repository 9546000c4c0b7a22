"""Evaluations: ask which items to run, tell the answers, estimate; and how sure that is."""

from fewbench.evaluation.adding import add
from fewbench.evaluation.estimate import Estimate, Estimates
from fewbench.evaluation.evaluation import Evaluation
from fewbench.evaluation.opening import Stop
from fewbench.evaluation.page import estimates_page  # noqa: F401 - pages enter by their types
from fewbench.evaluation.selecting import select_items

__all__ = ["Estimate", "Estimates", "Evaluation", "Stop", "add", "select_items"]
