"""Items of a task: one for each document, by what it says and never by position."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewbench.errors import ReaderError
from fewbench.readers.run import Run

Key = tuple[str, int]  # what the document says, and which of its occurrences
Twins = dict[str, dict[str, int]]  # what equal documents say → address → which occurrence
LAST = 2**31


@dataclass(frozen=True)
class Items:
    """The items of one task.

    Parameters
    ----------
    ids : list of str
        TASK/CONTENT, and TASK/CONTENT#2, … for further occurrences of an equal document.
    positions : list of (int or None)
        In the task's split, None where no run says them reliably.
    own_ids : list of str
        The harness's own ids, "" where runs have none or disagree.
    columns : dict of str to ndarray
        Layout of a run → the item of each of its rows.
    moved : int
        How many items had different positions in different whole runs.
    """

    ids: list[str]
    positions: list[int | None]
    own_ids: list[str]
    columns: dict[str, NDArray[np.intp]]
    moved: int


@dataclass(frozen=True)
class _Row:
    content: str
    position: int
    own_id: str
    address: str  # what tells equal documents apart: position, else own id, else nothing


@dataclass(frozen=True)
class _Layout:
    """Rows in the order of one or many runs; read anew each time, as there may be thousands."""

    run: Run
    is_whole: bool
    has_positions: bool

    def rows(self) -> Iterator[_Row]:
        columns = self.run.columns
        for content, position, own_id in zip(
            *(columns[name].tolist() for name in ("content", "position", "own_id")), strict=True
        ):
            address = f"{position:>12}" if self.has_positions else own_id
            yield _Row(content, position, own_id, address)


def name_items(task: str, runs: Sequence[Run], key: str | None = None) -> Items:
    """Find the items of a task from all its runs, in the order of the task's documents.

    Raises
    ------
    ReaderError
        If `key`, the field that identifies items, is the same for several of them and a run does
        not tell which it answered.
    """
    # Whole runs are believed most, then those with positions, in order.
    layouts = sorted(
        _layouts(runs), key=lambda layout: (not layout.has_positions, not layout.is_whole)
    )
    twins = _twins(sorted(layouts, key=lambda layout: not layout.is_whole))
    found: dict[Key, None] = {}
    own: dict[Key, str] = {}
    stated: dict[Key, dict[bool, set[int]]] = defaultdict(lambda: {True: set(), False: set()})
    for layout in layouts:
        for name, row in _keyed(layout, twins, task, key):
            found[name] = None
            if own.setdefault(name, row.own_id) != row.own_id:
                own[name] = ""
            if layout.has_positions:
                stated[name][layout.is_whole].add(row.position)
    believed = {name: stated[name][True] or stated[name][False] for name in found}
    positions = {name: next(iter(at)) if len(at) == 1 else None for name, at in believed.items()}
    order = sorted(
        found, key=lambda name: LAST if positions[name] is None else positions[name] or 0
    )
    column = {name: at for at, name in enumerate(order)}
    return Items(
        ids=[f"{task}/{content}" + (f"#{n + 1}" if n else "") for content, n in order],
        positions=[positions[name] for name in order],
        own_ids=[own[name] for name in order],
        columns={
            layout.run.layout: np.array(
                [column[name] for name, _ in _keyed(layout, twins, task, key)]
            )
            for layout in layouts
        },
        moved=sum(len(at) > 1 for at in believed.values()),
    )


def _layouts(runs: Sequence[Run]) -> list[_Layout]:
    """Return the different layouts; a run of the whole task lends the name of being whole."""
    whole = {run.layout for run in runs if run.is_whole}
    first: dict[str, Run] = {}
    for run in runs:
        first.setdefault(run.layout, run)
    return [
        _Layout(run, name in whole, bool((run.columns["position"] >= 0).all()))
        for name, run in first.items()
    ]


def _twins(layouts: list[_Layout]) -> Twins:
    """Return the addresses of documents that occur more than once, from the best run of them."""
    twins: Twins = {}
    for layout in layouts:
        often = {content for content, n in _counts(layout).items() if n > 1}
        places: dict[str, set[str]] = defaultdict(set)
        for row in layout.rows() if often else ():
            if row.content in often and row.address:
                places[row.content].add(row.address)
        for content, addresses in places.items():
            if len(addresses) > len(twins.get(content, {})):
                twins[content] = {address: n for n, address in enumerate(sorted(addresses))}
    return twins


def _counts(layout: _Layout) -> Counter[str]:
    return Counter(layout.run.columns["content"].tolist())


def _keyed(layout: _Layout, twins: Twins, task: str, key: str | None) -> Iterator[tuple[Key, _Row]]:
    """Yield each row with its key; equal documents are told apart by address, else by order."""
    by_order = {
        row.content for row in layout.rows() if row.address not in twins.get(row.content, {})
    }
    counts = _counts(layout)
    met: Counter[str] = Counter()
    for row in layout.rows():
        n = met[row.content] if row.content in by_order else twins[row.content][row.address]
        if key and row.content in by_order and (row.content in twins or counts[row.content] > 1):
            raise ReaderError(
                f"{layout.run.path}: several items of task {task!r} have {row.content!r} as their "
                f"{key!r}, and the file does not tell which of them it is",
                hint="name a field with --key that is different for every item",
            )
        met[row.content] += 1
        yield (row.content, n), row
