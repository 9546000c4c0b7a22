"""Items of a task: one for each document, by the document's hash and never by position."""

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewbench.readers._lm_eval.block import Block

Key = tuple[str, int]  # the document's hash, and which of its occurrences


@dataclass(frozen=True)
class Items:
    """The items of one task.

    Parameters
    ----------
    ids : list of str
        TASK/HASH, and TASK/HASH#2, … for further occurrences of an equal document.
    doc_ids : list of (int or None)
        Positions in the task's split, None where no run says them reliably.
    columns : list of ndarray
        For each block, the item of each row.
    moved : int
        How many items had different positions in different whole runs.
    """

    ids: list[str]
    doc_ids: list[int | None]
    columns: list[NDArray[np.intp]]
    moved: int


def name_items(task: str, blocks: list[Block]) -> Items:
    """Find the items of a task from all its blocks, in the order of the task's documents."""
    # Whole runs are believed most, then runs in order; the others have no say about positions.
    ranked = sorted(
        (block for block in blocks if block.has_true_ids), key=lambda block: not block.is_whole
    )
    twins = _twins(ranked)
    keys = {id(block): _keys(block, twins) for block in blocks}
    stated: dict[Key, dict[bool, set[int]]] = defaultdict(lambda: {True: set(), False: set()})
    for block in ranked:
        whole = block.is_whole
        for key, doc_id in zip(keys[id(block)], block.doc_ids, strict=True):
            stated[key][whole].add(doc_id)
    found: dict[Key, int | None] = {}
    moved = 0
    for block in [*ranked, *blocks]:
        for key in keys[id(block)]:
            if key not in found:
                believed = stated[key][True] or stated[key][False]
                found[key] = next(iter(believed)) if len(believed) == 1 else None
                moved += len(believed) > 1
    last = 2**31
    order = sorted(found, key=lambda key: last if found[key] is None else found[key] or 0)
    position = {key: at for at, key in enumerate(order)}
    return Items(
        ids=[f"{task}/{doc[:16]}" + (f"#{n + 1}" if n else "") for doc, n in order],
        doc_ids=[found[key] for key in order],
        columns=[np.array([position[key] for key in keys[id(block)]]) for block in blocks],
        moved=moved,
    )


def _twins(ranked: list[Block]) -> dict[str, list[int]]:
    """Return the positions of documents that occur more than once, from the best run of them."""
    twins: dict[str, list[int]] = {}
    for block in ranked:
        often = {doc for doc, n in Counter(block.doc_hashes).items() if n > 1}
        places: dict[str, list[int]] = defaultdict(list)
        for doc, doc_id in zip(block.doc_hashes, block.doc_ids, strict=True):
            if doc in often:
                places[doc].append(doc_id)
        for doc, positions in places.items():
            if len(positions) > len(twins.get(doc, [])):
                twins[doc] = sorted(positions)
    return twins


def _keys(block: Block, twins: dict[str, list[int]]) -> list[Key]:
    """Return each row's key; equal documents are told apart by position, else by order."""
    rows = list(zip(block.doc_hashes, block.doc_ids, strict=True))
    believed = twins if block.has_true_ids else {}
    by_order = {doc for doc, doc_id in rows if doc_id not in believed.get(doc, [])}
    met: Counter[str] = Counter()
    keys = []
    for doc, doc_id in rows:
        keys.append((doc, met[doc] if doc in by_order else twins[doc].index(doc_id)))
        met[doc] += 1
    return keys
