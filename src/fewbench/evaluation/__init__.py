"""Evaluations: ask which items to run, tell the answers, estimate; and how sure that is."""

from fewbench.evaluation.adding import add
from fewbench.evaluation.estimate import Estimate, Estimates
from fewbench.evaluation.evaluation import Evaluation, select_items
from fewbench.evaluation.opening import Stop

__all__ = ["Estimate", "Estimates", "Evaluation", "Stop", "add", "select_items"]
