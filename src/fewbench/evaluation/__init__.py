"""Evaluations: ask which items to run, tell the answers, estimate; and how sure that is."""

from fewbench.evaluation.estimate import Estimate
from fewbench.evaluation.session import Evaluation

__all__ = ["Estimate", "Evaluation"]
