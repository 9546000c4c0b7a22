"""Which run each cell of a task is taken from."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fewbench.errors import ReaderError
from fewbench.readers._lm_eval.block import Block
from fewbench.readers._lm_eval.items import Items

IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class Cells:
    """Each cell's block and row of it, shape (models, items); -1 where not run.

    `replaced` counts the rows of each block that gave way to a newer run.
    """

    block: IntArray
    row: IntArray
    replaced: Counter[int]

    def of(self, block: int, model: int) -> tuple[IntArray, IntArray]:
        """Return the columns of a block's cells and their rows in it."""
        columns = np.flatnonzero(self.block[model] == block)
        return columns, self.row[model, columns]


def merge(
    blocks: list[Block],
    numbers: list[NDArray[np.float64]],
    items: Items,
    models: dict[str, int],
) -> Cells:
    """Choose a run for each cell.

    Within a folder a newer row replaces an older one of the same model and item. Folders know
    nothing of each other, so what two of them say of one cell must be the same.

    Raises
    ------
    ReaderError
        If two folders give a model different scores on an item.
    """
    shape = (len(models), len(items.ids))
    cells = Cells(np.full(shape, -1), np.full(shape, -1), Counter())
    folders: dict[tuple[str, Path], list[int]] = defaultdict(list)
    for at in sorted(range(len(blocks)), key=lambda at: blocks[at].log.stamp):
        folders[blocks[at].log.model, blocks[at].log.path.resolve().parent].append(at)
    for (name, _), runs in folders.items():
        block, row = cells.block[models[name]], cells.row[models[name]]
        newest, newest_row = np.full(shape[1], -1), np.full(shape[1], -1)
        for at in runs:
            columns = items.columns[at]
            cells.replaced.update(int(old) for old in newest[columns] if old >= 0)
            newest[columns], newest_row[columns] = at, np.arange(len(columns))
        for column in np.flatnonzero((block >= 0) & (newest >= 0)):
            told = numbers[block[column]][row[column]]
            if numbers[newest[column]][newest_row[column]] != told:
                raise ReaderError(
                    f"model {name!r} has two scores on item {items.ids[column]!r}: in "
                    f"{blocks[block[column]].log.path} and in {blocks[newest[column]].log.path}",
                    hint="read only one of the folders, or give the models different names",
                )
        fresh = (newest >= 0) & (block < 0)
        block[fresh], row[fresh] = newest[fresh], newest_row[fresh]
    return cells
