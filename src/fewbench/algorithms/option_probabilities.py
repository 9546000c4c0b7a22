"""Models' option probabilities: disagreement on items, and which option is right.

Disagreement is that of DISCO (Rubinstein et al. 2025), Eq. 1 and Proposition 1. Functions read one
model at a time, so memory holds a few arrays of shape (items, options) for any number of models.

A table of scores has no answer key. The right option is the one to which models that score on the
item give more probability, on average, than models that do not. A wrong option that most models
believe is thus not mistaken for it.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms import ties

Array = TypeVar("Array")
_BLOCK = 1 << 15  # numbers worked on at a time: they stay in the processor's cache
_TINY = np.finfo(np.float32).tiny
_BITS: dict[int, type[np.signedinteger[Any]]] = {2: np.int16, 4: np.int32, 8: np.int64}


def predictive_diversity(by_model: Iterable[NDArray[Any]], n_options: IntArray) -> FloatArray:
    """Predictive diversity score (PDS, Eq. 1): the mean over options of the largest probability.

    - `by_model`, arrays of shape (items, options): Each model's probabilities, 0 for options that
      an item lacks, NaN where not run.
    - `n_options`, shape (items,): Number C of options of each item.

    The authors' program takes the sum. Returns an array of shape (items,), 0 for an item that no
    model was run on.

    >>> agree, differ = [[1.0, 0.0]], [[0.0, 1.0]]
    >>> predictive_diversity([np.array(agree), np.array(differ)], np.array([2])).tolist()
    [1.0]
    """
    largest: NDArray[Any] | None = None
    for row in by_model:
        run = _without_missing(row)
        if largest is None:
            largest = np.zeros_like(run)
        # Floats that are not negative are ordered as their bits are, and half floats are compared
        # ten times faster so.
        bits = _BITS.get(run.dtype.itemsize)
        if bits is None:
            np.maximum(run, largest, out=largest)
        else:
            np.maximum(run.view(bits), largest.view(bits), out=largest.view(bits))
    return np.asarray(_some(largest).sum(axis=1, dtype=np.float64) / n_options)


def jensen_shannon(by_model: Iterable[NDArray[Any]]) -> FloatArray:
    """Generalized Jensen-Shannon divergence in nats: entropy of the mean minus mean entropy.

    It equals the mutual information between the model's identity and its prediction (Proposition
    1). `by_model` is as in `predictive_diversity`; the result has shape (items,).

    >>> split = [np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])]
    >>> jensen_shannon(split).round(4).tolist()  # log 2
    [0.6931]
    """
    total: NDArray[np.float32] | None = None
    plogp = n_run = np.zeros(0)
    for row in by_model:
        if total is None:
            total = np.zeros(row.shape, np.float32)
            plogp, n_run = np.zeros(len(row)), np.zeros(len(row))
        _add_p_and_plogp(np.ascontiguousarray(row), total, plogp)
        n_run += ~np.isnan(row[:, 0])
    n_run = np.maximum(n_run, 1.0)
    sums = _some(total)
    of_mean = np.empty(len(sums))
    step = max(1, _BLOCK // sums.shape[1])
    for at in range(0, len(sums), step):
        mean = sums[at : at + step] / n_run[at : at + step, None]
        of_mean[at : at + step] = -(mean * np.log(np.maximum(mean, _TINY))).sum(axis=1)
    return np.asarray(np.maximum(of_mean + plogp / n_run, 0.0))


def two_class(values: Iterable[FloatArray]) -> Iterable[FloatArray]:
    """Yield each model's probabilities (c, 1 - c) from its scores; NaN stays NaN."""
    return (np.stack([row, 1.0 - row], axis=1) for row in values)


def _without_missing(row: NDArray[Any]) -> NDArray[Any]:
    missing = np.isnan(row[:, 0])
    if missing.any():
        row = np.where(missing[:, None], 0, row)
    return np.ascontiguousarray(row)


def _add_p_and_plogp(row: NDArray[Any], total: NDArray[np.float32], plogp: FloatArray) -> None:
    """Add a model's p, and each item's sum of p log p (0 for NaN), a few items at a time."""
    step = max(1, _BLOCK // row.shape[1])
    for at in range(0, len(row), step):
        part = row[at : at + step]
        if part.dtype == np.float16:  # every half float there is, looked up
            codes = part.view(np.uint16)
            p, p_log_p = (np.take(table, codes, mode="clip") for table in _half_tables())
        else:
            p = np.nan_to_num(part.astype(np.float32))
            p_log_p = p * np.log(np.maximum(p, _TINY))
        total[at : at + step] += p
        plogp[at : at + step] += p_log_p.sum(axis=1)


@cache
def _half_tables() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return p and p log p of all 65,536 half floats, 0 for those outside [0, 1] and NaN."""
    p = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    p = np.where((p >= 0) & (p <= 1), p, np.float32(0))
    return p, p * np.log(np.maximum(p, _TINY))


def _some(array: Array | None) -> Array:
    if array is None:
        raise ValueError("there are no models to compare")
    return array


def right_options(
    by_model: Iterable[NDArray[Any]], values: FloatArray, n_options: IntArray
) -> IntArray:
    """Return each item's right option: the one that models with a right answer believe more.

    For an item that all models get right it is the most believed option; for one that none gets
    right, the least believed.

    - `by_model`, arrays of shape (items, options): Each model's probabilities, NaN where not run.
    - `values`, shape (models, items): Scores in [0, 1], NaN where not run; a fractional score
      counts as partly right.
    - `n_options`, shape (items,)

    >>> p = np.array([[[0.7, 0.2, 0.1]], [[0.1, 0.3, 0.6]], [[0.2, 0.1, 0.7]]])
    >>> right_options(p, np.array([[1.0], [0.0], [0.0]]), np.array([3])).tolist()
    [0]
    """
    sums: list[FloatArray] = []  # right, wrong
    counts = np.zeros((2, len(n_options)))
    for row, block in zip(values, by_model, strict=True):
        if not sums:
            sums = [np.zeros(block.shape), np.zeros(block.shape)]
        run = ~(np.isnan(row) | np.isnan(block).any(axis=1))
        p = np.where(run[:, None], block, 0.0).astype(np.float64)
        for at, share in enumerate((np.where(run, row, 0.0), np.where(run, 1.0 - row, 0.0))):
            sums[at] += share[:, None] * p
            counts[at] += share
    means = [
        total / np.where(count > 0, count, 1.0)[:, None]
        for total, count in zip(sums, counts, strict=True)
    ]
    lead = means[0] - means[1]
    lead[np.arange(lead.shape[1]) >= n_options[:, None]] = -np.inf
    return np.asarray(ties.argmax(lead, axis=1, scale=1e-3))


def probabilities_of(by_model: Iterable[NDArray[Any]], options: IntArray) -> FloatArray:
    """Return the probability of one option per item for each model, shape (models, items).

    `by_model` yields arrays of shape (items, options), NaN where not run.

    >>> p = np.array([[[0.7, 0.3], [0.4, 0.6]]])
    >>> probabilities_of(p, np.array([0, 1])).tolist()
    [[0.7, 0.6]]
    """
    items = np.arange(len(options))
    return np.array([block[items, options] for block in by_model], dtype=np.float64)
