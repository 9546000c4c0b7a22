"""k-medoids by eager swapping, on any matrix of distances from points to candidates.

The search is that of FasterPAM (Schubert & Rousseeuw 2021, "Fast and eager k-medoids clustering
with O(k) runtime improvement of the PAM, CLARA, and CLARANS algorithms", arXiv:2008.05171),
rearranged so that whole blocks of candidates are judged by array operations:

* with ``d1`` and ``d2`` a point's distances to its nearest and second nearest medoid, taking
  medoid ``i`` out and candidate ``x`` in changes the cost by ::

      sum_o [near(o) - d1(o)]  +  sum_{o nearest to i} [min(d(o,x), d2(o)) - near(o)],
      near(o) = min(d(o,x), d1(o)),

  where the second sum, for all ``i`` at once, is one segmented sum over the points ordered by
  their nearest medoid;
* no candidate can lower the cost by more than ``sum_o max(0, d2(o) - d(o,x))`` minus the
  smallest cost of dropping a medoid, ``min_i sum_{o nearest to i} (d2(o) - d1(o))``; near the
  end this cheap bound spares most candidates the full sums.

Distances are in single precision, in which equal ones are equal (`distances`), and all sums are
NumPy's own, whose order does not depend on the processor.

`alternating_kmedoids` is quicker and easily caught in a poor optimum. It is what TailoredBench
prints (Eq. 6-7), with medoids that never move ("anchors").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewbench.algorithms import ties
from fewbench.support import IntArray
from fewbench_papers.algorithms.clustering.distances import DistancesOnDemand

__all__ = ["KMedoids", "alternating_kmedoids", "kmedoids"]

# A block of candidates is about this many distances (256 KiB of float32), so that it and its
# two work buffers stay in the processor's cache ...
_BLOCK_CELLS = 1 << 16
# ... but never fewer candidates than this, for array operations to pay, nor more than that, as
# one swap at most is made per block and a swap soon is worth more than the best one late.
_MIN_BLOCK, _MAX_BLOCK = 32, 64
_MOST_ROUNDS = 100  # over all candidates; a search ends long before


@dataclass(frozen=True, eq=False)
class KMedoids:
    """A k-medoids clustering.

    `medoids`, shape (k,), are the chosen candidates, ascending. `labels`, shape (points,), is the
    position in `medoids` of each point's nearest medoid, the first of equally near ones. `cost` is
    the sum of distances to the nearest medoid. `swaps` and `passes` count the swaps and the rounds
    over all candidates of the run that was kept, including the last, idle round.
    """

    medoids: IntArray
    labels: IntArray
    cost: float
    swaps: int
    passes: int


Rows = NDArray[Any] | DistancesOnDemand


def kmedoids(
    distances: ArrayLike | DistancesOnDemand,
    k: int,
    rng: np.random.Generator,
    *,
    restarts: int = 1,
    near: NDArray[np.float32] | None = None,
) -> KMedoids:
    """Choose `k` candidates with the least total distance from the points.

    The result is a local optimum: no exchange of one medoid for one candidate lowers the cost by
    more than rounding, unless 100 rounds over all candidates ended the search early (Schubert &
    Rousseeuw 2021).

    - `distances`, shape (n_points, n_candidates): Finite distances from points to candidates; they
      need not be symmetric. To cluster points by points, candidate ``j`` is point ``j``. float32
      and float64 are used as they are, other types as float64. A matrix neither symmetric nor in
      Fortran order is copied once.
    - `k`: From 1 to n_candidates.
    - `rng`: Draws the first medoids, uniformly without replacement.
    - `restarts`: Runs from new random medoids; the first of the cheapest runs is kept.
    - `near`, shape (n_points,): Each point's distance to the nearest of further medoids that stay,
      by default of none. Labels are of the chosen ones nonetheless.

    Raises ValueError if `distances` is not a finite, non-empty matrix, `k` is out of range, or
    `restarts` is below 1.

    >>> import numpy as np
    >>> x = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])
    >>> result = kmedoids(abs(x[:, None] - x), 2, np.random.default_rng(0))
    >>> result.medoids.tolist(), result.labels.tolist(), result.cost
    ([1, 4], [0, 0, 0, 1, 1, 1], 4.0)
    """
    rows = _candidate_rows(distances)
    n_candidates = len(rows)
    if not 1 <= k <= n_candidates:
        raise ValueError(f"k must be from 1 to the number of candidates, {n_candidates}; got {k}")
    if restarts < 1:
        raise ValueError(f"restarts must be at least 1; got {restarts}")
    if k == 1:  # solved exactly, by one look
        blocks = (rows[lo : lo + _MAX_BLOCK] for lo in range(0, n_candidates, _MAX_BLOCK))
        totals = [_capped(block, near).sum(axis=1, dtype=np.float64) for block in blocks]
        return _result(rows, np.array([ties.argmin(np.concatenate(totals))]), near, 0, 1)

    best: KMedoids | None = None
    for _ in range(restarts):
        search = _Search(rows, rng.choice(n_candidates, k, replace=False), near)
        passes = search.run()
        result = _result(rows, search.medoids, near, search.swaps, passes)
        if best is None or result.cost < best.cost:
            best = result
    assert best is not None
    return best


def _candidate_rows(distances: ArrayLike | DistancesOnDemand) -> Rows:
    """Return checked distances with one contiguous row per candidate, copied only if necessary."""
    if isinstance(distances, DistancesOnDemand):
        return distances
    matrix = np.asarray(distances)
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(
            f"distances must be a non-empty (points, candidates) matrix; got shape {matrix.shape}"
        )
    # NaN passes through min, infinities show in one of the two: no mask of the matrix is made
    if not (np.isfinite(matrix.min()) and np.isfinite(matrix.max())):
        raise ValueError("distances must be finite; found NaN or infinity")
    if matrix.flags.f_contiguous:
        return matrix.T
    if matrix.flags.c_contiguous and _is_symmetric(matrix):
        return matrix
    rows = np.empty(matrix.shape[::-1], matrix.dtype)
    for lo in range(0, len(rows), 64):  # by strips, as a strip of columns fits in cache
        rows[lo : lo + 64] = matrix[:, lo : lo + 64].T
    return rows


def _is_symmetric(matrix: NDArray[Any]) -> bool:
    n, n_columns = matrix.shape
    step = 128
    return n == n_columns and all(
        np.array_equal(matrix[a : a + step, b : b + step], matrix[b : b + step, a : a + step].T)
        for a in range(0, n, step)
        for b in range(a, n, step)
    )


def _capped(rows: NDArray[Any], near: NDArray[np.float32] | None) -> NDArray[Any]:
    """Return distances from the points, none above that to the nearest medoid that stays."""
    return rows if near is None else np.minimum(rows, near)


def _result(
    rows: Rows, medoids: IntArray, near: NDArray[np.float32] | None, swaps: int, passes: int
) -> KMedoids:
    medoids = np.sort(medoids).astype(np.intp, copy=False)
    to_medoids = rows[medoids]
    cost = float(_capped(to_medoids, near).min(axis=0).sum(dtype=np.float64))
    return KMedoids(medoids, to_medoids.T.copy().argmin(axis=1), cost, swaps, passes)


class _Search:
    """One run: the medoids in slots 0 .. k-1, and the slots of each point's nearest two medoids."""

    def __init__(
        self, rows: Rows, medoids: IntArray, near: NDArray[np.float32] | None = None
    ) -> None:
        self.rows, self.near = rows, near
        self.medoids = medoids.copy()
        self.to_medoids = _capped(rows[medoids], near).T.copy()  # (n_points, k)
        n_points, k = self.to_medoids.shape
        slot = np.min_scalar_type(k)  # small integers, which numpy sorts by radix
        nearest, second, self.d1, self.d2 = _nearest_two(self.to_medoids.copy())
        self.nearest, self.second = nearest.astype(slot), second.astype(slot)
        self.cost = float(self.d1.sum(dtype=np.float64))
        self.swaps = 0
        self.block = max(_MIN_BLOCK, min(_MAX_BLOCK, _BLOCK_CELLS // n_points))
        self._buffers = np.empty((2, self.block, n_points), rows.dtype)
        self._order_points()

    def run(self) -> int:
        """Swap until a whole round over the candidates changes nothing; return the rounds."""
        n_candidates = len(self.rows)
        lo = seen = idle = 0
        while idle < n_candidates and seen < _MOST_ROUNDS * n_candidates:
            hi = min(lo + self.block, n_candidates)
            idle = 0 if self._improve(lo, hi) else idle + hi - lo
            seen += hi - lo
            lo = hi if hi < n_candidates else 0
        return -(-seen // n_candidates)

    def _improve(self, lo: int, hi: int) -> bool:
        """Make the best swap that takes in one of the candidates lo .. hi-1 if it helps."""
        rows = self.rows
        if isinstance(rows, DistancesOnDemand):
            slack = rows.error * len(self.d1)  # a change is a sum over points
            if self._best(rows.rough(lo, hi), slack) is None:
                return False
        block = rows[lo:hi]
        best = self._best(block)
        if best is None:
            return False
        # all else is compared with the second nearest, which is not above what is near
        return self._swap(best[0], lo + best[1], _capped(block[best[1]], self.near))

    def _best(self, rows: NDArray[Any], slack: float = 0.0) -> tuple[int, int] | None:
        """Return the slot and the row of the best swap, or None if all cost more than `slack`."""
        capped = np.minimum(rows, self.d2, out=self._buffers[0, : len(rows)])
        capped_sum = capped.sum(axis=1)
        hopeful = np.flatnonzero(self.d2_sum - capped_sum > self.cheapest_drop - slack)
        if len(hopeful) == 0:
            return None
        if len(hopeful) < len(rows):
            capped, capped_sum = capped[hopeful], capped_sum[hopeful]
        change, out = self._changes(capped, capped_sum)
        best = int(change.argmin())
        # changes are rounded sums: below their resolution they mean nothing
        resolution = float(np.finfo(self.rows.dtype).eps) * self.cost
        return (int(out[best]), int(hopeful[best])) if change[best] < slack - resolution else None

    def _changes(
        self, capped: NDArray[Any], capped_sum: NDArray[Any]
    ) -> tuple[NDArray[Any], IntArray]:
        """For each candidate, the best change of cost by adding it, and the slot to free.

        `capped` is min(d, d2), shape (candidates, points); `capped_sum` is its sum over points.
        """
        near = np.minimum(capped, self.d1, out=self._buffers[1, : len(capped)])
        rest = np.subtract(capped, near, out=capped)
        by_medoid = np.take(rest, self.order, axis=1, out=near, mode="clip")
        loss = np.add.reduceat(by_medoid, self.starts, axis=1)
        gain = capped_sum - loss.sum(axis=1) - self.d1_sum
        if self.unused is not None:  # a medoid nearest to no point is dropped for nothing
            return gain, np.full(len(gain), self.unused)
        which = loss.argmin(axis=1)
        return gain + loss[np.arange(len(loss)), which], which

    def _swap(self, out: int, candidate: int, d: NDArray[Any]) -> bool:
        """Put the candidate, `d` from the points, in slot `out`, unless the cost does not fall."""
        left = self.nearest == out
        cost = float(np.minimum(d, np.where(left, self.d2, self.d1)).sum(dtype=np.float64))
        if cost >= self.cost:
            return False
        self.cost = cost
        self.swaps += 1
        self.medoids[out] = candidate
        self.to_medoids[:, out] = d

        # points that had the old medoid as one of their two nearest are looked up again
        stale = np.flatnonzero(left | (self.second == out))
        between = np.flatnonzero(d < self.d2)
        self.d2[between] = d[between]
        self.second[between] = out
        closer = between[d[between] < self.d1[between]]
        self.d2[closer] = self.d1[closer]
        self.second[closer] = self.nearest[closer]
        self.d1[closer] = d[closer]
        self.nearest[closer] = out
        self.nearest[stale], self.second[stale], self.d1[stale], self.d2[stale] = _nearest_two(
            self.to_medoids[stale]
        )
        self._order_points()
        return True

    def _order_points(self) -> None:
        """Lay the points out by nearest medoid, for sums over each medoid's points."""
        self.d1_sum, self.d2_sum = self.d1.sum(), self.d2.sum()
        self.order = self.nearest.argsort(kind="stable")
        sizes = np.bincount(self.nearest, minlength=len(self.medoids))
        # reduceat has no empty segments: an unused medoid is treated apart
        self.unused = None if sizes.all() else int(sizes.argmin())
        self.starts = (np.cumsum(sizes) - sizes)[sizes > 0]
        drops = np.add.reduceat((self.d2 - self.d1)[self.order], self.starts)
        self.cheapest_drop = drops.min() if self.unused is None else 0.0


def _nearest_two(
    to_medoids: NDArray[Any],
) -> tuple[IntArray, IntArray, NDArray[Any], NDArray[Any]]:
    """Slots of and distances to the nearest two medoids; overwrites its (points, k >= 2) input."""
    points = np.arange(len(to_medoids))
    nearest = to_medoids.argmin(axis=1)
    d1 = to_medoids[points, nearest]
    to_medoids[points, nearest] = np.inf
    second = to_medoids.argmin(axis=1)
    return nearest, second, d1, to_medoids[points, second]


def alternating_kmedoids(
    distances: NDArray[np.float32],
    k: int,
    rng: np.random.Generator,
    *,
    anchors: IntArray | None = None,
) -> IntArray:
    """Choose `k` medoids in addition to the anchors; return their positions, shape (k,).

    Alternates assignment and refinement on symmetric distances, shape (items, items), for at most
    100 rounds, from random items that are not anchors. `anchors` are medoids that never move.

    >>> x = np.array([0.0, 1, 2, 10, 11, 12], dtype=np.float32)
    >>> alternating_kmedoids(abs(x[:, None] - x), 1, np.random.default_rng(0),
    ...                      anchors=np.array([0])).tolist()
    [4]
    """
    fixed = np.empty(0, dtype=np.intp) if anchors is None else anchors
    free = np.setdiff1d(np.arange(len(distances)), fixed)
    medoids = np.concatenate([fixed, rng.choice(free, k, replace=False)])
    for _ in range(_MOST_ROUNDS):
        labels = distances[:, medoids].argmin(axis=1)
        labels[medoids] = np.arange(len(medoids))  # a medoid stays in its own cluster
        moved = medoids.copy()
        for cluster in range(len(fixed), len(medoids)):
            members = np.flatnonzero(labels == cluster)
            totals = distances[np.ix_(members, members)].sum(axis=1, dtype=np.float64)
            moved[cluster] = members[ties.argmin(totals)]
        if np.array_equal(moved, medoids):
            break
        medoids = moved
    return medoids[len(fixed) :]
