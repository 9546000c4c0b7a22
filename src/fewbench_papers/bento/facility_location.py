"""Facility location: choose the few columns that best represent all rows, greedily.

Maximizes f(X) = sum over i of max over j in X of S[i, j] (BenTo, Zhao et al. 2024, Eq. 5). The
function is monotone and submodular, so the greedy choice reaches at least 1 - 1/e of the best
(Nemhauser et al. 1978), and a gain once computed bounds all later gains of that column.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fewbench.algorithms import ties
from fewbench.support import BoolArray, FloatArray, IntArray

Tie = Literal["first", "last"]
ROUNDING = 1e-12  # later gains are differences of sums that are rounded to this share of the first
NEAR = 1e-6  # a choice among gains as near as this hangs on noise
_BLOCK = 64  # candidates judged at a time


@dataclass(frozen=True, eq=False)
class FacilityLocation:
    """A greedy choice.

    `chosen`, shape (k,), is in the order of choice, and `gains`, shape (k,), is what each column
    added to f. `near_ties`, shape (k,), tells whether another column's gain was within a
    millionth, or equal up to rounding.
    """

    chosen: IntArray
    gains: FloatArray
    near_ties: BoolArray

    @property
    def value(self) -> float:
        """Value of f for the whole choice."""
        return float(self.gains.sum())


def coverage(similarity: ArrayLike, chosen: ArrayLike, floor: float = 0.0) -> float:
    """Return f of a choice: how well the chosen columns represent all rows.

    >>> coverage([[1.0, 0.2], [0.2, 1.0]], [0])
    1.2
    """
    columns = np.asarray(similarity, dtype=np.float64)[:, np.asarray(chosen, dtype=np.intp)]
    return float((columns.max(axis=1, initial=floor) - floor).sum())


def facility_location(
    similarity: ArrayLike, k: int, *, floor: float = 0.0, tie: Tie = "first"
) -> FacilityLocation:
    """Choose k columns that cover all rows, greedily.

    - `similarity`, shape (rows, candidates): Finite; S[i, j] is how well candidate j represents row
      i.
    - `k`: From 1 to the number of candidates.
    - `floor`: Value of a row that no candidate represents; lower similarities count as this.
    - `tie` ("first", "last"): Which of several candidates of equal gain is chosen, by position.

    Raises ValueError if the similarity is not a finite matrix or `k` is out of range.

    >>> S = [[1.0, 0.9, 0.1], [0.9, 1.0, 0.1], [0.1, 0.1, 1.0]]
    >>> facility_location(S, 2).chosen.tolist()
    [0, 2]
    >>> facility_location(S, 2, tie="last").chosen.tolist()
    [1, 2]
    """
    matrix = np.asarray(similarity, dtype=np.float64)
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise ValueError("the similarity is not a matrix of finite numbers")
    n = matrix.shape[1]
    if not 1 <= k <= n:
        raise ValueError(f"k = {k}: from 1 to {n}")
    # A row of this is a candidate, so that a block of candidates lies together in memory.
    by_candidate = np.maximum(np.ascontiguousarray(matrix.T) - floor, 0.0)
    covered = np.zeros(by_candidate.shape[1])
    bounds = by_candidate.sum(axis=1)
    rounding = ROUNDING * float(bounds.max())  # later gains are small differences of large sums
    order = np.arange(n) if tie == "first" else np.arange(n)[::-1]
    chosen, gains, near = [], [], []
    for step in range(k):
        if step:
            _judge(by_candidate, covered, bounds, rounding)
        best = bounds.max()
        taken = int(order[ties.argmax(bounds[order], scale=rounding / ties.CLOSE)])
        near.append(np.count_nonzero(bounds >= best - max(NEAR * best, rounding)) > 1)
        chosen.append(taken)
        gains.append(float(np.maximum(by_candidate[taken] - covered, 0.0).sum()))
        covered = np.maximum(covered, by_candidate[taken])
        bounds[taken] = -np.inf
    return FacilityLocation(np.array(chosen, dtype=np.intp), np.array(gains), np.array(near))


def _judge(
    by_candidate: FloatArray,
    covered: FloatArray,
    bounds: FloatArray,
    rounding: float,
) -> None:
    """Lower bounds to true gains, in place, for candidates that could be (nearly) best."""
    order = np.argsort(-bounds, kind="stable")
    best = -np.inf
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        if bounds[block[0]] < best - max(NEAR * best, rounding):
            return
        block = block[np.isfinite(bounds[block])]
        if len(block):
            bounds[block] = np.maximum(by_candidate[block] - covered, 0.0).sum(axis=1)
            best = max(best, bounds[block].max())
