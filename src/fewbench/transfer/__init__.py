"""Measuring in-context transferability: how well a model answers one task shown another's examples.

The measurement of BenTo (Zhao et al. 2024, arXiv 2410.13804, section 3): for every ordered pair of
tasks, questions of the target task are asked behind exemplars of the source task.
"""

from fewbench.transfer.cost import Limits, Prices, cost_of
from fewbench.transfer.design import Design
from fewbench.transfer.measuring import Patience, measure
from fewbench.transfer.result import transferability
from fewbench.transfer.sources import read_tasks
from fewbench.transfer.task import Question, Task
from fewbench.transfer.templates import TEMPLATES, Template, read_template

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
