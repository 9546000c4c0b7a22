"""Decisions from estimates: which model is better, and whether one passes."""

from fewbench.decide.gate import Check, Gate, gate
from fewbench.decide.versus import TaskDifference, Versus, versus

__all__ = ["Check", "Gate", "TaskDifference", "Versus", "gate", "versus"]
