"""The best facilities exactly, by mixed-integer programming.

The p-median problem: with y[j] whether j is chosen and x[i, j] whether j stands for i,

    maximise sum of S[i, j] x[i, j]   with   sum_j x[i, j] <= 1,  x[i, j] <= y[j],  sum y = k.

Only y need be whole; x then follows. HiGHS solves it for some hundred rows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewbench.algorithms.choice.facility_location import coverage

__all__ = ["BestFacilities", "best_facilities"]


@dataclass(frozen=True, eq=False)
class BestFacilities:
    """The best choice that was found.

    Attributes
    ----------
    chosen : ndarray of int, shape (k,)
        Ascending.
    value : float
        Its coverage.
    bound : float
        No choice covers more; equal to `value`, but for rounding, where the best is proven.
    """

    chosen: NDArray[np.intp]
    value: float
    bound: float


def best_facilities(
    similarity: ArrayLike, k: int, *, floor: float = 0.0, start: ArrayLike, seconds: float = 60.0
) -> BestFacilities:
    """Choose the k columns that cover all rows best.

    Parameters
    ----------
    similarity, k, floor
        As of `facility_location`.
    start : array of int, shape (k,)
        A choice, the greedy one say. It is returned where time brought no better.
    seconds : float
        Time for the solver.

    Returns
    -------
    BestFacilities

    Examples
    --------
    >>> S = [[1.0, 0.9, 0.1], [0.9, 1.0, 0.2], [0.1, 0.2, 1.0]]
    >>> best_facilities(S, 1, start=[0]).chosen.tolist()
    [1]
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, hstack, vstack

    worth = np.maximum(np.asarray(similarity, dtype=np.float64) - floor, 0.0)
    rows, n = worth.shape
    # A pair is of use only where it is worth something: the others need no variable.
    of_row, of_column = np.nonzero(worth)
    pairs = len(of_row)
    chosen = np.sort(np.asarray(start, dtype=np.intp))
    value = coverage(similarity, chosen, floor)
    if not pairs:  # nobody stands for anything
        return BestFacilities(chosen, value, value)
    count = np.arange(pairs)
    ones = np.ones(pairs)
    once = hstack([csr_array((rows, n)), csr_array((ones, (of_row, count)), (rows, pairs))])
    open_only = hstack(
        [csr_array((-ones, (count, of_column)), (pairs, n)), csr_array((ones, (count, count)))]
    )
    number = csr_array(np.concatenate([np.ones(n), np.zeros(pairs)])[None])
    limits = np.concatenate([np.ones(rows), np.zeros(pairs), [k]])
    least = np.concatenate([np.full(rows + pairs, -np.inf), [k]])
    found = milp(
        -np.concatenate([np.zeros(n), worth[of_row, of_column]]),
        integrality=np.concatenate([np.ones(n), np.zeros(pairs)]),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(vstack([once, open_only, number]), least, limits),
        options={"time_limit": seconds, "mip_rel_gap": 1e-7},
    )
    if found.x is not None:
        better = np.sort(np.argsort(-found.x[:n], kind="stable")[:k])
        reached = coverage(similarity, better, floor)
        if reached > value:
            chosen, value = better, reached
    bound = float(worth.max(axis=1).sum())
    if found.mip_dual_bound is not None:
        bound = min(bound, -float(found.mip_dual_bound))
    return BestFacilities(chosen, value, max(bound, value))
