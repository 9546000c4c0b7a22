"""Which tasks of a benchmark represent all of them (BenTo, Zhao et al. 2024)."""

from fewbench.methods.tasks.choosers import (
    CHOOSERS,
    Ordered,
    TaskChooser,
    describe_chooser,
    read_chooser,
)
from fewbench.methods.tasks.matrix import Similarity, TaskMatrix
from fewbench.methods.tasks.selection import TaskSelection, select_tasks
from fewbench.methods.tasks.transferability import Transferability, is_transferability

__all__ = [
    "CHOOSERS",
    "Ordered",
    "Similarity",
    "TaskChooser",
    "TaskMatrix",
    "TaskSelection",
    "Transferability",
    "describe_chooser",
    "is_transferability",
    "read_chooser",
    "select_tasks",
]
