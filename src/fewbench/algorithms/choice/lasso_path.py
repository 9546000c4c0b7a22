"""The lasso's path: the first set of so many columns that have coefficients other than 0."""

import warnings

import numpy as np
from numpy.typing import NDArray

from fewbench._threads import one_thread

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def lasso_support(x: FloatArray, y: FloatArray, k: int) -> IntArray:
    """Return the first k columns that the lasso uses at once as its penalty falls.

    The path is followed exactly from knot to knot (least angle regression, Efron et al. 2004).
    A lasso never uses more columns than rows - 1; then the largest set of the path is returned.
    Of identical columns only the first takes part.

    Parameters
    ----------
    x : ndarray, shape (rows, columns)
    y : ndarray, shape (rows,)
    k : int

    Returns
    -------
    ndarray of int, at most k
        Columns, those of larger coefficients × spread first.

    Examples
    --------
    >>> x = np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> lasso_support(x, np.array([0.1, 1.0, 1.2, 0.2]), 1).tolist()
    [0]
    """
    none = np.array([], dtype=np.intp)
    varies = np.flatnonzero(x.max(axis=0) > x.min(axis=0))
    if not len(varies) or y.max() - y.min() <= 0:
        return none
    _, first = np.unique(x[:, varies].T, axis=0, return_index=True)
    columns = varies[np.sort(first)]
    centred = x[:, columns] - x[:, columns].mean(axis=0)
    # A path that was cut short is followed anew: ask for as many steps as k columns took on the
    # tables tried, or for all where no path has k columns.
    most = 8 * len(x) + 128
    steps = min(most, round(k * (1 + 3 * (k / len(x)) ** 2)) + 16) if k < len(x) else most
    coefficients = _path(centred, y - y.mean(), steps)
    used = (coefficients != 0).sum(axis=0)
    while used.max() < k and len(used) > steps and steps < most:  # columns left it again
        steps = min(2 * steps, most)
        coefficients = _path(centred, y - y.mean(), steps)
        used = (coefficients != 0).sum(axis=0)
    enough = np.flatnonzero(used >= k)
    knot = int(enough[0]) if len(enough) else int(used.argmax())
    weight = np.abs(coefficients[:, knot]) * np.sqrt((centred**2).sum(axis=0))
    order = np.argsort(-weight, kind="stable")[: int(used[knot])]
    return np.asarray(columns[order[:k]], dtype=np.intp)


def _path(x: FloatArray, y: FloatArray, steps: int) -> FloatArray:
    """Return the coefficients at every knot, shape (columns, knots)."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import lars_path

    with warnings.catch_warnings(), one_thread():  # sums in another order could turn ties
        # It warns of columns that depend on others, and drops them: so be it.
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, _, coefficients = lars_path(x, y, method="lasso", max_iter=steps)
    return np.asarray(coefficients)
