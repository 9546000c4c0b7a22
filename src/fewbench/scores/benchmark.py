"""Benchmark: the items that models are scored on, without any model."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from fewbench._lazy import pandas as pd
from fewbench._names import counted, same_text, some
from fewbench._types import FloatArray, IntArray
from fewbench.errors import ScoresError
from fewbench.scores.groups import TaskGroup, benchmarks_of, groups_of
from fewbench.scores.scale import Scale

Average = Literal["micro", "macro"]
AVERAGES: dict[Average, str] = {"micro": "mean over items", "macro": "mean over task scores"}


WEIGHT = "weight"
"""Column of the items with their weights in the full score, or in their tasks' scores if that is
a macro average."""
OWN_ID = "sample_id"
"""Column of the items with the ids that samples have in Inspect."""


CLUSTER = "cluster"
"""Column of the items that says which of them belong together, such as questions on one passage."""


FEW = 8
"""Labels that are looked up one by one."""


PREDICTION = "prediction:"
"""Begins the names of columns of the items with what a model predicts, known before the right
answers are."""


PROXY = "proxy:"
"""Begins the names of columns of the items with what says, before it is known, how likely models
are to be right: a model's confidence, its margin, what others say."""


COHORT = "cohort"
"""Column of the items that says with which extension each came: 0 for the first ones."""


def average_notes(average: Average) -> list[str]:
    """Return a sentence that says what a full score is, unless it is the mean over items.

    >>> average_notes("macro"), average_notes("micro")
    (['A full score is the mean over task scores (macro).'], [])
    """
    return [f"A full score is the {AVERAGES[average]} (macro)."] * (average == "macro")


class ItemTable:
    """What `Benchmark` and `Scores` share: items, their tasks, and weights of the full score."""

    items: "pd.DataFrame"
    average: Average

    def _check_items(self) -> None:
        check_labels(self.items.index, "item")
        if "task" not in self.items:
            raise ScoresError("the items have no column 'task'", hint="give every item a task")
        tasks = self.items["task"]
        if _not_text(tasks):
            bad = [item for item, task in tasks.items() if _not_text([task])]
            raise ScoresError(
                f"{counted(len(bad), 'item')} without a task: {some(bad)}",
                hint="give every item a task",
            )
        check_forms(pd.Index(tasks.unique()), "task")
        if WEIGHT in self.items:
            _check_weights(self.items[WEIGHT])
        if self.average not in ("micro", "macro"):
            raise ScoresError(
                f"unknown average {self.average!r}", hint="use micro or macro", kind="unknown"
            )

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @cached_property
    def item_ids(self) -> NDArray[np.object_]:
        """Item ids, in order."""
        return np.array(self.items.index, dtype=object)

    def own_ids(self, items: Iterable[str]) -> dict[str, str]:
        """Return the ids that samples have in Inspect, of the items that are such samples.

        After the name of the task, if there are several: samples are numbered in each.
        """
        if OWN_ID not in self.items:
            return {}
        rows = self.items.loc[list(items), ["task", OWN_ID]].astype(str)
        named = zip(rows.index, rows["task"], rows[OWN_ID], strict=True)
        is_one = len(self.tasks) == 1
        return {item: own if is_one else f"{task}/{own}" for item, task, own in named if own}

    @cached_property
    def tasks(self) -> list[str]:
        """Task names, in order of first appearance."""
        return [str(task) for task in pd.unique(self.items["task"])]

    @cached_property
    def groups(self) -> tuple[TaskGroup, ...]:
        """Groups of tasks, each before the groups in it."""
        is_macro = self.average == "macro"
        return tuple(groups_of(self.items, self.tasks, self.task_shares, is_macro=is_macro))

    @cached_property
    def benchmarks(self) -> dict[str, FloatArray]:
        """The outermost groups, beside tasks of no group, each with weights of all tasks."""
        return benchmarks_of(self.groups, self.tasks)

    @cached_property
    def task_shares(self) -> FloatArray:
        """Weight of each task in the full score, shape (tasks,), sum 1."""
        return np.bincount(self.task_of, self.item_weights).astype(np.float64)

    @cached_property
    def cluster_of(self) -> IntArray | None:
        """Each item's cluster as a number, shape (items,), or None if no two items belong together.

        An item without a cluster is one by itself.
        """
        if CLUSTER not in self.items:
            return None
        codes, names = pd.factorize(self.items[CLUSTER].replace("", None))
        alone = np.flatnonzero(codes < 0)
        codes = codes.astype(np.intp)
        codes[alone] = len(names) + np.arange(len(alone))
        return codes if len(np.unique(codes)) < self.n_items else None

    @cached_property
    def task_of(self) -> IntArray:
        """Each item's task as a position in `tasks`, shape (items,)."""
        return pd.Index(self.tasks).get_indexer(pd.Index(self.items["task"])).astype(np.intp)

    @cached_property
    def item_weights(self) -> FloatArray:
        """Weight of each item in the full score, shape (items,), sum 1."""
        if self.average == "micro":
            if WEIGHT not in self.items:
                return np.full(self.n_items, 1.0 / self.n_items)
            return np.asarray(self._given_weights / self._given_weights.sum())
        totals = np.bincount(self.task_of, self._given_weights)
        return np.asarray(self._given_weights / (len(self.tasks) * totals[self.task_of]))

    @cached_property
    def _given_weights(self) -> FloatArray:
        if WEIGHT not in self.items:
            return np.ones(self.n_items)
        return self.items[WEIGHT].to_numpy(dtype=np.float64)

    @cached_property
    def cohort_of(self) -> IntArray:
        """The number of the extension that each item came with, shape (items,)."""
        if COHORT not in self.items:
            return np.zeros(self.n_items, dtype=np.intp)
        return self.items[COHORT].to_numpy(dtype=np.intp)

    @cached_property
    def proxies(self) -> FloatArray:
        """Columns of the items that tell of the scores, shape (items, proxies)."""
        names = [name for name in self.items if str(name).startswith(PROXY)]
        numbers = self.items[names].apply(pd.to_numeric, errors="coerce").to_numpy(np.float64)
        for name, column in zip(names, numbers.T, strict=True):
            if len(bad := np.flatnonzero(~np.isfinite(column))):
                raise ScoresError(
                    f"{counted(len(bad), 'item')} without a number in the column {name!r}: "
                    f"{some(self.item_ids[bad])}",
                    hint="give every item a number there, or rename the column",
                )
        return np.asarray(numbers)

    @cached_property
    def counts_equally(self) -> bool:
        """Whether every item has the same weight in the full score."""
        return self.average == "micro" and bool(np.ptp(self._given_weights) == 0)

    @cached_property
    def task_weights(self) -> FloatArray:
        """Weight of each item in each task's score, shape (items, tasks), columns of sum 1."""
        member = np.equal.outer(self.task_of, np.arange(len(self.tasks))).astype(np.float64)
        member *= self._given_weights[:, None]
        weights: FloatArray = member / member.sum(axis=0)
        weights.flags.writeable = False
        return weights

    def task_means(self, values: FloatArray) -> FloatArray:
        """Average scores of these items, shape (rows, items), by task: shape (rows, tasks)."""
        return np.asarray(values @ self.task_weights)

    def positions(self, items: Iterable[str]) -> IntArray:
        """Return the positions of item ids; ScoresError names unknown ids."""
        return positions_in(self.items.index, list(items), "item")


@dataclass(frozen=True, eq=False)
class Benchmark(ItemTable):
    """Items, their tasks and attributes, and the definition of the full score.

    Parameters
    ----------
    items : DataFrame
        One row per item, indexed by item id. Column `task`, and `weight` if items count
        differently; other columns are kept.
    scale : Scale
        The user's scale.
    average : {"micro", "macro"}
        Full score: the mean over items, or the mean of the task means.

    Raises
    ------
    ScoresError
        For missing or repeated ids, or items without a task.

    Examples
    --------
    >>> import pandas as pd
    >>> items = pd.DataFrame({"task": ["x", "x", "y"]}, index=["q1", "q2", "q3"])
    >>> benchmark = Benchmark(items, average="macro")
    >>> benchmark
    Benchmark: 3 items, 2 tasks
    >>> benchmark.item_weights.tolist()
    [0.25, 0.25, 0.5]
    """

    items: "pd.DataFrame"
    scale: Scale = field(default_factory=Scale)
    average: Average = "micro"

    def __post_init__(self) -> None:
        self._check_items()

    def __repr__(self) -> str:
        """Return the size in a line."""
        return f"Benchmark: {counted(self.n_items, 'item')}, {counted(len(self.tasks), 'task')}"


def retired_note(before: int, now: int) -> tuple[str, ...]:
    """Return a note on the items that are retired, which scores do not count; () if none is.

    >>> retired_note(6000, 5988), retired_note(60, 60)
    (('12 items of 6,000 retired: scores are of the other 5,988',), ())
    """
    n = before - now
    return (f"{counted(n, 'item')} of {before:,} retired: scores are of the other {now:,}",) * bool(
        n
    )


def changes(before: ItemTable, now: ItemTable) -> list[str]:
    """Return what differs between two versions of a benchmark, in words.

    Examples
    --------
    >>> items = pd.DataFrame({"task": ["x", "x", "y"]}, index=["q1", "q2", "q3"])
    >>> changes(Benchmark(items), Benchmark(items.iloc[1:].assign(task="y"), average="macro"))
    ["1 item is gone: 'q1'", "1 changed task: 'q2'", 'the average is macro, was micro']
    """
    old, new = before.items, now.items
    both = old.index.intersection(new.index)
    lines = [
        f"{counted(len(ids), 'item')} {'is' if len(ids) == 1 else 'are'} {what}: {some(ids)}"
        for ids, what in ((old.index.difference(both), "gone"), (new.index.difference(both), "new"))
        if len(ids)
    ]
    for name in dict.fromkeys([*old.columns, *new.columns]):
        if len(differ := changed_items(old.loc[both], new.loc[both], name)):
            lines.append(f"{counted(len(differ), 'changed ' + name)}: {some(differ)}")
    if before.average != now.average:
        lines.append(f"the average is {now.average}, was {before.average}")
    return lines or ["its items have a different order or scale"]


def changed_items(before: "pd.DataFrame", now: "pd.DataFrame", name: str) -> "pd.Index[Any]":
    """Return the items that have a different value in a column; both frames have the same items."""
    was, has = (table.reindex(columns=[name])[name].astype(object) for table in (before, now))
    return before.index[((was != has) & ~(was.isna() & has.isna())).to_numpy(bool)]


def _check_weights(weights: "pd.Series[Any]") -> None:
    numbers = pd.to_numeric(weights, errors="coerce").to_numpy(dtype=np.float64)
    if len(bad := np.flatnonzero(~(np.isfinite(numbers) & (numbers > 0)))):
        raise ScoresError(
            f"{counted(len(bad), 'item')} without a weight above 0: {some(weights.index[bad])}",
            hint=f"give every item a number above 0 in the column {WEIGHT}, or leave it out",
        )


def check_labels(labels: "pd.Index[Any]", kind: str) -> None:
    """Raise ScoresError unless the labels are unique, non-empty strings."""
    bad = _not_text(labels)
    if bad:
        raise ScoresError(
            f"{counted(len(bad), f'{kind} id is', f'{kind} ids are')} empty or not text: "
            f"{some(bad)}",
            hint=f"give every {kind} a name",
            kind="name",
        )
    if not labels.is_unique:
        twice = labels[labels.duplicated()].unique()
        raise ScoresError(
            f"{counted(len(twice), f'{kind} id appears', f'{kind} ids appear')} more than once: "
            f"{some(twice)}",
            hint=f"give every {kind} its own id",
            kind="repeated",
        )
    check_forms(labels, kind)


def check_forms(labels: "pd.Index[Any]", kind: str) -> None:
    """Raise ScoresError if two labels are the same text in two Unicode forms."""
    names = np.asarray(labels, dtype=object).tolist()
    if "".join(names).isascii():  # nearly always, and each part of a table is checked
        return
    if (pair := same_text(names)) is not None:
        raise ScoresError(
            f"two {kind} ids differ in their Unicode form only: {pair[0]!a} and {pair[1]!a}",
            hint="write them in one form, such as NFC; if they are two, rename one",
        )


def _not_text(values: Any) -> list[object]:
    distinct = set(np.asarray(values, dtype=object).tolist())
    if set(map(type, distinct)) == {str} and all(map(str.strip, distinct)):  # nearly always
        return []
    return [value for value in distinct if not isinstance(value, str) or not value.strip()]


def positions_in(index: "pd.Index[Any]", labels: Sequence[str], kind: str) -> IntArray:
    """Return the positions of labels; ScoresError names unknown labels."""
    if len(labels) <= FEW:  # as told one by one: without an index of their own
        with suppress(LookupError, TypeError, pd.errors.InvalidIndexError):
            return np.array([index.get_loc(label) for label in labels], dtype=np.intp)
    wanted: pd.Index[Any]
    try:
        wanted = pd.Index(list[Any](labels))  # of the index's own type, which is hashed only once
    except UnicodeEncodeError:  # half of a surrogate pair, which no label has
        wanted = pd.Index(labels, dtype=object)
    places = index.get_indexer(wanted)
    unknown = [label for label, at in zip(labels, places, strict=True) if at < 0]
    if unknown:
        hint = f"{kind}s there look like {some(index[:2])}"
        if (pair := same_text(map(str, unknown), map(str, index))) is not None:
            hint = f"{pair[1]!a} is {pair[0]!a} there, in a different Unicode form: write it so"
        raise ScoresError(
            f"{counted(len(unknown), f'{kind} is', f'{kind}s are')} not in the scores: "
            f"{some(unknown)}",
            hint=hint,
            kind="unknown",
        )
    return cast(IntArray, places.astype(np.intp))
