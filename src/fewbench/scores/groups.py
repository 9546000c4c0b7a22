"""Groups of tasks, as lm-eval and Inspect have them: which tasks they hold, and how each counts."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from fewbench._types import FloatArray

if TYPE_CHECKING:
    from fewbench.scores.benchmark import ItemTable

GROUP = "group"
"""Column of the items with their tasks' groups, outermost first, separated by "/"."""
EQUAL = "equal_groups"
"""Column of the items with those of these groups in which every task counts the same; if there is
one, the tasks of other groups count by their items."""


@dataclass(frozen=True, eq=False)
class Group:
    """A group of tasks.

    Attributes
    ----------
    name : str
    parts : tuple of str
        The names of the tasks and groups directly in it.
    weights : ndarray, shape (tasks,)
        How much each task counts in its score, sum 1; 0 for tasks that it does not hold.
    """

    name: str
    parts: tuple[str, ...]
    weights: FloatArray


def groups_of(table: "ItemTable") -> Iterator[Group]:
    """Yield the groups, each before the groups in it.

    A name counts at the first place where it is found, and only there. A task's own name, or that
    of parts of tasks, is none of a group.
    """
    if GROUP not in table.items:
        return
    columns = [name for name in ("task", GROUP, EQUAL) if name in table.items]
    rows = table.items[columns].fillna("").astype(str).drop_duplicates()
    rows = rows[~rows["task"].duplicated(keep=False)]  # whole tasks
    paths = dict(zip(rows["task"], rows[GROUP], strict=True))
    is_equal = {name for path in rows.get(EQUAL, ()) for name in path.split("/")}
    places = dict.fromkeys(["", *table.tasks], "a task")
    tasks_in: dict[str, list[int]] = {}
    parts: dict[str, dict[str, None]] = {}
    for task, own_name in enumerate(table.tasks):
        written = paths.get(own_name, "").split("/")
        path = [
            name
            for depth, name in enumerate(written)
            if places.setdefault(name, place := "/".join(written[:depth])) == place
        ]
        for above, below in pairwise([*path, own_name]):
            tasks_in.setdefault(above, []).append(task)
            parts.setdefault(above, {})[below] = None
    sizes = np.bincount(table.task_of, None if EQUAL in rows else table.item_weights)
    for name, at in tasks_in.items():
        counts = np.zeros(len(table.tasks))
        equal = name in is_equal or table.average == "macro"
        counts[at] = 1.0 if equal else sizes[at]
        yield Group(name, tuple(parts[name]), counts / counts.sum())
