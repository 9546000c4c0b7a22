"""Optimal transport between columns of scores, and new columns made of it.

Uniform masses, Euclidean costs, the linear programme solved exactly (network simplex of the
optional package POT). The best plan need not be unique: of several of the same cost the solver
returns one, always the same for the same matrix.
"""

import math

import numpy as np

from fewbench._types import FloatArray
from fewbench.errors import MissingExtraError

_MOST_PIVOTS = 10**9
_DECIMALS = 12


def check_solver() -> None:
    """Raise MissingExtraError if the solver is not installed."""
    try:
        import ot  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "optimal transport needs the package POT", hint="pip install 'fewbench[transport]'"
        ) from error


def column_distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """Euclidean distances between the columns of a and those of b, shape (columns, columns).

    By one matrix product. Where all scores are whole numbers (right or wrong, say) the squares
    are exact, so equal distances are equal to the last bit.

    Examples
    --------
    >>> column_distances(np.array([[0.0, 1], [0, 1]]), np.array([[1.0], [0]])).tolist()
    [[1.0], [1.0]]
    """
    squares = (a**2).sum(axis=0)[:, None] + (b**2).sum(axis=0) - 2.0 * (a.T @ b)
    # What is left of equal columns by rounding is not a distance.
    return np.asarray(np.sqrt(np.maximum(np.round(squares, _DECIMALS), 0.0)))


def barycentric_weights(costs: FloatArray) -> FloatArray:
    """Solve the transport problem and return the plan, each column divided by its sum.

    Parameters
    ----------
    costs : ndarray, shape (from, to)
        Both sides have uniform masses of the same total.

    Returns
    -------
    ndarray, shape (from, to)
        Column k says in what shares the mass that arrives at k comes from where.

    Raises
    ------
    MissingExtraError
        If POT is not installed.

    Examples
    --------
    >>> barycentric_weights(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    check_solver()
    import ot

    n_from, n_to = costs.shape
    # Whole masses, so that the solver only adds and subtracts whole numbers and the shares are
    # exact: a share of one half is one half.
    common = math.gcd(n_from, n_to)
    given, taken = n_to // common, n_from // common
    plan = ot.emd(
        np.full(n_from, float(given)),
        np.full(n_to, float(taken)),
        costs,
        numItermax=_MOST_PIVOTS,
        center_dual=False,
    )
    return np.asarray(plan / taken, dtype=np.float64)


def oversample(
    selected: FloatArray, unselected: FloatArray, answers: FloatArray, *, binary: bool
) -> tuple[FloatArray, FloatArray]:
    """Make a column for every unselected one, a mixture of the selected transported to it.

    Parameters
    ----------
    selected : ndarray, shape (sources, selected items)
        At least one.
    unselected : ndarray, shape (sources, unselected items)
        At least one.
    answers : ndarray, shape (selected items,)
        A target's scores on the selected items, mixed in the same shares.
    binary : bool
        Set what is made to 0 or 1, one half and more being 1.

    Returns
    -------
    columns : ndarray, shape (sources, unselected items)
    answers : ndarray, shape (unselected items,)
    """
    shares = barycentric_weights(column_distances(selected, unselected))
    columns, mixed = selected @ shares, answers @ shares
    if binary:
        columns, mixed = _halved(columns), _halved(mixed)
    return np.asarray(columns), np.asarray(mixed)


def _halved(values: FloatArray) -> FloatArray:
    return (np.round(values, _DECIMALS) >= 0.5).astype(np.float64)
