"""Option probabilities, which may exceed memory: read model by model, or some items at a time.

They are one .npy file with models first, mapped into memory. A model's probabilities lie together,
and so do its probabilities of neighboring items: blocks of items are read in pieces of megabytes.
A chunked store such as zarr would read single items with fewer seeks, but every model with more.
"""

import hashlib
from collections.abc import Iterable, Iterator
from mmap import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._blocks import blocks
from fewbench._memory import check_fits
from fewbench._names import counted
from fewbench._types import FloatArray, IntArray
from fewbench.errors import ScoresError

SUM_TOLERANCE = 0.02  # float16 probabilities of a thousand options sum to 1 only this closely


class OptionProbabilities:
    """Predictive probabilities of models for the options of items.

    Parameters
    ----------
    array : ndarray, shape (models, items, options), any float type
        In memory or memory-mapped, padded with 0 for options that an item does not have.
    models, items : ndarray of int, optional
        Rows and columns of `array` in this view, in order; all by default.
    known : str, optional
        The digest of this view, if known.

    Examples
    --------
    >>> p = OptionProbabilities(np.array([[[0.9, 0.1], [0.5, 0.5]]]))
    >>> p.shape
    (1, 2, 2)
    >>> p.of_items(np.array([1])).tolist()
    [[[0.5, 0.5]]]
    """

    def __init__(
        self,
        array: NDArray[Any],
        models: IntArray | None = None,
        items: IntArray | None = None,
        known: str | None = None,
    ) -> None:
        if array.ndim != 3 or array.dtype.kind != "f" or array.shape[2] == 0:
            raise ScoresError(
                f"option probabilities have shape {array.shape} and type {array.dtype}",
                hint="give floats of shape (models, items, options)",
            )
        self._array = array
        self._models = np.arange(array.shape[0]) if models is None else models
        self._items = items  # None for all, which saves copies of rows
        self._known = known

    def __getstate__(self) -> dict[str, Any]:
        """Send a mapped file to other processes as its name, not its content."""
        state: dict[str, Any] = dict(vars(self))
        array, base = self._array, vars(self)["_array"].base  # a slice's base is an array
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
        vars(self).update(state)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of models, items and options."""
        n_items = self._array.shape[1] if self._items is None else len(self._items)
        return len(self._models), n_items, self._array.shape[2]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The stored float type."""
        return self._array.dtype

    def of_model(self, position: int) -> NDArray[Any]:
        """Return one model's probabilities, shape (items, options), in the stored type."""
        row = self._array[self._models[position]]
        return np.asarray(row if self._items is None else row[self._items])

    def by_model(self) -> Iterator[NDArray[Any]]:
        """Yield each model's probabilities in turn: one pass, one model in memory."""
        for position in range(len(self._models)):
            yield self.of_model(position)

    def of_items(self, items: IntArray) -> FloatArray:
        """Return all models' probabilities on a few items, shape (models, len(items), options).

        Raises FewbenchError if there is no memory for them.
        """
        columns = items if self._items is None else self._items[items]
        shape = (len(self._models), len(columns), self._array.shape[2])
        check_fits(
            8.0 * shape[0] * shape[1] * shape[2],
            f"option probabilities of {counted(shape[0], 'model')} on {counted(shape[1], 'item')}",
        )
        out = np.empty(shape)
        order = np.argsort(columns, kind="stable")  # forward through the file
        for i, model in enumerate(self._models):
            out[i, order] = self._array[model][columns[order]]
        return out

    def by_items(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield some items' probabilities in turn, as a slice of items and all models' numbers.

        The arrays have shape (models, items of the slice, options) and the stored type. One pass
        over the file; a block has 8 million numbers, or one item.
        """
        n_models, n_items, n_options = self.shape
        for part in blocks(n_items, n_models * n_options):
            columns = part if self._items is None else self._items[part]
            block = np.empty((n_models, part.stop - part.start, n_options), self.dtype)
            for i, model in enumerate(self._models):
                block[i] = self._array[model][columns]
            yield part, block

    def take(
        self, models: IntArray | None = None, items: IntArray | None = None
    ) -> "OptionProbabilities":
        """Return a view of some models and items; nothing is copied."""
        rows = self._models if models is None else self._models[models]
        columns = self._items
        if items is not None:
            columns = items if columns is None else columns[items]
        return OptionProbabilities(self._array, rows, columns)

    def digest(self, models: Iterable[int] | None = None) -> str:
        """Return a hash of shape, type and probabilities (of some models, or all)."""
        if models is None and self._known is not None:
            return self._known
        found = hashlib.sha256(repr((self.shape, self.dtype.str)).encode())
        for position in range(len(self._models)) if models is None else models:
            found.update(np.ascontiguousarray(self.of_model(position)).data)
        return found.hexdigest()

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
