"""How the items of public results are run: their names in a harness, its metric and filter."""

import random
from dataclasses import dataclass

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench.scores import Scores
from fewbench.scores.table import KEY_FIELD, POSITION, ROUTE

ROW = "row"
"""Column of the items with their rows in the source's file, from 0."""
RUNS = ("lm-eval", "inspect")
"""Harnesses that run chosen items."""
SAMPLED = 1000  # instances that HELM draws of a larger data set


@dataclass(frozen=True)
class Route:
    """How a table is run.

    Parameters
    ----------
    benchmark : str
        Benchmark of the source; "" for all.
    harness : str
        lm-eval or inspect: items get the names that they have there. Another harness: its logs,
        whose items keep their names.
    task : str
        The harness's name of a task; `{task}` is the source's, with `_` for spaces. For logs of a
        different harness, the beginning of the names of the tasks of `order`.
    key : str
        Field of a document that the source names items by.
    order : {"", "lighteval", "helm"}
        Order of the source's rows, confirmed by content. Without one, rows are not document
        numbers.
    size : int
        Documents of the data set that `order` is of.
    metric, filter : str
        As the harness names them.
    inspect : str
        Inspect's task of all tasks, if Inspect runs them as well: its samples have the same ids.
    """

    benchmark: str
    harness: str
    task: str
    key: str = ""
    order: str = ""
    size: int = 0
    metric: str = ""
    filter: str = ""
    inspect: str = ""

    def runs(self, task: str) -> bool:
        """Whether a task of the harness is one of this table.

        Examples
        --------
        >>> Route("", "lm-eval", "mmlu_pro_{task}").runs("mmlu_pro_law")
        True
        """
        before, _, after = self.task.partition("{task}")
        return task == self.task or (
            "{task}" in self.task and task.startswith(before) and task.endswith(after)
        )


def lighteval_order(size: int) -> list[int]:
    """Return the document of each row of lighteval's details, which shuffles with seed 42.

    Confirmed by questions: metabench's 486 of GSM8K and 133 of WinoGrande.

    Examples
    --------
    >>> lighteval_order(5)
    [3, 1, 2, 4, 0]
    """
    order = list(range(size))
    random.Random(42).shuffle(order)
    return order


def helm_sample(size: int) -> list[int]:
    """Return the document of each instance that HELM draws of a data set.

    Confirmed for GSM8K by the correlation of difficulty with the steps of solutions, .51.
    """
    drawn = np.random.RandomState(0).permutation(size)
    return [int(at) for at in drawn[:SAMPLED]]


def documents(order: str, size: int, rows: list[int]) -> list[int] | None:
    """Return the document of each row in a confirmed order, None if the rows do not fit it.

    HELM's ids are positions among all instances of a scenario; those drawn must be its sample.

    Examples
    --------
    >>> documents("lighteval", 5, [0, 4]), documents("lighteval", 5, [5]), documents("", 5, [0])
    ([3, 0], None, None)
    """
    if not rows or len(set(rows)) < len(rows):
        return None
    if order == "lighteval":
        document = lighteval_order(size)
        return [document[row] for row in rows] if 0 <= min(rows) <= max(rows) < size else None
    if order == "helm":
        sample = helm_sample(size)
        first = min(rows) - min(sample)  # training instances come before
        numbers = [row - first for row in rows]
        return numbers if sorted(numbers) == sorted(sample) else None
    return None


def routed(scores: Scores, route: Route | None) -> tuple[Scores, tuple[str, ...]]:
    """Return scores whose items say how they are run, and a note on the documents' numbers."""
    scores = _by_row(scores) if "harness" in scores.items else scores
    notes: list[str] = []
    if route is not None and route.order:
        scores, note = _numbered(scores, route)
        notes.append(note)
    elif ROW in scores.items:
        notes.append("rows of the source are in no confirmed order: do not run items by their row")
    is_numbered = POSITION in scores.items or (route is not None and not route.order)
    if route is None or route.harness not in RUNS or not is_numbered:
        return scores, tuple(notes)
    items = scores.items
    own_ids = [str(item) for item in items.index]
    named = [str(task).replace(" ", "_") for task in items["task"]]
    tasks = [task if route.runs(task) else route.task.format(task=task) for task in named]
    if route.harness == "lm-eval":
        ids = own_ids if not route.order else [str(at) for at in items[POSITION]]
        items = items.set_axis(
            [f"{task}/{own_id}" for task, own_id in zip(tasks, ids, strict=True)]
        )
    elif "sample_id" not in items:
        short = [
            own_id.removeprefix(f"{task}/")
            for own_id, task in zip(own_ids, items["task"], strict=True)
        ]
        items = items.assign(sample_id=short)
    items = items.drop(columns=items.columns.intersection([KEY_FIELD, "metric", "filter"]))
    facts = {KEY_FIELD: route.key, "metric": route.metric, "filter": route.filter}
    items = items.assign(**{name: text for name, text in facts.items() if text})
    return scores.changed(items=items.assign(task=tasks, **{ROUTE: route.harness})), tuple(notes)


def _by_row(scores: Scores) -> Scores:
    """Return scores of logs without false document numbers: other harnesses' are their rows."""
    others = set(scores.items["harness"]) & {"lighteval", "helm"}
    if not others or POSITION not in scores.items:
        return scores
    return scores.changed(items=scores.items.rename(columns={POSITION: ROW}))


def _numbered(scores: Scores, route: Route) -> tuple[Scores, str]:
    """Return scores with document numbers where rows are in a confirmed order, and a note."""
    items = scores.items
    mine = items["task"].astype(str).str.startswith(route.task) | (route.harness in RUNS)
    rows = items.loc[mine, ROW] if ROW in items else pd.Series(dtype="Int64")
    found = None
    if len(rows) and not rows.isna().any():
        found = documents(route.order, route.size, [int(row) for row in rows])
    if found is None:
        return scores, (
            f"rows do not fit {route.order}'s order of {route.size:,} documents, so items have no "
            "document numbers"
        )
    numbers = pd.Series(pd.NA, index=items.index, dtype="Int64")
    numbers[mine] = found
    column = numbers if numbers.isna().any() else numbers.astype(np.int64)
    note = (
        f"doc_id is the number of the document: rows are in {route.order}'s order. The source has "
        "no texts to check it by"
    )
    return scores.changed(items=items.assign(**{POSITION: column})), note
