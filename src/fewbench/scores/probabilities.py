"""Option probabilities, which may exceed memory: read in blocks of models or of items.

Arrays in memory or memory-mapped (`.npz`) have models first. A scores file has row groups of some
items and columns of some models.
"""

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._blocks import blocks
from fewbench._memory import check_fits
from fewbench._names import counted
from fewbench._types import AnyArray, FloatArray, IntArray
from fewbench.errors import ScoresError, first_line

SUM_TOLERANCE = 0.02  # float16 probabilities of a thousand options sum to 1 only this closely


def read_group(file: Any, group: int, name: str) -> NDArray[np.uint8]:
    """Return a row group's values of bytes in an open Parquet file, shape (rows, bytes)."""
    column = file.read_row_group(group, columns=[name]).column(name).combine_chunks()
    if column.null_count:
        raise ValueError(f"an item without {name}")
    width = column.type.byte_width
    raw = np.frombuffer(column.buffers()[1], dtype=np.uint8)[column.offset * width :]
    return raw[: len(column) * width].reshape(len(column), width)


def column_of(model: int) -> str:
    """Return the name of the column whose first model has this position."""
    return f"probabilities.{model}"


@dataclass(frozen=True)
class StoredProbabilities:
    """Option probabilities in a scores file, each row group and column a block of its own.

    Parameters
    ----------
    path : Path
    shape : tuple of int
        Numbers of models, items and options.
    dtype : dtype
    starts : tuple of int
        Each column's first model.
    checks : list of list of int
        CRC-32 of each block, by row group and column.
    """

    path: Path
    shape: tuple[int, int, int]
    dtype: np.dtype[Any]
    starts: tuple[int, ...]
    checks: list[list[int]]

    def check(self, file: Any) -> None:
        """Raise ValueError unless the blocks of an open Parquet file have the stated shape."""
        ends = [*self.starts[1:], self.shape[0]]
        size = self.shape[2] * self.dtype.itemsize
        for start, end in zip(self.starts, ends, strict=True):
            if file.schema_arrow.field(column_of(start)).type.byte_width != size * (end - start):
                raise ValueError("option probabilities of another shape")
        if len(self.checks) != file.num_row_groups or file.metadata.num_rows != self.shape[1]:
            raise ValueError("option probabilities of other items")

    def read(self, models: IntArray, items: IntArray) -> AnyArray:
        """Return a part, shape (models, items, options), read block by block.

        Raises ScoresError if the file was changed or damaged since it was opened.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        values = np.empty((len(models), len(items), self.shape[2]), self.dtype)
        column_at = np.searchsorted(self.starts, models, side="right") - 1
        try:
            with pq.ParquetFile(self.path) as file:
                rows = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
                first = np.cumsum([0, *rows])
                group_at = np.searchsorted(first, items, side="right") - 1
                for group, column in product(np.unique(group_at), np.unique(column_at)):
                    start = self.starts[column]
                    block = read_group(file, int(group), column_of(start))
                    if zlib.crc32(block.data) != self.checks[group][column]:
                        raise ValueError("other numbers than were saved")
                    block = block.view(self.dtype).reshape(rows[group], -1, self.shape[2])
                    here = np.flatnonzero(group_at == group)
                    for i in np.flatnonzero(column_at == column):
                        values[i, here] = block[items[here] - first[group], models[i] - start]
        except (pa.ArrowInvalid, LookupError, OSError, ValueError) as error:
            raise ScoresError(
                f"{self.path}: its option probabilities were changed or damaged "
                f"({first_line(error)})",
                hint="start again with a whole copy, or import the scores again",
                kind="damaged",
            ) from error
        return values


class OptionProbabilities:
    """Predictive probabilities of models for the options of items.

    Parameters
    ----------
    array : ndarray or StoredProbabilities, shape (models, items, options), any float type
        In memory, memory-mapped or in a scores file; padded with 0 for options that an
        item does not have.
    models, items : ndarray of int, optional
        Rows and columns of `array` in this view, in order; all by default.
    known : str, optional
        The digest of this view if known.

    Examples
    --------
    >>> import numpy as np
    >>> p = OptionProbabilities(np.array([[[0.9, 0.1], [0.5, 0.5]]]))
    >>> p.shape
    (1, 2, 2)
    >>> p.of_items(np.array([1])).tolist()
    [[[0.5, 0.5]]]
    """

    def __init__(
        self,
        array: AnyArray | StoredProbabilities,
        models: IntArray | None = None,
        items: IntArray | None = None,
        known: str | None = None,
    ) -> None:
        if len(array.shape) != 3 or array.dtype.kind != "f" or array.shape[2] == 0:
            raise ScoresError(
                f"option probabilities have shape {array.shape} and type {array.dtype}",
                hint="give floats of shape (models, items, options)",
            )
        self._array = array
        self._models = np.arange(array.shape[0]) if models is None else models
        self._items = np.arange(array.shape[1]) if items is None else items
        self._known = known

    def __getstate__(self) -> dict[str, Any]:
        """Send a mapped file to other processes as its name, not its content."""
        state: dict[str, Any] = dict(vars(self))
        array = self._array
        for name, n in (("_models", array.shape[0]), ("_items", array.shape[1])):
            if np.array_equal(state[name], np.arange(n)):
                state[name] = n
        base = getattr(array, "base", None)  # a slice's base is an array
        if isinstance(array, np.memmap) and isinstance(base, mmap) and array.filename:
            if array.mode != "r":
                array.flush()
            order = "C" if array.flags.c_contiguous else "F"
            state["_array"] = (str(array.filename), array.dtype, array.offset, array.shape, order)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state["_array"], tuple):
            path, kind, offset, shape, order = state["_array"]
            state["_array"] = np.memmap(path, kind, "r", offset, shape, order)
        for name in ("_models", "_items"):
            if isinstance(state[name], int):  # all of them
                state[name] = np.arange(state[name])
        vars(self).update(state)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of models, items and options."""
        return len(self._models), len(self._items), self._array.shape[2]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The stored float type."""
        return self._array.dtype

    def _part(self, models: slice, items: IntArray | slice) -> AnyArray:
        """Return a part in the stored type, shape (models, items, options)."""
        rows, columns = self._models[models], self._items[items]
        if isinstance(self._array, StoredProbabilities):
            return self._array.read(rows, columns)
        values = np.empty((len(rows), len(columns), self.shape[2]), self.dtype)
        order = np.argsort(columns, kind="stable")  # forward through a mapped file
        for i, model in enumerate(rows):
            values[i, order] = self._array[model][columns[order]]
        return values

    def of_model(self, position: int) -> AnyArray:
        """Return one model's probabilities, shape (items, options), in the stored type."""
        values: AnyArray = self._part(slice(position, position + 1), slice(None))[0]
        return values

    def by_model(self) -> Iterator[AnyArray]:
        """Yield each model's probabilities in turn, holding 8 million numbers or one model at a
        time.

        Each block of a scores file is read once.
        """
        n_models, n_items, n_options = self.shape
        for part in blocks(n_models, n_items * n_options):
            yield from self._part(part, slice(None))

    def of_items(self, items: IntArray) -> FloatArray:
        """Return all models' probabilities on a few items, shape (models, len(items), options).

        Raises FewbenchError if there is no memory for them.
        """
        n_models, _, n_options = self.shape
        check_fits(
            (8.0 + self.dtype.itemsize) * n_models * len(items) * n_options,
            f"option probabilities of {counted(n_models, 'model')} on "
            f"{counted(len(items), 'item')}",
        )
        return self._part(slice(None), items).astype(np.float64)

    def by_items(self) -> Iterator[tuple[slice, AnyArray]]:
        """Yield some items' probabilities in turn, as a slice of items and all models' numbers.

        The arrays have shape (models, items of the slice, options) and the stored type. One pass
        over the file; a block has 8 million numbers, or one item.
        """
        n_models, n_items, n_options = self.shape
        for part in blocks(n_items, n_models * n_options):
            yield part, self._part(slice(None), part)

    def take(
        self, models: IntArray | None = None, items: IntArray | None = None
    ) -> "OptionProbabilities":
        """Return a view of some models and items; nothing is copied."""
        rows = self._models if models is None else self._models[models]
        columns = self._items if items is None else self._items[items]
        return OptionProbabilities(self._array, rows, columns)

    def digest(self) -> str:
        """Return a hash of shape, type and probabilities."""
        if self._known is not None:
            return self._known
        digest = hashlib.sha256(repr((self.shape, self.dtype.str)).encode())
        for row in self.by_model():
            digest.update(np.ascontiguousarray(row).data)
        return digest.hexdigest()

    def knowing(self, digest: str) -> "OptionProbabilities":
        """Return the same view with its digest known."""
        return OptionProbabilities(self._array, self._models, self._items, digest)

    def check(self, n_options: IntArray, names: list[str]) -> None:
        """Raise ScoresError unless each item's probabilities are in [0, 1] and sum to 1.

        Options beyond `n_options`, shape (items,), must be 0; a cell of NaN was not run. `names`
        are the models, for the message.
        """
        padding = np.arange(self.shape[2]) >= n_options[:, None]
        for name, row in zip(names, self.by_model(), strict=True):
            bad, beyond = 0, False
            for part in blocks(len(row), row.shape[1]):
                block = row[part].astype(np.float32)
                run = ~np.isnan(block).all(axis=1)
                block = block[run]
                sums = block.sum(axis=1)
                unsound = ~(np.abs(sums - 1.0) <= SUM_TOLERANCE) | (block < 0).any(axis=1)
                bad += int(unsound.sum())
                beyond |= bool((block[padding[part][run]] != 0).any())
            if bad:
                raise ScoresError(
                    f"model {name!r}: the option probabilities of {bad} items are "
                    "negative, not finite or do not sum to 1",
                    hint="convert logits or log-probabilities to probabilities first",
                )
            if beyond:
                raise ScoresError(
                    f"model {name!r} has probabilities for options beyond an item's n_options",
                    hint="pad with 0, or correct n_options",
                )
