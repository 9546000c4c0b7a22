"""Measure in-context transferability: how a model answers one task after another's exemplars.

The measurement of BenTo (Zhao et al. 2024, arXiv 2410.13804, section 3): for every ordered pair of
tasks, the prompt holds exemplars of the source task and asks questions of the target task.
"""

from fewbench_papers.bento.measurement.cost import Limits, Prices
from fewbench_papers.bento.measurement.design import Design
from fewbench_papers.bento.measurement.measuring import expected_cost, measure
from fewbench_papers.bento.measurement.model import HarnessModel
from fewbench_papers.bento.measurement.prompts import MeasuredTask
from fewbench_papers.bento.measurement.result import Measurement
from fewbench_papers.bento.measurement.sources import read_tasks
from fewbench_papers.bento.measurement.templates import TEMPLATES, Template, read_template

__all__ = [
    "TEMPLATES",
    "Design",
    "HarnessModel",
    "Limits",
    "MeasuredTask",
    "Measurement",
    "Prices",
    "Template",
    "expected_cost",
    "measure",
    "read_tasks",
    "read_template",
]
