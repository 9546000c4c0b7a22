"""Choices between computed numbers: numbers that differ only by rounding are equal; the first wins.

The last bits of a sum depend on the order in which it is added, which differs between processors,
numbers of threads and builds of a library. A choice that hangs on them would not be the same
everywhere. Wherever numbers may be equal for a reason (items that all models answer alike, models
with the same score), the choice between them is made here. Numbers count as equal if they differ by
at most `CLOSE` of the largest one, or of `scale` if that is larger: the size of the numbers whose
difference they are.

A library that makes choices of its own gets numbers without such doubt: those on a `Grid`, where
equal numbers stay equal, as in the splits of a tree; `shaken` ones, where it would compute nearly
equal numbers of its own, as in k-means.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._types import FloatArray, IntArray

CLOSE = 1e-9
"""Far above the rounding of a sum in double precision (about 1e-15 of it), and far below what a
difference of two scores can mean."""
BITS = 30
"""Binary digits of the largest number that a `Grid` keeps: about nine decimal ones."""


def argmax(values: NDArray[Any], axis: int | None = None, scale: Any = 0.0) -> Any:
    """Return the positions of the largest numbers, as `numpy.argmax` does.

    >>> int(argmax(np.array([0.1, 0.3, 0.1 + 0.2])))
    1
    """
    best = values.max(axis=axis, keepdims=True)
    return (values >= best - _slack(best, scale)).argmax(axis=axis)


def argmin(values: NDArray[Any], axis: int | None = None, scale: Any = 0.0) -> Any:
    """Return the positions of the smallest numbers, as `numpy.argmin` does.

    >>> argmin(np.array([[0.1 + 0.2, 0.3], [0.5, 0.4]]), axis=1).tolist()
    [0, 1]
    """
    best = values.min(axis=axis, keepdims=True)
    return (values <= best + _slack(best, scale)).argmax(axis=axis)


def levels(values: NDArray[Any], scale: float = 0.0) -> IntArray:
    """Number the different values along the last axis, from the smallest.

    Numbers that are equal to their neighbors get the same level.

    >>> levels(np.array([0.3, 0.1 + 0.2, 0.7, 0.1])).tolist()
    [1, 1, 2, 0]
    """
    order = np.argsort(values, axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=-1)
    sizes = np.where(np.isfinite(values), np.abs(values), 0.0)
    slack = _slack(sizes.max(axis=-1, keepdims=True, initial=0.0), scale)
    level = np.zeros(values.shape, dtype=np.intp)
    rises = ordered[..., 1:] > ordered[..., :-1] + slack
    np.put_along_axis(level, order[..., 1:], np.cumsum(rises, axis=-1), axis=-1)
    return level


def argsort(values: NDArray[Any], scale: float = 0.0) -> IntArray:
    """Return the positions in increasing order along the last axis; equal numbers as they come.

    >>> argsort(np.array([0.3, 0.1 + 0.2, 0.3, 0.1])).tolist()
    [3, 0, 1, 2]
    """
    return np.asarray(np.argsort(levels(values, scale), axis=-1, kind="stable"))


def at_least(values: Any, bound: Any, scale: Any = 0.0) -> Any:
    """Return whether numbers reach a bound.

    >>> bool(at_least(0.3, 0.1 + 0.2)), bool(at_least(0.29, 0.3))
    (True, False)
    """
    return values >= bound - _slack(bound, scale)


class Grid:
    """Rounds numbers to about nine digits of the largest of some.

    To whole multiples of a power of 2, of which sums are exact in any order.

    >>> numbers = np.array([0.1 + 0.2, 0.3])
    >>> first, second = Grid(numbers)(numbers)
    >>> bool(first == second)
    True
    """

    def __init__(self, values: FloatArray) -> None:
        size = float(np.abs(values).max(initial=0.0))
        self._unit = 2.0 ** (np.ceil(np.log2(size)) - BITS) if size else 1.0

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return the numbers on the grid."""
        return np.asarray(np.rint(values / self._unit) * self._unit)


def shaken(values: FloatArray, by: float = 1e-7) -> FloatArray:
    """Return numbers moved at random by up to `by` of the largest one, everywhere by the same.

    >>> shaken(np.array([0.5, 0.5])).round(6).tolist()
    [0.5, 0.5]
    """
    size = by * float(np.abs(values).max(initial=0.0))
    rng = np.random.default_rng(0)
    return np.asarray(values + size * rng.uniform(-1.0, 1.0, values.shape))


def _slack(size: Any, scale: Any) -> Any:
    """Return by how much equal numbers may differ; 0 where the largest one is infinite."""
    slack = CLOSE * np.maximum(np.abs(size), scale)
    return np.where(np.isfinite(slack), slack, 0.0)
