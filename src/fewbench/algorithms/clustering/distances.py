"""Distances between items from the models' scores, and the source models nearest to a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewbench._types import BoolArray, FloatArray, IntArray

Metric = Literal["manhattan", "euclidean", "cosine", "correlation", "absolute-correlation"]
Some = IntArray | None
Part = slice | IntArray

_BLOCK = 256  # items at a time: bounds the memory beyond the result
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
    x = np.array(columns, dtype=np.float64)
    if x.ndim != 2 or x.size == 0:
        raise ValueError(f"columns must be a non-empty (items, models) matrix; got {x.shape}")
    if not np.isfinite(x).all():
        raise ValueError("columns must be finite; found NaN or infinity")
    if metric not in get_args(Metric):
        raise ValueError(
            f"unknown metric {metric!r}; expected one of {', '.join(get_args(Metric))}"
        )

    if standardise:
        x = standardised(x)
    if metric == "cosine":
        return _cosine(x, among)
    if metric in ("correlation", "absolute-correlation"):
        centred = x - x.mean(axis=1, keepdims=True)
        centred[x.min(axis=1) == x.max(axis=1)] = 0  # not merely nearly so
        d = _cosine(centred, among)
        return d if metric == "correlation" else np.minimum(d, 2 - d, out=d)

    low, high = x.min(axis=0), x.max(axis=0)
    is_high = x == high
    if (is_high | (x == low)).all():
        if metric == "manhattan":
            return _weighted_disagreement(is_high, high - low, among)
        squared = _weighted_disagreement(is_high, (high - low) ** 2, among)
        return np.sqrt(squared, out=squared)

    from scipy.spatial.distance import cdist

    name: Literal["cityblock", "euclidean"]
    name = "cityblock" if metric == "manhattan" else "euclidean"
    return _fill(len(x), lambda rows, columns: cdist(x[rows], x[columns], name), among)


def standardised(x: FloatArray) -> FloatArray:
    """Scale each column to mean 0 and (population) variance 1; a constant column becomes 0.

    >>> standardised(np.array([[0.0, 3.0], [2.0, 3.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    deviation = x.std(axis=0)
    constant = x.min(axis=0) == x.max(axis=0)
    z = (x - x.mean(axis=0)) / np.where(constant, 1.0, deviation)
    z[:, constant] = 0
    return np.asarray(z, dtype=np.float64)


def _weighted_disagreement(x: BoolArray, weights: FloatArray, among: Some) -> NDArray[np.float32]:
    """Sum of the weights of the columns in which two rows differ.

    Weights become whole numbers (without a common factor, or with 51 bits), so each sum is exact
    in whatever order a matrix product adds.
    """
    largest = float(weights.max())
    dtype: type[np.float32] | type[np.float64]
    if np.isin(weights, (0.0, largest)).all():
        whole, unit, dtype = (weights > 0).astype(np.float64), largest, np.float32
    else:
        unit = 2.0 ** (np.ceil(np.log2(weights.sum())) - 51)
        whole, dtype = np.rint(weights / unit), np.float64
    if dtype is np.float64:  # by a power of 2, which rounds nothing
        whole, unit = whole * unit, 1.0
    plain = x.astype(dtype)
    weighted = plain * whole.astype(dtype)
    total = weighted.sum(axis=1, keepdims=True)
    ones = np.ones_like(total)
    # What either has, less twice what both have, in one product.
    left = np.concatenate([weighted * -2, total, ones], axis=1)
    right = np.concatenate([plain, ones, total], axis=1)

    def between(rows: Part, columns: Part) -> NDArray[Any]:
        d: NDArray[Any] = left[rows] @ right[columns].T
        return d if unit == 1.0 else np.multiply(d, unit, out=d)

    return _fill(len(x), between, among)


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

    Of equally near sources the first is taken. `distances` are as in `average_count`.

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
