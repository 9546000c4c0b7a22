"""Which tasks of a benchmark represent all of them (BenTo, Zhao et al. 2024).

Measure how tasks transfer (`fewbench.bento.measurement`), choose tasks, and judge the choice on
models with known results.
"""

from fewbench.bento.analysis import TaskAnalysis
from fewbench.bento.judgement import TaskResults, Weigh, judge
from fewbench.bento.page import tasks_page  # noqa: F401 - pages enter by their types
from fewbench.bento.selection import TaskSelection, select_tasks
from fewbench.methods.selection.within_tasks import TaskSettings, WithinTasks
from fewbench.methods.tasks.choosers import Ordered, TaskChooser, read_chooser
from fewbench.methods.tasks.matrix import Similarity, TaskMatrix
from fewbench.methods.tasks.transferability import Transferability, is_transferability

__all__ = [
    "Ordered",
    "Similarity",
    "TaskAnalysis",
    "TaskChooser",
    "TaskMatrix",
    "TaskResults",
    "TaskSelection",
    "TaskSettings",
    "Transferability",
    "Weigh",
    "WithinTasks",
    "is_transferability",
    "judge",
    "read_chooser",
    "select_tasks",
]
