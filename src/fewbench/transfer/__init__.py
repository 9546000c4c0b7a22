"""Measure in-context transferability: how a model answers one task after another's exemplars.

The measurement of BenTo (Zhao et al. 2024, arXiv 2410.13804, section 3): for every ordered pair of
tasks, the prompt holds exemplars of the source task and asks questions of the target task.
"""

from fewbench.runners.asking import Limits, Patience, Prices
from fewbench.runners.questions import TEMPLATES, Question, Template, read_template
from fewbench.transfer.answers import transferability
from fewbench.transfer.cost import cost_of
from fewbench.transfer.design import Design
from fewbench.transfer.measuring import measure
from fewbench.transfer.prompts import Task
from fewbench.transfer.sources import read_tasks

__all__ = [
    "TEMPLATES",
    "Design",
    "Limits",
    "Patience",
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
