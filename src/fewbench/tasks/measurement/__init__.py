"""Measure in-context transferability: how a model answers one task after another's exemplars.

The measurement of BenTo (Zhao et al. 2024, arXiv 2410.13804, section 3): for every ordered pair of
tasks, the prompt holds exemplars of the source task and asks questions of the target task.
"""

from fewbench.runners.questions import Question
from fewbench.tasks.measurement.answers import transferability
from fewbench.tasks.measurement.cost import Limits, Prices, cost_of
from fewbench.tasks.measurement.design import Design
from fewbench.tasks.measurement.measuring import measure
from fewbench.tasks.measurement.prompts import Task
from fewbench.tasks.measurement.sources import read_tasks
from fewbench.tasks.measurement.templates import TEMPLATES, Template, read_template

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
