"""Scores held as one byte per cell, decoded part by part.

A table of right and wrong answers takes an eighth of the memory of float64 so: 150 MB and not
1.2 GB for 5,000 models × 30,000 items. Bits would take 19 MB, but have no code for a missing cell
or a partial score, and are unpacked to bytes before use. Files are compressed, to about a bit per
cell.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fewbench._blocks import CACHED, Matrix, blocks, by_columns, row_blocks
from fewbench._lazy import pandas as pd
from fewbench._memory import check_fits
from fewbench._names import counted
from fewbench._types import FloatArray, IntArray

Number = TypeVar("Number", bound=np.generic)
GONE = 255
"""The code of a missing cell."""
USUAL = (0, 1, GONE)
"""Codes of most tables: to count these is ten times faster than to look up which there are."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A table with at most 255 distinct scores.

    Take parts as of an array: `cells[rows]`, `cells[:, items]`, `cells[rows, items]`, with slices,
    numbers or arrays of positions, of which at most one is an array. Parts are float64, NaN where
    not run.

    Parameters
    ----------
    codes : ndarray of uint8, shape (models, items)
        Positions in `levels`; 255 where not run.
    levels : ndarray of float64, shape (256,)
        The scores, increasing; the rest NaN.
    above, item_mean : ndarray of float64, shapes (models,) and (items,), optional
        A missing cell is filled with their sum, cut to [0, 1].

    Examples
    --------
    >>> cells = compact(np.array([[1.0, np.nan], [0.0, 0.5]]))
    >>> cells.codes.tolist(), cells[:, 1].tolist()
    ([[2, 255], [0, 1]], [nan, 0.5])
    """

    codes: NDArray[np.uint8]
    levels: FloatArray
    above: FloatArray | None = None
    item_mean: FloatArray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of models and items."""
        return self.codes.shape[0], self.codes.shape[1]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, key: Any) -> FloatArray:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if np.ndim(rows) and np.ndim(columns) and not isinstance(rows, slice):
            raise IndexError("take rows and columns one after the other")
        codes = self.codes[rows, columns]
        scores = self._decoded(np.asarray(codes))
        if self.above is not None and self.item_mean is not None:
            gone = codes == GONE
            if gone.any():
                above, mean = self.above[rows], self.item_mean[columns]
                above = above[:, None] if np.ndim(above) and np.ndim(mean) else above
                scores = np.where(gone, np.clip(mean + above, 0.0, 1.0), scores)
        return scores

    def _decoded(self, codes: NDArray[np.uint8]) -> FloatArray:
        if not self._are_scores:
            return np.asarray(self.levels[codes])
        scores = codes.astype(np.float64)  # three times faster
        if self.has_missing:
            scores[codes == GONE] = np.nan
        return scores

    @cached_property
    def _are_scores(self) -> bool:
        """Whether codes are the scores themselves: 0 and 1, not -0."""
        scores = self.distinct
        return bool((scores == np.arange(len(scores))).all() and not np.signbit(scores).any())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return all cells as float64 if there is memory for them."""
        n_models, n_items = self.shape
        check_fits(
            8.0 * n_models * n_items,
            f"a table of {counted(n_models, 'model')} × {counted(n_items, 'item')} as decimal "
            "numbers",
        )
        cells = np.empty(self.shape)
        for rows in blocks(*self.shape):
            cells[rows] = self[rows]
        return cells if dtype is None else cells.astype(dtype, copy=False)

    @cached_property
    def has_missing(self) -> bool:
        """Whether a part may hold NaN."""
        return self.above is None and any(
            bool((self.codes[rows] == GONE).any()) for rows in blocks(*self.shape)
        )

    @property
    def is_run(self) -> NDArray[np.bool_]:
        """Whether each cell has a score, shape (models, items)."""
        return self.was_run(slice(None))

    def was_run(self, rows: slice) -> NDArray[np.bool_]:
        """Whether each cell of some models has a score, shape (models, items)."""
        codes = self.codes[rows]
        return np.ones(codes.shape, dtype=bool) if self.above is not None else codes != GONE

    @property
    def distinct(self) -> FloatArray:
        """The scores that a cell may have, NaN excluded."""
        return self.levels[~np.isnan(self.levels)]

    @cached_property
    def is_unit(self) -> bool:
        """Whether all scores are in [0, 1]."""
        return bool(((self.distinct >= 0) & (self.distinct <= 1)).all())

    def take(self, rows: IntArray | None, columns: IntArray | None) -> "Cells":
        """Return some models and items, held as bytes."""
        codes = self.codes if rows is None else self.codes[rows]
        above, mean = self.above, self.item_mean
        if above is not None and mean is not None:
            above = above if rows is None else above[rows]
            mean = mean if columns is None else mean[columns]
        if columns is not None:
            codes = codes[:, columns]
        return Cells(np.ascontiguousarray(codes), self.levels, above, mean)


@dataclass(frozen=True)
class Unread:
    """Scores in a file, with what is known about their table without reading it.

    `digest`, `fingerprint` and `missing_shares` are those of `Scores`.
    """

    read: Callable[[], "FloatArray | Cells"]
    digest: str
    fingerprint: str
    missing_shares: FloatArray


@dataclass(frozen=True, eq=False)
class ChosenAnswers(Unread):
    """The source models' answers to the chosen items of a pack, and their scores on all items.

    `read` raises PackError.

    Parameters
    ----------
    place : ndarray of int, shape (items,)
        Column in `answers` of each item of the benchmark (-1 for items that are not chosen).
    answers, filled : ndarray, shape (models, chosen)
        The answers, and the answers with missing cells filled.
    full, by_task : ndarray, shapes (models,) and (models, tasks)
        Scores on all items.
    is_binary : bool
        Whether every score of the table is 0 or 1.
    """

    place: IntArray
    answers: FloatArray
    filled: FloatArray
    full: FloatArray
    by_task: FloatArray
    is_binary: bool

    def columns(self, items: IntArray, *, filled: bool) -> FloatArray:
        """Return the answers to some of the chosen items, shape (models, items)."""
        places = self.place[items]
        if (places < 0).any():
            self.read()
        return (self.filled if filled else self.answers)[:, places]


def compact(values: Any, convert: Callable[[Any], FloatArray] | None = None) -> Cells | None:
    """Return a table as `Cells`, or None if it has more than 255 distinct scores.

    Parameters
    ----------
    values : array, shape (models, items)
        Numbers of any type.
    convert : callable, optional
        Makes float64 scores of any part, cell by cell; by default a conversion alone.

    Examples
    --------
    >>> compact(np.arange(300.0)[None]) is None
    True
    """
    cells = _of_bytes(values, convert)
    if cells is not None:
        return cells
    n_models, n_items = values.shape
    every = blocks(n_models, n_items)

    def block(rows: slice) -> FloatArray:
        part = np.asarray(values[rows])
        return np.asarray(part if convert is None else convert(part), dtype=np.float64)

    # By their bits, so that 0 and -0 stay apart: a table's hash tells them apart.
    bits: set[int] = set()
    for rows in every:
        part = np.ascontiguousarray(block(rows)).ravel()
        present = part[~np.isnan(part)].view(np.int64)
        for at in range(0, len(present), 1 << 16):  # so that few are held if all are distinct
            bits |= set(pd.unique(present[at : at + (1 << 16)]).tolist())
            if len(bits) > GONE:
                return None
    distinct = np.array(sorted(bits), dtype=np.int64).view(np.float64)
    distinct = distinct[np.argsort(distinct, kind="stable")]
    if (np.diff(distinct) <= 0).any():  # both 0 and -0
        return None
    codes = np.empty((n_models, n_items), dtype=np.uint8)
    for rows in every:
        part = block(rows)
        codes[rows] = np.searchsorted(distinct, part)
        codes[rows][np.isnan(part)] = GONE
    return coded_cells(codes, distinct)


def _of_bytes(values: Any, convert: Callable[[Any], FloatArray] | None) -> Cells | None:
    """Return a table of whole numbers from 0 to 254 as `Cells`, None for others.

    Reads each cell once, where distinct numbers of any kind are searched for and then counted.
    """
    codes: NDArray[np.uint8] = np.empty(values.shape, dtype=np.uint8)
    there = np.zeros(GONE + 1, dtype=bool)
    parts = blocks(codes.shape[0], codes.shape[1], CACHED)
    for rows in parts:
        part, coded = np.asarray(values[rows]), codes[rows]
        with np.errstate(invalid="ignore"):  # NaN becomes any byte
            np.copyto(coded, part, casting="unsafe")
        fits = (coded == part) & (coded < GONE)
        if part.dtype.kind == "f":
            fits &= ~np.signbit(part)  # a table's hash tells -0 from 0
        if not fits.all():
            if not (fits | np.isnan(part)).all():
                return None
            coded[~fits] = GONE
        counts = [np.count_nonzero(coded == number) for number in USUAL]
        there[list(USUAL)] |= np.array(counts) > 0
        if sum(counts) < coded.size:
            there[coded] = True
    numbers = np.flatnonzero(there[:GONE])
    scores = numbers.astype(np.float64)
    distinct, place = np.unique(scores if convert is None else convert(scores), return_inverse=True)
    recoded = np.full(GONE + 1, GONE, dtype=np.uint8)
    recoded[numbers] = place
    if (place != numbers).any():
        for rows in parts:
            codes[rows] = recoded[codes[rows]]
    return coded_cells(codes, distinct)


def coded_cells(codes: NDArray[np.uint8], distinct: Sequence[float] | FloatArray) -> Cells:
    """Return cells of these codes and scores, which may not change from now on."""
    levels = np.full(GONE + 1, np.nan)
    levels[: len(distinct)] = distinct
    return Cells(frozen(codes), frozen(levels))


def filled_cells(cells: Matrix, task_of: IntArray) -> Matrix:
    """Return the cells with missing ones filled, as `Scores.filled` does."""
    item_mean, above = _item_means(cells, task_of), []
    for rows in row_blocks(cells):
        values = cells[rows]
        run = ~np.isnan(values)
        # Each model is compared with the others on the items that it answered.
        above.append(np.where(run, values - item_mean, 0.0).sum(axis=1) / run.sum(axis=1))
    ability = np.concatenate(above)
    if isinstance(cells, Cells):
        return replace(cells, above=ability, item_mean=item_mean)
    values, guess = np.asarray(cells), np.clip(item_mean + ability[:, None], 0.0, 1.0)
    return frozen(np.where(np.isnan(values), guess, values))


def _item_means(cells: Matrix, task_of: IntArray) -> FloatArray:
    """Return the mean answer to each item; of an item without any, that of its task, or of all."""
    sums = by_columns(cells, lambda part: np.nansum(part, axis=0))
    counts = by_columns(cells, lambda part: (~np.isnan(part)).sum(axis=0).astype(np.float64))
    of_tasks = np.bincount(task_of, sums) / np.maximum(np.bincount(task_of, counts), 1)
    of_tasks[np.bincount(task_of, counts) == 0] = sums.sum() / max(counts.sum(), 1)
    means: FloatArray = np.where(counts > 0, sums / np.maximum(counts, 1), of_tasks[task_of])
    return means


def frozen(array: NDArray[Number]) -> NDArray[Number]:
    """Return the array, from now on read-only."""
    array.flags.writeable = False
    return array
