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


def merge(runs: Sequence[Run], items: Items, numbers: Numbers, same_model: SameModel) -> Merged:
    """Choose a run for each cell.

    Within a group (a folder) a newer row replaces an older one of the same model and item. Groups
    know nothing of each other, so what two of them say of one cell must be the same, unless
    `same_model` is "newest": then time decides between them too.

    Raises
    ------
    ReaderError
        If two groups give a model different scores on an item.
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
        chosen = _choose(runs, own, items, numbers, same_model == "newest", replaced)
        for at in own:
            columns = np.flatnonzero(chosen[0] == at)
            taken[at] = Taken(runs[at], columns, chosen[1][columns])
    return Merged([one for one in taken if one is not None], replaced)


def _choose(
    runs: Sequence[Run],
    own: list[int],
    items: Items,
    numbers: Numbers,
    one_group: bool,
    replaced: list[int],
) -> tuple[IntArray, IntArray]:
    """Return run and row of each item for one model, -1 where not run."""
    n_items = len(items.ids)
    run, row = np.full(n_items, -1), np.full(n_items, -1)
    groups: dict[str, list[int]] = defaultdict(list)
    for at in sorted(own, key=lambda at: runs[at].stamp):
        groups["" if one_group else runs[at].group].append(at)
    for members in groups.values():
        newest, newest_row = np.full(n_items, -1), np.full(n_items, -1)
        for at in members:
            columns = items.columns[runs[at].layout]
            gone = Counter(newest[columns][newest[columns] >= 0].tolist())
            for old, count in gone.items():
                replaced[old] += count
            newest[columns], newest_row[columns] = at, np.arange(len(columns))
        _compare(runs, items, numbers, (run, row), (newest, newest_row))
        fresh = (newest >= 0) & (run < 0)
        run[fresh], row[fresh] = newest[fresh], newest_row[fresh]
    return run, row


def _compare(
    runs: Sequence[Run],
    items: Items,
    numbers: Numbers,
    told: tuple[IntArray, IntArray],
    new: tuple[IntArray, IntArray],
) -> None:
    """Raise ReaderError where two groups disagree on a cell."""
    both = np.flatnonzero((told[0] >= 0) & (new[0] >= 0))
    pairs = {(int(a), int(b)) for a, b in zip(told[0][both], new[0][both], strict=True)}
    for old, other in sorted(pairs):
        columns = both[(told[0][both] == old) & (new[0][both] == other)]
        a = numbers(runs[old])[told[1][columns]]
        b = numbers(runs[other])[new[1][columns]]
        differ = np.flatnonzero(a != b)
        if len(differ):
            raise ReaderError(
                f"model {runs[old].model!r} has two scores on item "
                f"{items.ids[columns[differ[0]]]!r}: in {runs[old].path} and in "
                f"{runs[other].path} ({len(differ)} of {len(columns)} items differ)",
                hint="read only one of the folders; or take the newest with --same-model newest, "
                "or both as two models with --same-model apart",
            )
