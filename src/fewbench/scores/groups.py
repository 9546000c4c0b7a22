"""Groups of tasks, as lm-eval and Inspect have them: which tasks they hold, and how each counts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._types import FloatArray

GROUP = "group"
"""Column of the items with their tasks' groups, outermost first, separated by "/". If groups of
samples of an Inspect task are tasks, the name of the Inspect task, with which their ids begin."""
EQUAL = "equal_groups"
"""Column of the items with those of these groups in which every task counts the same; if there is
one, the tasks of other groups count by their items."""


@dataclass(frozen=True, eq=False)
class TaskGroup:
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


def groups_of(
    items: "pd.DataFrame", tasks: Sequence[str], shares: FloatArray, *, is_macro: bool
) -> Iterator[TaskGroup]:
    """Yield the groups, each before the groups in it.

    A name counts at the first place where it is found, and only there. A task's own name, or that
    of parts of tasks, is none of a group. `shares`, shape (tasks,), are the weights of the tasks in
    the full score; if it is a macro average, so are the groups' scores.
    """
    if GROUP not in items:
        return
    rows = items[[name for name in ("task", GROUP, EQUAL) if name in items]].fillna("").astype(str)
    is_part = harness_tasks(items).to_numpy() != rows["task"].to_numpy()
    rows = rows.assign(is_part=is_part).drop_duplicates()
    rows = rows[~rows["task"].duplicated(keep=False)]  # whole tasks
    paths = {
        task: [path] if is_part else path.split("/")
        for task, path, is_part in zip(rows["task"], rows[GROUP], rows["is_part"], strict=True)
    }
    is_equal = {name for path in rows.get(EQUAL, ()) for name in path.split("/")}
    places = dict.fromkeys(["", *tasks], "a task")
    tasks_in: dict[str, list[int]] = {}
    parts: dict[str, dict[str, None]] = {}
    for task, own_name in enumerate(tasks):
        written = paths.get(own_name, [])
        path = [
            name
            for depth, name in enumerate(written)
            if places.setdefault(name, place := "/".join(written[:depth])) == place
        ]
        for above, below in pairwise([*path, own_name]):
            tasks_in.setdefault(above, []).append(task)
            parts.setdefault(above, {})[below] = None
    if EQUAL in rows:
        shares = items["task"].value_counts()[list(tasks)].to_numpy().astype(np.float64)
    for name, at in tasks_in.items():
        counts = np.zeros(len(tasks))
        counts[at] = 1.0 if is_macro or name in is_equal else shares[at]
        yield TaskGroup(name, tuple(parts[name]), counts / counts.sum())


def benchmarks_of(groups: Sequence[TaskGroup], tasks: Sequence[str]) -> dict[str, FloatArray]:
    """Return the benchmarks that the tasks make up, and how much each task counts in each.

    They are the outermost groups, and tasks of no group; if there is one alone, its parts.
    """
    by_name = {group.name: group for group in groups}
    inner = {part for group in groups for part in group.parts}
    names = [name for name in (*by_name, *tasks) if name not in inner]
    while len(names) == 1 and names[0] in by_name:
        names = [*by_name[names[0]].parts]
    alone = dict(zip(tasks, np.eye(len(tasks)), strict=True))
    weights = {name: by_name[name].weights if name in by_name else alone[name] for name in names}
    return dict(sorted(weights.items(), key=lambda one: int(one[1].argmax())))  # as tasks come


def harness_tasks(items: "pd.DataFrame") -> "pd.Series[Any]":
    """Return each item's task as its harness names it.

    >>> items = pd.DataFrame({"task": ["sums_two", "x"], "group": "sums", "harness": "inspect"},
    ...     index=["sums/1", "x/1"])
    >>> harness_tasks(items).tolist()
    ['sums', 'x']
    """
    tasks = items["task"].astype(str)
    if GROUP not in items or "harness" not in items:
        return tasks
    groups = items[GROUP].fillna("").astype(str)
    is_part = [
        harness == "inspect" and group != "" and str(item).startswith(f"{group}/")
        for item, group, harness in zip(items.index, groups, items["harness"], strict=True)
    ]
    return tasks.mask(np.array(is_part, dtype=bool), groups)
