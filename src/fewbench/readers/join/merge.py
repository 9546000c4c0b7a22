"""Items of a task, one for each document, and the run from which each cell is taken."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.errors import ReaderError
from fewbench.readers.harness import LogRun

Key = tuple[str, int]  # what the document says, and which of its occurrences
Twins = dict[str, dict[str, int]]  # what equal documents say → address → which occurrence
LAST = 2**31
Numbers = Callable[[LogRun], FloatArray]
SameModel = Literal["stop", "newest", "apart"]


@dataclass(frozen=True)
class Items:
    """The items of one task.

    `ids` are TASK/CONTENT, with #2, #3, … for equal documents; `positions` are None if unknown;
    `own_ids` are the harness's ids, "" if runs disagree; `columns` maps the layout of a run to the
    item of each row; `moved` counts items whose position differs between whole runs, `by_order`
    equal documents that only their order in each run tells apart.
    """

    ids: list[str]
    positions: list[int | None]
    own_ids: list[str]
    columns: dict[str, IntArray]
    moved: int
    by_order: int


@dataclass(frozen=True)
class _Row:
    content: str
    position: int
    own_id: str
    address: str  # what tells equal documents apart: own id, or position, or nothing
    is_again: bool  # a second answer to the item of the row before


@dataclass(frozen=True)
class _Layout:
    """The rows of runs with the same items in the same order."""

    run: LogRun
    is_whole: bool
    has_positions: bool
    by_id: bool

    @property
    def counts(self) -> Counter[str]:
        contents = self.run.columns["content"]
        if "trial" in self.run.columns:
            contents = contents[self.run.columns["trial"] == 0]
        return Counter(contents.tolist())

    def rows(self) -> Iterator[_Row]:
        columns = self.run.columns
        trials = columns["trial"].tolist() if "trial" in columns else [0] * self.run.n_rows
        named = (columns[name].tolist() for name in ("content", "position", "own_id"))
        for content, position, own_id, trial in zip(*named, trials, strict=True):
            by_position = self.has_positions and not self.by_id
            address = f"{position:>12}" if by_position else own_id
            yield _Row(content, position, own_id, address, trial > 0)


def name_items(task: str, runs: Sequence[LogRun], key: str | None = None) -> Items:
    """Return the items of a task in the order of its documents, from all runs.

    Raises
    ------
    ReaderError
        If the field `key` is equal for several items and a run does not distinguish them.
    """
    # Whole runs are believed most, then those with positions, in order.
    layouts = sorted(
        _layouts(runs), key=lambda layout: (not layout.has_positions, not layout.is_whole)
    )
    twins = _twins(
        sorted(layouts, key=lambda layout: (not layout.is_whole, not layout.has_positions))
    )
    names: dict[Key, None] = {}
    own_ids: dict[Key, str] = {}
    stated: dict[Key, dict[bool, set[int]]] = defaultdict(lambda: {True: set(), False: set()})
    for layout in layouts:
        for name, row in _keyed(layout, twins, task, key):
            names[name] = None
            if own_ids.setdefault(name, row.own_id) != row.own_id:
                own_ids[name] = ""
            if layout.has_positions:
                stated[name][layout.is_whole].add(row.position)
    believed = {name: stated[name][True] or stated[name][False] for name in names}
    positions = {name: next(iter(at)) if len(at) == 1 else None for name, at in believed.items()}
    order = sorted(
        names, key=lambda name: LAST if positions[name] is None else positions[name] or 0
    )
    column = {name: at for at, name in enumerate(order)}
    return Items(
        ids=[f"{task}/{content}" + (f"#{n + 1}" if n else "") for content, n in order],
        positions=[positions[name] for name in order],
        own_ids=[own_ids[name] for name in order],
        columns={
            layout.run.layout: np.array(
                [column[name] for name, _ in _keyed(layout, twins, task, key)]
            )
            for layout in layouts
        },
        moved=sum(len(at) > 1 for at in believed.values()),
        by_order=len({name for layout in layouts[1:] for name in _by_order(layout, twins)}),
    )


def _layouts(runs: Sequence[LogRun]) -> list[_Layout]:
    whole = {run.layout for run in runs if run.is_whole}
    first: dict[str, LogRun] = {}
    for run in runs:
        first.setdefault(run.layout, run)
    by_id = _ids_agree(list(first.values()))
    return [
        _Layout(run, name in whole, bool((run.columns["position"] >= 0).all()), by_id)
        for name, run in first.items()
    ]


def _ids_agree(runs: Iterable[LogRun]) -> bool:
    """Whether every row has an id of its own, which names the same document in all runs."""
    content_of: dict[str, str] = {}
    for run in runs:
        ids, contents = run.columns["own_id"].tolist(), run.columns["content"].tolist()
        if not all(ids):
            return False
        for own_id, content in zip(ids, contents, strict=True):
            if content_of.setdefault(own_id, content) != content:
                return False
    return True


def _twins(layouts: list[_Layout]) -> Twins:
    """Return the addresses of repeated documents, in order.

    Ids that agree are of all runs; positions are from the run with most of them.
    """
    twins: Twins = {}
    often = {content for layout in layouts for content, n in layout.counts.items() if n > 1}
    for layout in layouts if often else ():
        places: dict[str, list[str]] = defaultdict(list)
        for row in layout.rows():
            if row.content in often and row.address:
                places[row.content].append(row.address)
        for content, addresses in places.items():
            if layout.by_id:  # in the order of the dataset, as far as it is known
                of_all = twins.setdefault(content, {})
                for address in addresses:
                    of_all.setdefault(address, len(of_all))
            elif len(addresses) > 1 and len(set(addresses)) > len(twins.get(content, {})):
                twins[content] = {address: n for n, address in enumerate(sorted(set(addresses)))}
    return twins


def _by_order(layout: _Layout, twins: Twins) -> list[Key]:
    """Return the repeated documents of a run that nothing but their order tells apart."""
    counts = layout.counts
    return [
        (content, n)
        for content, addresses in _addresses(layout).items()
        if (counts[content] > 1 or content in twins)
        and not addresses <= twins.get(content, {}).keys()
        for n in range(counts[content])
    ]


def _addresses(layout: _Layout) -> dict[str, set[str]]:
    addresses: dict[str, set[str]] = defaultdict(set)
    for row in layout.rows():
        addresses[row.content].add(row.address)
    return addresses


def _keyed(layout: _Layout, twins: Twins, task: str, key: str | None) -> Iterator[tuple[Key, _Row]]:
    """Yield each row with its key; equal documents differ by address, else by order."""
    by_order = {
        content
        for content, addresses in _addresses(layout).items()
        if not addresses <= twins.get(content, {}).keys()
    }
    counts = layout.counts
    met: Counter[str] = Counter()
    for row in layout.rows():
        n = met[row.content] if row.content in by_order else twins[row.content][row.address]
        if key and row.content in by_order and (row.content in twins or counts[row.content] > 1):
            raise ReaderError(
                f"{layout.run.path}: several items of task {task!r} have {row.content!r} as their "
                f"{key!r}, and the file does not tell which of them it is",
                hint="pass --key with a field that is different for every item",
            )
        if row.is_again and row.content in by_order:
            n -= 1
        else:
            met[row.content] += 1
        yield (row.content, n), row


@dataclass(frozen=True)
class Used:
    """The rows of a run that are used, and their items."""

    run: LogRun
    columns: IntArray
    rows: IntArray


@dataclass(frozen=True)
class Merged:
    """What is used of each run, and how many rows of each run a newer one replaces.

    `set_aside` are runs of a part, with other settings than a whole run of the model.
    """

    taken: list[Used]
    replaced: list[int]
    set_aside: list[int]


@dataclass(frozen=True)
class MergedCells:
    """Run and row of each item for one model, -1 where not run."""

    run: IntArray
    row: IntArray

    @classmethod
    def empty(cls, items: Items) -> "MergedCells":
        """Return cells without any run."""
        return cls(np.full(len(items.ids), -1), np.full(len(items.ids), -1))


def merge(
    runs: Sequence[LogRun],
    items: Items,
    numbers: Numbers,
    same_model: SameModel,
    *,
    keeps_all: bool = False,
) -> Merged:
    """Choose a run for each cell.

    A newer run replaces an older run of the same model within one group (folder) and variant
    (settings); with "newest", among all runs that have a time, but no part of a run replaces a
    whole run with other settings. All other runs must agree. With `keeps_all`, runs of one variant
    are further answers to their items.

    Raises
    ------
    ReaderError
        If two runs give a model different scores on an item and neither replaces the other.
    """
    of_model: dict[str, list[int]] = defaultdict(list)
    for at, run in enumerate(runs):
        of_model[run.model].append(at)
    choice = _Choice(runs, items, numbers, same_model, [0] * len(runs), [])
    taken: dict[int, Used] = {}
    for group in of_model.values():
        is_alike = len({runs[at].variant for at in group}) == 1
        if len(group) == 1 or (keeps_all and is_alike and same_model != "newest"):
            for at in group:
                rows = np.flatnonzero(~np.isnan(numbers(runs[at])))
                taken[at] = Used(runs[at], items.columns[runs[at].layout][rows], rows)
            continue
        chosen = choice.of_model(group)
        for at in group:
            columns = items.columns[runs[at].layout]
            rows = np.flatnonzero(chosen.run[columns] == at)
            taken[at] = Used(runs[at], columns[rows], rows)
    return Merged([taken[at] for at in sorted(taken)], choice.replaced, choice.set_aside)


@dataclass(frozen=True)
class _Choice:
    runs: Sequence[LogRun]
    items: Items
    numbers: Numbers
    same_model: SameModel
    replaced: list[int]
    set_aside: list[int]

    def of_model(self, own: list[int]) -> MergedCells:
        groups: dict[object, list[int]] = defaultdict(list)
        for at in sorted(own, key=lambda at: self.runs[at].stamp):
            run = self.runs[at]
            key = "" if self.same_model == "newest" else (run.group, run.variant)
            groups[key if run.stamp else at].append(at)  # of runs without a time none is newer
        merged = MergedCells.empty(self.items)
        for members in groups.values():
            whole = [at for at in members if self.runs[at].is_whole]
            if whole:  # the newest of them; a group without a choice has one variant
                variant = self.runs[whole[-1]].variant
                parts = [at for at in members if not self.runs[at].is_whole]
                others = [at for at in parts if self.runs[at].variant != variant]
                self.set_aside.extend(others)
                members = [at for at in members if at not in others]
            newest = MergedCells.empty(self.items)
            for at in members:
                self._add(at, newest)
            self._compare(merged, newest)
            fresh = (newest.run >= 0) & (merged.run < 0)
            merged.run[fresh], merged.row[fresh] = newest.run[fresh], newest.row[fresh]
        return merged

    def _add(self, at: int, newest: MergedCells) -> None:
        """Replace older runs of the group; a run of the same time must agree."""
        runs, rows = self.runs, np.flatnonzero(~np.isnan(self.numbers(self.runs[at])))
        columns = self.items.columns[runs[at].layout][rows]
        before = newest.run[columns]
        older = np.array([was >= 0 and runs[was].stamp < runs[at].stamp for was in before.tolist()])
        same_time = MergedCells.empty(self.items)
        kept = columns[(before >= 0) & ~older]
        same_time.run[kept], same_time.row[kept] = at, rows[(before >= 0) & ~older]
        self._compare(newest, same_time)
        for gone, count in Counter(before[older].tolist()).items():
            self.replaced[gone] += count
        newest.run[columns], newest.row[columns] = at, rows

    def _compare(self, merged: MergedCells, new: MergedCells) -> None:
        """Raise ReaderError if two runs of unknown order disagree on a cell."""
        both = np.flatnonzero((merged.run >= 0) & (new.run >= 0))
        pairs = {(int(a), int(b)) for a, b in zip(merged.run[both], new.run[both], strict=True)}
        for at, other in sorted(pairs):
            columns = both[(merged.run[both] == at) & (new.run[both] == other)]
            a = self.numbers(self.runs[at])[merged.row[columns]]
            b = self.numbers(self.runs[other])[new.row[columns]]
            differ = np.flatnonzero(a != b)
            if len(differ):
                item = self.items.ids[columns[differ[0]]]
                shared = len(columns)
                raise _disagree(self.runs[at], self.runs[other], item, len(differ), shared)


def _disagree(run: LogRun, other: LogRun, item: str, differ: int, shared: int) -> ReaderError:
    why = ""
    if run.variant != other.variant:
        why = f"; settings: {run.variant or 'not stated'}, and {other.variant or 'not stated'}"
    elif not (run.stamp and other.stamp):
        why = "; one has no time, so the newer one is unknown"
    elif run.stamp == other.stamp:
        why = "; they have the same time"
    return ReaderError(
        f"model {run.model!r} has two scores on item {item!r}: in {run.path} and in {other.path} "
        f"({differ} of {shared} items differ{why})",
        hint="import only one of them; or use the newest with --same-model newest (if both have a "
        "time), or both as two models with --same-model apart; runs with the same settings are "
        "averaged with --trials mean",
        kind="conflict",
    )
