"""Distances between items from the models' scores, and the source models nearest to a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewbench.support import BoolArray, FloatArray, IntArray

Metric = Literal["manhattan", "euclidean", "cosine", "correlation", "absolute-correlation"]
Some = IntArray | None
Part = slice | IntArray

_BLOCK = 128  # items at a time: bounds the memory beyond the result
_STRIP = 256  # items at a time in single precision
MANY = 8000
"""Items above which rows of distances are computed on demand: a matrix of all pairs has 256 MB."""
_DECIMALS = 12  # of cosines, so that rounding does not part equal distances


def item_distances(
    columns: ArrayLike,
    metric: Metric = "manhattan",
    standardise: bool = False,
    among: IntArray | None = None,
) -> NDArray[np.float32]:
    """Distances between all pairs of items, or from all items to some, as float32.

    The matrix is exactly symmetric, identical items have distance exactly 0, and equal distances
    stay equal: where each model gives only two values (right or wrong), one matrix product sums
    whole numbers. Memory is the result and some blocks of rows.

    - `columns`, shape (n_items, n_models): Finite scores, a column per model.
    - `metric` ("manhattan", "euclidean", "cosine", "correlation", "absolute-correlation"): The last
      three are 1 minus the cosine, the Pearson correlation or its absolute value. An item of zeros
      (for the correlations: of equal scores) is at 0 from items like it, at 1 from others.
    - `standardise`: First scale each model's column to mean 0 and (population) variance 1; a
      constant column becomes 0.
    - `among`, shape (n_some,): Positions of the items to measure distances to; by default all.

    Raises ValueError if `columns` is not a non-empty matrix of finite numbers, or the metric is
    unknown.

    >>> item_distances([[0, 1, 1], [1, 1, 0], [1, 1, 1]]).tolist()
    [[0.0, 2.0, 1.0], [2.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    x = np.asarray(columns, dtype=np.float64)
    if x.ndim != 2 or x.size == 0:
        raise ValueError(f"columns must be a non-empty (items, models) matrix; got {x.shape}")
    if not np.isfinite(x).all():
        raise ValueError("columns must be finite; found NaN or infinity")
    if metric not in get_args(Metric):
        raise ValueError(
            f"unknown metric {metric!r}; expected one of {', '.join(get_args(Metric))}"
        )

    if metric in ("manhattan", "euclidean"):
        is_high, apart = _two_values(x, standardise)
        if is_high is not None:
            weights = apart if metric == "manhattan" else apart**2
            d = _fill(len(x), Disagreements(is_high, weights).between, among)
            return d if metric == "manhattan" else np.sqrt(d, out=d)
    if standardise:
        x = standardised(x)
    if metric == "cosine":
        return _cosine(x, among)
    if metric in ("correlation", "absolute-correlation"):
        centred = x - x.mean(axis=1, keepdims=True)
        centred[x.min(axis=1) == x.max(axis=1)] = 0  # not merely nearly so
        d = _cosine(centred, among)
        return d if metric == "correlation" else np.minimum(d, 2 - d, out=d)

    from scipy.spatial.distance import cdist

    name: Literal["cityblock", "euclidean"]
    name = "cityblock" if metric == "manhattan" else "euclidean"
    return _fill(len(x), lambda rows, columns: cdist(x[rows], x[columns], name), among)


def standardised(x: FloatArray) -> FloatArray:
    """Scale each column to mean 0 and (population) variance 1; a constant column becomes 0.

    >>> standardised(np.array([[0.0, 3.0], [2.0, 3.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    is_constant = x.min(axis=0) == x.max(axis=0)
    z = (x - x.mean(axis=0)) / np.where(is_constant, 1.0, x.std(axis=0))
    z[:, is_constant] = 0
    return np.asarray(z, dtype=np.float64)


def _two_values(x: FloatArray, standardise: bool) -> tuple[BoolArray | None, FloatArray]:
    """Where each column has the higher of its two values, None if some has more; their distance.

    With `standardise`, the distance is that of `standardised` columns.
    """
    low, high = x.min(axis=0), x.max(axis=0)
    is_high = x == high
    if not (is_high | (x == low)).all():
        return None, high - low
    if standardise:
        mean, deviation = x.mean(axis=0), np.where(low == high, 1.0, x.std(axis=0))
        low, high = (low - mean) / deviation, (high - mean) / deviation
    return is_high, high - low


class Disagreements:
    """Sums of the weights of the columns in which two rows of truth values differ.

    Weights become whole numbers (without a common factor, or with so many bits), so each sum is
    exact in whatever order a matrix product adds. A sum is off by `error` at most.
    """

    def __init__(self, x: BoolArray, weights: FloatArray, bits: int = 51) -> None:
        largest = float(weights.max())
        dtype: type[np.float32] | type[np.float64] = np.float32 if bits < 24 else np.float64
        self._unit, self.error = 1.0, 0.0
        if np.isin(weights, (0.0, largest)).all():
            whole, self._unit, dtype = (weights > 0).astype(np.float64), largest, np.float32
        else:  # by a power of 2, which rounds nothing
            unit = 2.0 ** (np.ceil(np.log2(weights.sum())) - bits)
            whole, self.error = np.rint(weights / unit) * unit, (len(weights) + 1) / 2 * unit
        self._x, self._weights = x, whole.astype(dtype)
        self._right = np.ones((x.shape[1] + 2, len(x)), dtype)
        self._right[:-2] = x.T
        self._right[-1] = self._weights @ self._right[:-2]

    def between(self, rows: Part, columns: Part) -> NDArray[Any]:
        """Return the sums of some rows with others, shape (rows, columns)."""
        x = self._x[rows]
        # What either has, less twice what both have, in one product.
        left = np.ones((len(x), x.shape[1] + 2), self._weights.dtype)
        np.multiply(x, -2 * self._weights, out=left[:, :-2])
        left[:, -2] = self._right[-1, rows]
        d: NDArray[Any] = left @ self._right[:, columns]
        return d if self._unit == 1.0 else np.multiply(d, self._unit, out=d)


class DistancesOnDemand:
    """Distances between all pairs of many items, for `kmedoids`: no matrix of them is kept.

    Rows are exactly those of the matrix. `rough` rows take half the time, and are off by `error` at
    most.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, x: BoolArray, weights: FloatArray) -> None:
        self._exact, self._rough = Disagreements(x, weights), Disagreements(x, weights, 22)
        self.error = self._rough.error
        self._strip, self._first = np.empty((0, len(x)), np.float32), 0

    def __len__(self) -> int:
        return self._strip.shape[1]

    def __getitem__(self, rows: Part) -> NDArray[np.float32]:
        return self._exact.between(rows, slice(None)).astype(np.float32, copy=False)

    def rough(self, lo: int, hi: int) -> NDArray[np.float32]:
        """Return rows lo .. hi-1; whole strips are computed at a time."""
        if not self._first <= lo < hi <= self._first + len(self._strip):
            strip = slice(lo, max(hi, lo + _STRIP))
            self._strip, self._first = self._rough.between(strip, slice(None)), lo
        return self._strip[lo - self._first : hi - self._first]


def standardised_distances(columns: FloatArray) -> NDArray[np.float32] | DistancesOnDemand:
    """Manhattan distances between all pairs of items, each model's column standardized first.

    For many items with two values from each model, rows are computed on demand.
    """
    is_high, apart = _two_values(columns, standardise=True)
    if len(columns) <= MANY or is_high is None:
        return item_distances(columns, standardise=True)
    return DistancesOnDemand(is_high, apart)


def _cosine(x: FloatArray, among: Some) -> NDArray[np.float32]:
    largest = np.abs(x).max(axis=1, keepdims=True)
    zero = np.flatnonzero(largest == 0)
    unit = x / np.where(largest > 0, largest, 1.0)  # so that no square over- or underflows
    norm = np.sqrt((unit**2).sum(axis=1, keepdims=True))
    unit /= np.where(norm > 0, norm, 1.0)

    def between(rows: Part, columns: Part) -> NDArray[Any]:
        d: FloatArray = 1 - unit[rows] @ unit[columns].T
        np.round(d, _DECIMALS, out=d)
        np.clip(d, 0, 2, out=d)
        return d

    distances = _fill(len(x), between, among)
    also_zero = zero if among is None else np.flatnonzero(np.isin(among, zero))
    distances[np.ix_(zero, also_zero)] = 0
    return distances


def _fill(
    n: int, between: Callable[[Part, Part], NDArray[Any]], among: Some
) -> NDArray[np.float32]:
    """Fill a matrix by blocks of rows."""
    if among is not None:
        rows = np.empty((len(among), n), np.float32)
        for lo in range(0, len(among), _BLOCK):
            rows[lo : lo + _BLOCK] = between(among[lo : lo + _BLOCK], slice(None))
        rows[np.arange(len(among)), among] = 0
        return rows.T
    out = np.empty((n, n), np.float32)
    for lo in range(0, n, _BLOCK):
        hi = min(lo + _BLOCK, n)
        out[lo:hi, lo:] = between(slice(lo, hi), slice(lo, None))
        out[hi:, lo:hi] = out[lo:hi, hi:].T
        square = out[lo:hi, lo:hi]
        square[:] = np.minimum(square, square.T)  # a product's last bits need not be symmetric
    np.fill_diagonal(out, 0)
    return out


def average_count(distances: NDArray[np.float32], n_sources: int, *, inclusive: bool = True) -> int:
    """Return how many native sources a target has (TailoredBench, Section 3.3, Eq. 4-5).

    With d the mean distance over all pairs of models, the number of sources within d, averaged over
    the targets and rounded down. For a single target the average is over the sources, each treated
    as a target.

    - `distances`, shape (models, models): The sources first, then the targets.
    - `inclusive`: Whether a source at exactly d is within d.
    """
    counts = within_mean(distances, n_sources, inclusive=inclusive)
    of_targets = counts[n_sources:]
    return int((of_targets if len(of_targets) > 1 else counts).mean())


def within_mean(
    distances: NDArray[np.float32], n_sources: int, *, inclusive: bool = True
) -> IntArray:
    """Return how many sources are within the mean distance of each model, itself left out."""
    mean = distances[np.triu_indices(len(distances), 1)].mean(dtype=np.float64)
    to_sources = distances[:, :n_sources]
    within = to_sources <= mean if inclusive else to_sources < mean
    np.fill_diagonal(within, False)  # no model is its own source
    return np.asarray(within.sum(axis=1))


def nearest_sources(
    distances: NDArray[np.float32], n_sources: int, counts: Sequence[int]
) -> list[IntArray]:
    """Return the positions of each target's nearest sources, at least one each, ascending.

    If sources are equally near, the first is taken. `distances` are as in `average_count`.

    >>> models = np.array([[0.0, 0], [0, 1], [1, 1], [1, 1], [1, 1], [0, 0]])
    >>> distances = item_distances(models, standardise=True)
    >>> count = average_count(distances, 4)
    >>> [natives.tolist() for natives in nearest_sources(distances, 4, [count] * 2)]
    [[2, 3], [0, 1]]
    """
    nearest = nearest_first(distances, n_sources)
    return [np.sort(order[: max(1, n)]) for order, n in zip(nearest, counts, strict=True)]


def nearest_first(distances: NDArray[np.float32], n_sources: int) -> IntArray:
    """Order the sources by distance to each target, shape (targets, sources); ties in table order.

    `distances`, shape (models, models), has the sources first, then the targets.
    """
    return distances[n_sources:, :n_sources].argsort(axis=1, kind="stable")
