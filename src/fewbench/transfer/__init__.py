"""Measure in-context transferability: how a model answers one task after another's exemplars.

The measurement of BenTo (Zhao et al. 2024, arXiv 2410.13804, section 3): for every ordered pair of
tasks, the prompt holds exemplars of the source task and asks questions of the target task.
"""

from fewbench.runners.questions import Question
from fewbench.transfer.answers import transferability
from fewbench.transfer.cost import Limits, Prices, cost_of
from fewbench.transfer.design import Design
from fewbench.transfer.measuring import measure
from fewbench.transfer.prompts import Task
from fewbench.transfer.sources import read_tasks
from fewbench.transfer.templates import TEMPLATES, Template, read_template

__all__ = [
    "TEMPLATES",
    "Design",
    "Limits",
    "Prices",
    "Question",
    "Task",
    "Template",
    "cost_of",
    "measure",
    "read_tasks",
    "read_template",
    "transferability",
]
