"""Which tasks of a benchmark represent all of them (BenTo, Zhao et al. 2024).

Measure how tasks transfer (`fewbench_papers.bento.measurement`), choose tasks, and judge the choice
on models with known results.
"""

from fewbench_papers.bento.analysis import TaskAnalysis
from fewbench_papers.bento.choosers import Ordered, TaskChooser, read_chooser
from fewbench_papers.bento.judgement import TaskResults, Weigh, judge
from fewbench_papers.bento.matrix import Similarity, TaskMatrix
from fewbench_papers.bento.page import tasks_page  # noqa: F401 - pages enter by their types
from fewbench_papers.bento.selection import TaskSelection, select_tasks
from fewbench_papers.bento.transferability import Transferability, is_transferability
from fewbench_papers.bento.within_tasks import TaskSettings, WithinTasks

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
