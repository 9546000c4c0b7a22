"""Models that are the same, or nearly: real leaderboards have them.

An estimate of a model whose twin is among the sources is much better than one of a new model,
so twins across sources and targets are counted, and residuals are cross-fitted by groups of them.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
TWIN_CORRELATION = 0.8
DUPLICATE_CORRELATION = 0.95


def correlations(a: FloatArray, b: FloatArray) -> FloatArray:
    """Correlation of every row of `a` with every row of `b`; identical rows have 1.

    A constant row has correlation 0 with all rows but its copies.
    """
    rows_a, rows_b = _standard(a), _standard(b)
    result = rows_a @ rows_b.T
    constant_a, constant_b = ~rows_a.any(axis=1), ~rows_b.any(axis=1)
    same = np.equal.outer(a[:, 0], b[:, 0]) & np.logical_and.outer(constant_a, constant_b)
    return np.where(same, 1.0, result)


def nearest_twin(targets: FloatArray, sources: FloatArray) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return each target's highest correlation with a source, and which source that is.

    Examples
    --------
    >>> sources = np.array([[1.0, 0, 1, 0], [1, 1, 0, 0]])
    >>> r, which = nearest_twin(np.array([[1.0, 0, 1, 0]]), sources)
    >>> r.round(6).tolist(), which.tolist()
    ([1.0], [0])
    """
    all_of = correlations(targets, sources)
    return np.asarray(all_of.max(axis=1)), np.asarray(all_of.argmax(axis=1))


def duplicate_groups(
    values: FloatArray, families: NDArray[np.object_] | None = None
) -> NDArray[np.intp]:
    """Group models that are all but the same or of one family, shape (models,): group numbers.

    All but the same: a correlation of `DUPLICATE_CORRELATION`. Near-twins are not enough here,
    for chains of them can join most of a table.

    Parameters
    ----------
    values : ndarray, shape (models, items)
    families : ndarray of str, shape (models,), optional
        An empty text is no family.
    """
    from scipy.sparse.csgraph import connected_components

    linked = correlations(values, values) >= DUPLICATE_CORRELATION
    if families is not None:
        linked |= np.equal.outer(families, families) & (families != "")[:, None]
    return np.asarray(connected_components(linked, directed=False)[1], dtype=np.intp)


def _standard(rows: FloatArray) -> FloatArray:
    centred = rows - rows.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centred, axis=1, keepdims=True)
    constant = norms <= 1e-9 * np.sqrt(rows.shape[1])
    return np.where(constant, 0.0, centred / np.where(constant, 1.0, norms))
