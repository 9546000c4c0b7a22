"""Decisions from estimates: which model is better, which are best, whether one passes."""

from fewbench.decide.gate import Check, Gate, gate
from fewbench.decide.live import run_versus
from fewbench.decide.rank import Ranked, Ranking, rank
from fewbench.decide.versus import TaskDifference, Versus, versus

__all__ = [
    "Check",
    "Gate",
    "Ranked",
    "Ranking",
    "TaskDifference",
    "Versus",
    "gate",
    "rank",
    "run_versus",
    "versus",
]
