"""Which tasks of a benchmark represent all of them (BenTo, Zhao et al. 2024).

Measure how tasks transfer (`fewbench.tasks.measurement`), choose tasks, and judge the choice on
models with known results. Methods use the choosers; what judges them is imported when it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fewbench.tasks.choosers import (
    CHOOSERS,
    Ordered,
    TaskChooser,
    describe_chooser,
    read_chooser,
)
from fewbench.tasks.matrix import Similarity, TaskMatrix
from fewbench.tasks.selection import TaskSelection, select_tasks
from fewbench.tasks.transferability import Transferability, is_transferability

if TYPE_CHECKING:
    from fewbench.tasks.analysis import TaskAnalysis
    from fewbench.tasks.judgement import Judgement, TaskResults, Weigh, judge

__all__ = [
    "CHOOSERS",
    "Judgement",
    "Ordered",
    "Similarity",
    "TaskAnalysis",
    "TaskChooser",
    "TaskMatrix",
    "TaskResults",
    "TaskSelection",
    "Transferability",
    "Weigh",
    "describe_chooser",
    "is_transferability",
    "judge",
    "read_chooser",
    "select_tasks",
]

_PLACES = dict.fromkeys(("Judgement", "TaskResults", "Weigh", "judge"), "judgement")
_PLACES["TaskAnalysis"] = "analysis"


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(import_module(f"fewbench.tasks.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'fewbench.tasks' has no attribute {name!r}")
