"""How much models disagree on an item, from their option probabilities, in one pass.

DISCO (Rubinstein et al. 2025), Eq. 1 and Proposition 1. All take the models' probabilities one
model at a time, so memory holds a few arrays of shape (items, options) whatever the number of
models.
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Array = TypeVar("Array")
Normalisation = Literal["none", "options", "excess"]
_BLOCK = 1 << 15  # elements worked on at a time: they stay in the processor's cache


def predictive_diversity(
    by_model: Iterable[NDArray[Any]],
    n_options: NDArray[np.intp],
    normalise: Normalisation = "options",
) -> FloatArray:
    """Predictive diversity score (PDS): the sum over options of the largest probability.

    Parameters
    ----------
    by_model : iterable of ndarray, shape (items, options)
        Each model's probabilities, 0 for options that an item lacks, NaN where not run.
    n_options : ndarray of int, shape (items,)
        Number C of options of each item.
    normalise : {"options", "none", "excess"}
        Divide by C (Eq. 1), not at all (the authors' program; the same ranking when C is equal),
        or take (PDS - 1) / (C - 1), which is 0 for agreement and 1 for full disagreement
        whatever C.

    Returns
    -------
    ndarray, shape (items,)

    Examples
    --------
    >>> agree, differ = [[1.0, 0.0]], [[0.0, 1.0]]
    >>> predictive_diversity([np.array(agree), np.array(differ)], np.array([2])).tolist()
    [1.0]
    """
    largest: NDArray[np.float32] | None = None
    for row in by_model:
        if largest is None:
            largest = np.zeros(row.shape, np.float32)
        _in_blocks(lambda part, total: np.fmax(part, total, out=total), row, largest)
    total: FloatArray = _some(largest).sum(axis=1, dtype=np.float64)
    if normalise == "none":
        return total
    if normalise == "options":
        return np.asarray(total / n_options)
    return np.asarray((total - 1.0) / np.maximum(n_options - 1, 1))


def jensen_shannon(by_model: Iterable[NDArray[Any]]) -> FloatArray:
    """Generalised Jensen-Shannon divergence: entropy of the mean minus mean of the entropies.

    Equals the mutual information between the model's identity and its prediction
    (Proposition 1), in nats.

    Parameters
    ----------
    by_model : iterable of ndarray, shape (items, options)
        Each model's probabilities, 0 for options that an item lacks, NaN where not run.

    Returns
    -------
    ndarray, shape (items,)

    Examples
    --------
    >>> split = [np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])]
    >>> jensen_shannon(split).round(4).tolist()  # log 2
    [0.6931]
    """
    total: NDArray[np.float32] | None = None
    plogp: NDArray[np.float32] | None = None
    n_run: NDArray[np.float64] | None = None
    for row in by_model:
        if total is None or plogp is None or n_run is None:
            total = np.zeros(row.shape, np.float32)
            plogp = np.zeros(row.shape, np.float32)
            n_run = np.zeros(len(row))
        _in_blocks(_add_p_and_plogp, row, total, plogp)
        n_run += ~np.isnan(row[:, 0])
    mean = _some(total) / np.maximum(_some(n_run), 1.0)[:, None]
    of_mean = -(mean * np.log(np.maximum(mean, np.finfo(np.float32).tiny))).sum(axis=1)
    mean_of = -_some(plogp).sum(axis=1, dtype=np.float64) / np.maximum(_some(n_run), 1.0)
    return np.asarray(np.maximum(of_mean - mean_of, 0.0))


def correctness_variance(values: FloatArray) -> FloatArray:
    """Variance over models of the score on each item, shape (items,); NaN cells are left out.

    For binary scores with mean p this is p (1 - p).
    """
    return np.asarray(np.nanvar(values, axis=0))


def two_class(values: FloatArray) -> Iterable[FloatArray]:
    """Yield each model's probabilities (c, 1 - c), for scores without option probabilities."""
    return (np.stack([row, 1.0 - row], axis=1) for row in values)


def _add_p_and_plogp(
    part: NDArray[np.float32], total: NDArray[np.float32], plogp: NDArray[np.float32]
) -> None:
    np.nan_to_num(part, copy=False)
    total += part
    logs = np.log(np.maximum(part, np.finfo(np.float32).tiny))
    logs *= part
    plogp += logs


def _in_blocks(step: Callable[..., object], row: NDArray[Any], *state: NDArray[np.float32]) -> None:
    """Run `step` on flat, cache-sized float32 pieces of a model's row and of the state."""
    flat = np.ascontiguousarray(row).reshape(-1)
    states = [array.reshape(-1) for array in state]
    for at in range(0, flat.size, _BLOCK):
        piece = slice(at, at + _BLOCK)
        step(flat[piece].astype(np.float32), *(array[piece] for array in states))


def _some(array: Array | None) -> Array:
    if array is None:
        raise ValueError("there are no models to compare")
    return array
