"""All ways of choosing tasks by the names that the command line writes."""

from typing import Any

from fewbench.methods.tasks.drawn import RandomTasks
from fewbench.methods.tasks.facility import BentoLe, BentoSim
from fewbench.methods.tasks.fit import FittedTasks
from fewbench.methods.tasks.listed import ListedTasks
from fewbench.methods.tasks.medoids import TaskMedoids
from fewbench.methods.tasks.ridge import RidgeTasks

CHOOSERS: dict[str, type[Any]] = {
    "bento-sim": BentoSim,
    "bento-le": BentoLe,
    "tasks-medoids": TaskMedoids,
    "tasks-fit": FittedTasks,
    "tasks-ridge": RidgeTasks,
    "tasks-random": RandomTasks,
    "tasks-listed": ListedTasks,
}
