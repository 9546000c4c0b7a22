"""What answers cost, as logs state it: the mean of each item, and the cost of a model's answers."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from fewbench._names import counted, some
from fewbench._types import FloatArray
from fewbench.readers.harness import COST, LogRun
from fewbench.readers.join.task import JoinedTask
from fewbench.scores.costs import LACKING

MONEY = "cost"


def _stated(run: LogRun) -> list[str]:
    """Return the costs that a run states of its answers."""
    names = (name for name in run.columns if name.startswith(COST))
    return [
        name.removeprefix(COST) for name in names if np.isnan(run.columns[name]).mean() <= LACKING
    ]


def item_costs(tasks: Sequence[JoinedTask]) -> tuple[dict[str, FloatArray], list[str]]:
    """Return the mean cost of an answer to each item by name (NaN where unknown), and a note.

    Models count equally, however often they answered an item.
    """
    n_items = sum(len(task.items.ids) for task in tasks)
    sums: dict[str, FloatArray] = defaultdict(lambda: np.zeros((2, n_items)))
    models: dict[str, set[str]] = defaultdict(set)
    start = 0
    for task in tasks:
        for used in task.merged.taken:
            for name in _stated(used.run):
                columns, own = start + used.columns, used.run.columns[COST + name][used.rows]
                columns, own = columns[~np.isnan(own)], own[~np.isnan(own)]
                times = np.bincount(columns, minlength=n_items)
                with np.errstate(invalid="ignore"):
                    mean = np.bincount(columns, own, n_items) / times
                sums[name] += np.where(times > 0, [mean, np.ones(n_items)], 0.0)
                models[name].add(used.run.model)
        start += len(task.items.ids)
    with np.errstate(invalid="ignore"):
        means = {name: total / count for name, (total, count) in sorted(sums.items())}
    notes = [
        f"{some(sorted(names))} of an item: the mean of an answer, by the logs of "
        f"{counted(n_models, 'model')}"
        for n_models in sorted({len(those) for those in models.values()})
        if (names := [name for name, those in models.items() if len(those) == n_models])
    ]
    return means, notes


def answer_costs(tasks: Sequence[JoinedTask]) -> Iterator[tuple[str, int, float]]:
    """Yield what answers cost in money: (model, column of the item, cost), NaN where unknown."""
    start = 0
    for task in tasks:
        for used in task.merged.taken:
            if MONEY in _stated(used.run):
                own = used.run.columns[COST + MONEY][used.rows]
                for at, cost in zip(used.columns.tolist(), own.tolist(), strict=True):
                    yield used.run.model, start + at, cost
        start += len(task.items.ids)
