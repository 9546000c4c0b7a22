"""Which items next: greedy optimal design for the wanted score.

Each step takes the item that lowers the posterior variance of the wanted score most, relative to
what is left of it, on the average of the models' weights (an A-optimal design, or c-optimal for
one linear functional; Fedorov 1972). The variance after item j falls by c_j^2 / d_j, with c_j the
item's posterior covariance with the wanted score and d_j its variance.

All candidates are judged in single precision, which is most of the time. Its rounding differs from
one processor to the next, so those that come near the best are judged again in double precision.
"""

import math
from collections.abc import Sequence

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms import ties
from fewbench.algorithms.kriging.inside import Gaussian

NEAR = 1e-3
"""Share of the best gain by which single precision may be off: on four real tables it was off by up
to 2e-4 of it after 400 items."""


class VarianceReduction:
    """How far each item would lower the variance of the first wanted score under one model.

    Parameters
    ----------
    model : Gaussian
    items : ndarray of int, shape (n,)
        Items that already belong to the run.
    room : int
        How many more will be taken at most.
    """

    def __init__(self, model: Gaussian, items: IntArray, room: int) -> None:
        factors, noise = model.factors_of(), model.noise
        self._model = model
        self._factors, self._noise = factors, noise
        wanted = model.wanted_factors[:, 0]
        # Covariance of each candidate with the first wanted score, and its own.
        self._covariance = wanted.astype(factors.dtype) @ factors + noise * model.weights[0]
        self._variance = np.einsum("kj,kj->j", factors, factors) + noise
        self.left = float(wanted @ wanted + model.wanted_noise[0])
        n = len(items)
        self._rows = np.zeros((n + room, factors.shape[1]), dtype=factors.dtype)
        self._items, self._used = np.concatenate([items, np.zeros(room, dtype=np.intp)]), n
        # In double precision, for as many items as were needed so far.
        self._exact = np.zeros((0, len(factors))), np.zeros((0, 0))
        if n:
            columns = factors[:, items].T @ factors
            columns[np.arange(n), items] += noise[items]
            lower = np.linalg.cholesky(columns[:, items].astype(np.float64) + 1e-9 * np.eye(n))
            turned = np.linalg.inv(lower)  # n x n: far cheaper than solving for every candidate
            rows = turned.astype(factors.dtype) @ columns
            along = turned @ self._covariance[items]
            self._rows[:n] = rows
            self._covariance -= along @ rows
            self._variance -= np.einsum("nj,nj->j", rows, rows)
            self.left = max(self.left - float(along @ along), 1e-12)

    def gains(self) -> FloatArray:
        """Return the share of the remaining variance that each item would take, (candidates,)."""
        # For Gaussians, an answer x reduces the variance of the score y by cov(y, x)² / var(x).
        return np.asarray(self._covariance**2 / np.maximum(self._variance, 1e-9) / self.left)

    def exact_gains(self, items: IntArray) -> FloatArray:
        """Return the gains of some items in double precision, shape (n,)."""
        model, taken = self._model, self._items[: self._used]
        of_taken, turned = self._exact = self._extended()
        weights, wanted = model.weights[0], model.wanted_factors[:, 0]
        along = turned @ (of_taken @ wanted + self._noise[taken] * weights[taken])
        of_items = self._factors[:, items].astype(np.float64)
        rows = turned @ (of_taken @ of_items)
        covariance = wanted @ of_items + self._noise[items] * weights[items] - along @ rows
        variance = (of_items**2).sum(axis=0) + self._noise[items] - (rows**2).sum(axis=0)
        left = float(wanted @ wanted + model.wanted_noise[0] - along @ along)
        return np.asarray(covariance**2 / np.maximum(variance, 1e-9) / max(left, 1e-12))

    def _extended(self) -> tuple[FloatArray, FloatArray]:
        """Return the factors of the taken items, and the inverse of their Cholesky factor."""
        of_old, turned = self._exact
        n, done = self._used, len(of_old)
        if n == done:
            return self._exact
        new = self._items[done:n]
        of_new = self._factors[:, new].T.astype(np.float64)
        cross = turned @ (of_old @ of_new.T)
        rest = of_new @ of_new.T + np.diag(self._noise[new] + 1e-9) - cross.T @ cross
        corner = np.linalg.inv(np.linalg.cholesky(rest))
        whole = np.zeros((n, n))
        whole[:done, :done], whole[done:, done:] = turned, corner
        whole[done:, :done] = -corner @ (cross.T @ turned)
        return np.concatenate([of_old, of_new]), whole

    def take(self, item: int) -> None:
        """Condition on one more item."""
        # One more row of the Cholesky factor: the other rows stay as they are.
        row = self._factors[:, item] @ self._factors
        row[item] += self._noise[item]
        used = self._rows[: self._used]
        row -= used[:, item] @ used
        row /= math.sqrt(max(float(row[item]), 1e-10))
        along = float(self._covariance[item]) / math.sqrt(max(float(self._variance[item]), 1e-10))
        self._rows[self._used], self._items[self._used] = row, item
        self._used += 1
        self._covariance -= along * row
        self._variance -= row**2
        np.maximum(self._variance, 1e-10, out=self._variance)
        self.left = max(self.left - along**2, 1e-12)


def choose(
    models: Sequence[tuple[float, Sequence[Gaussian], IntArray]],
    n: int,
    *,
    closed: IntArray,
    costs: FloatArray | None = None,
) -> IntArray:
    """Choose n more items.

    Parameters
    ----------
    models : sequence of (weight, Gaussians, items)
        The gain of an item is averaged over the Gaussians of a model, and over models by weight.
        `items` are those answered already, of the target that the model is of.
    n : int
    closed : ndarray of int
        Those asked already, answered or not.
    costs : ndarray, shape (candidates,), optional
        Gains count per unit of cost.

    Examples
    --------
    >>> one = Gaussian(np.zeros(3), np.array([[1.0, 2.0, 0.0]]), np.ones(3), np.zeros(1),
    ...     np.ones((1, 1)), np.zeros(1), np.full((1, 3), 1 / 3))
    >>> nothing = np.empty(0, dtype=int)
    >>> choose([(1.0, [one], nothing)], 2, closed=nothing).tolist()
    [1, 0]
    """
    shares = [
        (weight / len(gaussians), VarianceReduction(gaussian, items, n))
        for weight, gaussians, items in models
        if weight > 0
        for gaussian in gaussians
    ]
    open_ = np.ones(shares[0][1].gains().shape, dtype=bool)
    open_[closed] = False
    prices = np.ones(len(open_)) if costs is None else costs
    chosen: list[int] = []
    for left in reversed(range(min(n, int(open_.sum())))):
        gains = np.zeros(len(open_))
        for share, reduction in shares:
            gains += share * reduction.gains()
        gains = np.where(open_, gains / prices, -1.0)
        at = int(gains.argmax())
        near = np.flatnonzero(gains >= (1 - NEAR) * gains[at])
        if len(near) > 1:
            exact = [share * reduction.exact_gains(near) for share, reduction in shares]
            at = int(near[ties.argmax(np.sum(exact, axis=0) / prices[near])])
        open_[at] = False
        chosen.append(at)
        for _, reduction in shares if left else ():
            reduction.take(at)
    return np.array(chosen, dtype=np.intp)
