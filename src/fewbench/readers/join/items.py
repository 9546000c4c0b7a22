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


def name_items(task: str, runs: Sequence[Run]) -> Items:
    """Find the items of a task from all its runs, in the order of the task's documents."""
    layouts = _layouts(runs)
    # Whole runs are believed most, then runs in order; the others have no say about positions.
    ranked = sorted(
        (layout for layout in layouts if layout.has_positions),
        key=lambda layout: not layout.is_whole,
    )
    twins = _twins(ranked)
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


def _twins(ranked: list[_Layout]) -> dict[str, list[int]]:
    """Return the positions of documents that occur more than once, from the best run of them."""
    twins: dict[str, list[int]] = {}
    for layout in ranked:
        often = {content for content, n in Counter(layout.contents).items() if n > 1}
        places: dict[str, list[int]] = defaultdict(list)
        for content, position in zip(layout.contents, layout.positions, strict=True):
            if content in often:
                places[content].append(position)
        for content, positions in places.items():
            if len(positions) > len(twins.get(content, [])):
                twins[content] = sorted(positions)
    return twins


def _keys(layout: _Layout, twins: dict[str, list[int]]) -> list[Key]:
    """Return each row's key; equal documents are told apart by position, else by order."""
    rows = list(zip(layout.contents, layout.positions, strict=True))
    believed = twins if layout.has_positions else {}
    by_order = {content for content, position in rows if position not in believed.get(content, [])}
    met: Counter[str] = Counter()
    keys = []
    for content, position in rows:
        n = met[content] if content in by_order else twins[content].index(position)
        keys.append((content, n))
        met[content] += 1
    return keys
