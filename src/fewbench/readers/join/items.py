"""Items of a task: one for each document, by what it says and never by position."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewbench.readers.run import Run

Key = tuple[str, int]  # what the document says, and which of its occurrences


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
class _Layout:
    """Rows in the order of one or many runs."""

    name: str
    contents: list[str]
    positions: list[int]
    own_ids: list[str]
    is_whole: bool

    @property
    def has_positions(self) -> bool:
        return all(position >= 0 for position in self.positions)

    @property
    def addresses(self) -> list[str]:
        """What tells equal documents apart: position, else the harness's own id, else nothing."""
        if self.has_positions:
            return [f"{position:>12}" for position in self.positions]
        return self.own_ids


def name_items(task: str, runs: Sequence[Run]) -> Items:
    """Find the items of a task from all its runs, in the order of the task's documents."""
    layouts = _layouts(runs)
    # Whole runs are believed most, then runs in order; the others have no say about positions.
    ranked = sorted(
        (layout for layout in layouts if layout.has_positions),
        key=lambda layout: not layout.is_whole,
    )
    twins = _twins(sorted(layouts, key=lambda layout: not layout.is_whole))
    keys = {id(layout): _keys(layout, twins) for layout in layouts}
    stated: dict[Key, dict[bool, set[int]]] = defaultdict(lambda: {True: set(), False: set()})
    for layout in ranked:
        for key, position in zip(keys[id(layout)], layout.positions, strict=True):
            stated[key][layout.is_whole].add(position)
    found: dict[Key, int | None] = {}
    own: dict[Key, str] = {}
    moved = 0
    for layout in [*ranked, *layouts]:
        for key, own_id in zip(keys[id(layout)], layout.own_ids, strict=True):
            if key not in found:
                believed = stated[key][True] or stated[key][False] if key in stated else set()
                found[key] = next(iter(believed)) if len(believed) == 1 else None
                moved += len(believed) > 1
            if own.setdefault(key, own_id) != own_id:
                own[key] = ""
    last = 2**31
    order = sorted(found, key=lambda key: last if found[key] is None else found[key] or 0)
    column = {key: at for at, key in enumerate(order)}
    return Items(
        ids=[f"{task}/{content}" + (f"#{n + 1}" if n else "") for content, n in order],
        positions=[found[key] for key in order],
        own_ids=[own[key] for key in order],
        columns={
            layout.name: np.array([column[key] for key in keys[id(layout)]]) for layout in layouts
        },
        moved=moved,
    )


def _layouts(runs: Sequence[Run]) -> list[_Layout]:
    """Return the different layouts; a run of the whole task lends the name of being whole."""
    whole = {run.layout for run in runs if run.is_whole}
    return [
        _Layout(
            name,
            run.columns["content"].tolist(),
            run.columns["position"].tolist(),
            run.columns["own_id"].tolist(),
            name in whole,
        )
        for name, run in {run.layout: run for run in reversed(runs)}.items()
    ][::-1]


def _twins(layouts: list[_Layout]) -> dict[str, list[str]]:
    """Return the addresses of documents that occur more than once, from the best run of them."""
    twins: dict[str, list[str]] = {}
    for layout in layouts:
        often = {content for content, n in Counter(layout.contents).items() if n > 1}
        places: dict[str, set[str]] = defaultdict(set)
        for content, address in zip(layout.contents, layout.addresses, strict=True):
            if content in often and address:
                places[content].add(address)
        for content, addresses in places.items():
            if len(addresses) > len(twins.get(content, [])):
                twins[content] = sorted(addresses)
    return twins


def _keys(layout: _Layout, twins: dict[str, list[str]]) -> list[Key]:
    """Return each row's key; equal documents are told apart by address, else by order."""
    rows = list(zip(layout.contents, layout.addresses, strict=True))
    by_order = {content for content, address in rows if address not in twins.get(content, [])}
    met: Counter[str] = Counter()
    keys = []
    for content, address in rows:
        n = met[content] if content in by_order else twins[content].index(address)
        keys.append((content, n))
        met[content] += 1
    return keys
