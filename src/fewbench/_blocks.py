"""Work on large tables in blocks, so that memory holds a few blocks and not copies of the table.

A table of at most `CELLS` cells is one block: its results do not depend on this module. Sums over
several blocks differ from sums over the whole by rounding: below 1e-12, and 1e-6 in estimates of
`fewbench`, which works in single precision.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np

from fewbench._types import BoolArray, FloatArray

CELLS = 1 << 23
"""Most cells of a table that is one block."""
PARTS = 4
"""Blocks of larger tables have CELLS / PARTS cells: 16 MB of float64. The C library keeps memory of
up to 32 MB for the next block, where it returns larger blocks to the system: half of the time."""
CACHED = 1 << 16
"""Cells that are computed at a time: intermediate results of them fit into a processor's cache."""


class Matrix(Protocol):
    """A float64 array of shape (models, items), or what gives parts of it as such arrays."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of models and items."""
        ...

    def __getitem__(self, key: Any) -> FloatArray:
        """Return a part."""
        ...

    def __len__(self) -> int:
        """Return the number of models."""
        ...


def blocks(n: int, width: int, cells: int | None = None) -> list[slice]:
    """Return slices of n rows (or columns) that have `width` cells each, one slice at least.

    A slice has at most `cells` cells (by default a block), or one row.

    Examples
    --------
    >>> blocks(5, CELLS // 5)
    [slice(0, 5, None)]
    >>> blocks(5, 2, cells=4)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    if cells is None:
        cells = CELLS // PARTS if is_large(n * width) else CELLS
    step = max(1, cells // max(width, 1))
    return [slice(at, min(at + step, n)) for at in range(0, max(n, 1), step)]


def is_large(n_cells: int) -> bool:
    """Whether a table is more than one block."""
    return n_cells > CELLS


def row_blocks(matrix: Matrix) -> list[slice]:
    """Return slices of rows."""
    return blocks(matrix.shape[0], matrix.shape[1])


def column_blocks(matrix: Matrix) -> list[slice]:
    """Return slices of columns."""
    return blocks(matrix.shape[1], matrix.shape[0])


def by_columns(matrix: Matrix, measure: Callable[[FloatArray], Any]) -> Any:
    """Join what is measured of every block of columns; the columns are the last axis."""
    return beside([measure(matrix[:, block]) for block in column_blocks(matrix)])


def by_rows(matrix: Matrix, measure: Callable[[FloatArray], Any]) -> Any:
    """Join what is measured of every block of rows; the rows are the first axis."""
    parts = [measure(matrix[block]) for block in row_blocks(matrix)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def cell_by_cell(shape: tuple[int, ...], compute: Callable[[slice], FloatArray]) -> FloatArray:
    """Return an array whose rows `compute` gives, with intermediate results of a few rows only.

    >>> cell_by_cell((2, 2), lambda rows: np.eye(2)[rows] + 1).tolist()
    [[2.0, 1.0], [1.0, 2.0]]
    """
    result = np.empty(shape)
    for rows in blocks(shape[0], shape[1], CACHED):
        result[rows] = compute(rows)
    return result


def beside(parts: list[Any]) -> Any:
    """Join arrays along their last axis; a single one is returned as it is."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)


def total(parts: Iterable[Any]) -> Any:
    """Add arrays one by one, into the first."""
    summed = None
    for part in parts:
        if summed is None:
            summed = part
        else:
            summed += part
    return summed


def whole(matrix: Matrix) -> FloatArray:
    """Return the matrix as an array of float64."""
    return matrix if isinstance(matrix, np.ndarray) else matrix[:, :]


def not_run(matrix: Matrix) -> BoolArray:
    """Return whether each cell is NaN, shape (models, items): a byte per cell."""
    missing: BoolArray = by_rows(matrix, np.isnan)
    return missing


def of_columns(values: FloatArray, function: Callable[..., FloatArray]) -> FloatArray:
    """Return a function such as `np.nanmean` of each column, NaN of columns that have only NaN.

    NumPy's own functions warn of such columns.

    Examples
    --------
    >>> of_columns(np.array([[1.0, np.nan], [0.0, np.nan]]), np.nanmean).tolist()
    [0.5, nan]
    """
    has_values = ~np.isnan(values).all(axis=0)
    figures = np.full(values.shape[1], np.nan)
    figures[has_values] = function(values[:, has_values], axis=0)
    return figures
