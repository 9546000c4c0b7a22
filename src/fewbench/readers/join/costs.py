"""What answers cost, as logs state it: the mean of each item, and the cost of a model's answers."""

import json
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


def answer_costs(task: JoinedTask) -> Iterator[str]:
    """Yield for each item what each model's answers to it cost in money, as JSON; "" if unknown."""
    costs: list[dict[str, float]] = [{} for _ in task.items.ids]
    for used in task.merged.taken:
        if MONEY in _stated(used.run):
            own = used.run.columns[COST + MONEY][used.rows]
            for at, cost in zip(used.columns.tolist(), own.tolist(), strict=True):
                costs[at][used.run.model] = costs[at].get(used.run.model, 0.0) + cost
    for of_item in costs:
        known = {model: cost for model, cost in of_item.items() if not np.isnan(cost)}
        yield json.dumps(known) if known else ""
