"""Which run each cell of a task is taken from."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fewbench.errors import ReaderError
from fewbench.readers.join.items import Items
from fewbench.readers.run import Run

IntArray = NDArray[np.intp]
Numbers = Callable[[Run], NDArray[np.float64]]
SameModel = Literal["stop", "newest", "apart"]


@dataclass(frozen=True)
class Taken:
    """What is taken of one run: these rows of it, for these items."""

    run: Run
    columns: IntArray
    rows: IntArray


@dataclass(frozen=True)
class Merged:
    """What is taken of each run of a task, in the order of the runs.

    `replaced` counts, for each run, the rows that gave way to a newer run.
    """

    taken: list[Taken]
    replaced: list[int]


@dataclass(frozen=True)
class Cells:
    """Run and row of each item for one model, -1 where not run."""

    run: IntArray
    row: IntArray

    @classmethod
    def empty(cls, items: Items) -> "Cells":
        """Return cells of which none was run."""
        return cls(np.full(len(items.ids), -1), np.full(len(items.ids), -1))


def merge(runs: Sequence[Run], items: Items, numbers: Numbers, same_model: SameModel) -> Merged:
    """Choose a run for each cell.

    Within a group (a folder) and variant (settings) a newer row replaces an older one of the same
    model and item. Others know nothing of each other, and of runs without a time none is newer,
    so what two of these say of one cell must be the same. If `same_model` is "newest", time
    decides between all runs that have one.

    Raises
    ------
    ReaderError
        If two runs of which none is newer give a model different scores on an item.
    """
    of_model: dict[str, list[int]] = defaultdict(list)
    for at, run in enumerate(runs):
        of_model[run.model].append(at)
    taken: list[Taken | None] = [None] * len(runs)
    replaced = [0] * len(runs)
    for own in of_model.values():
        if len(own) == 1:
            columns = items.columns[runs[own[0]].layout]
            taken[own[0]] = Taken(runs[own[0]], columns, np.arange(len(columns)))
            continue
        chosen = _choose(runs, own, items, numbers, same_model, replaced)
        for at in own:
            columns = np.flatnonzero(chosen.run == at)
            taken[at] = Taken(runs[at], columns, chosen.row[columns])
    return Merged([one for one in taken if one is not None], replaced)


def _choose(
    runs: Sequence[Run],
    own: list[int],
    items: Items,
    numbers: Numbers,
    same_model: SameModel,
    replaced: list[int],
) -> Cells:
    """Choose among the runs of one model, whose positions in `runs` are `own`."""
    groups: dict[object, list[int]] = defaultdict(list)
    for at in sorted(own, key=lambda at: runs[at].stamp):
        run = runs[at]
        key = "" if same_model == "newest" else (run.group, run.variant)
        groups[key if run.stamp else at].append(at)  # of runs without a time none is newer
    told = Cells.empty(items)
    for members in groups.values():
        newest = Cells.empty(items)
        for at in members:
            _add(at, newest, runs, items, numbers, replaced)
        _compare(runs, items, numbers, told, newest)
        fresh = (newest.run >= 0) & (told.run < 0)
        told.run[fresh], told.row[fresh] = newest.run[fresh], newest.row[fresh]
    return told


def _add(
    at: int,
    newest: Cells,
    runs: Sequence[Run],
    items: Items,
    numbers: Numbers,
    replaced: list[int],
) -> None:
    """Let a run replace older ones of its group; with one of the same time it must agree."""
    columns = items.columns[runs[at].layout]
    before = newest.run[columns]
    older = np.array([was >= 0 and runs[was].stamp < runs[at].stamp for was in before.tolist()])
    same_time = Cells.empty(items)
    kept = columns[(before >= 0) & ~older]
    rows = np.arange(len(columns))
    same_time.run[kept], same_time.row[kept] = at, rows[(before >= 0) & ~older]
    _compare(runs, items, numbers, newest, same_time)
    for gone, count in Counter(before[older].tolist()).items():
        replaced[gone] += count
    newest.run[columns], newest.row[columns] = at, rows


def _compare(
    runs: Sequence[Run],
    items: Items,
    numbers: Numbers,
    told: Cells,
    new: Cells,
) -> None:
    """Raise ReaderError where two runs of which none is newer disagree on a cell."""
    both = np.flatnonzero((told.run >= 0) & (new.run >= 0))
    pairs = {(int(a), int(b)) for a, b in zip(told.run[both], new.run[both], strict=True)}
    for old, other in sorted(pairs):
        columns = both[(told.run[both] == old) & (new.run[both] == other)]
        a = numbers(runs[old])[told.row[columns]]
        b = numbers(runs[other])[new.row[columns]]
        differ = np.flatnonzero(a != b)
        if len(differ):
            item = items.ids[columns[differ[0]]]
            raise _disagree(runs[old], runs[other], item, len(differ), len(columns))


def _disagree(one: Run, other: Run, item: str, differ: int, shared: int) -> ReaderError:
    why = ""
    if one.variant != other.variant:
        why = f"; they ran with {one.variant or 'nothing said'}, and {other.variant or 'nothing'}"
    elif not (one.stamp and other.stamp):
        why = "; one has no time, so neither is known to be newer"
    elif one.stamp == other.stamp:
        why = "; they have the same time"
    return ReaderError(
        f"model {one.model!r} has two scores on item {item!r}: in {one.path} and in {other.path} "
        f"({differ} of {shared} items differ{why})",
        hint="read only one of them; or take the newest with --same-model newest, where both have "
        "a time, or both as two models with --same-model apart",
    )
