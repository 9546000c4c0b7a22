"""Columns chosen one by one for ridge regression, by its error on held-out rows.

`ridge_forward` minimizes a held-out error in closed form. Ridge regression is a linear smoother:
with M the matrix that maps y to its residuals, the residuals of a group of rows under the fit
without these rows are M_gg⁻¹ (M y)_g (the hat-matrix formula; Allen 1974 for single rows). Adding
a column changes M by a rank-one matrix, so all candidates are judged together without refitting.
"""

import numpy as np

from fewbench.algorithms import ties
from fewbench.support import FloatArray, IntArray

_SHARE = 0.1  # errors are differences of numbers of this size
_LEAST = 1e-9  # an own share below this would divide by rounding
PENALTIES = np.logspace(-4, 1, 6)  # multiples of the columns' mean squared size


def ridge_forward(
    x: FloatArray,
    y: FloatArray,
    k: int,
    groups: IntArray | None = None,
) -> tuple[IntArray, FloatArray]:
    """Choose columns one by one for the least held-out error of a ridge on all chosen.

    Each group of rows is held out once. Each step uses the best penalty of a grid; the intercept
    is not penalized.

    - `x`, shape (rows, columns)
    - `y`, shape (rows,)
    - `k`: At most the number of columns.
    - `groups`, shape (rows,): Rows with the same number are held out together; by default each row
      alone.

    Returned arrays:

    - `chosen`, shape (k,): In the order of choice; the first of equally good columns wins.
    - `errors`, shape (k,): Root mean square held-out error with the columns chosen so far.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.random((40, 6))
    >>> ridge_forward(x, x[:, 4] + 2 * x[:, 1], 2)[0].tolist()
    [1, 4]
    """
    n, columns = x.shape
    groups = np.arange(n) if groups is None else groups
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    centred = x - x.mean(axis=0)
    left_over = y - y.mean()
    size = float((centred**2).sum() / columns)
    scale = float(np.sqrt((left_over**2).mean()))
    if size <= 0 or scale <= 0 or len(members) < 2:  # nothing to tell columns apart by
        return np.arange(k, dtype=np.intp), np.full(k, scale)
    paths = [_Path(centred, left_over, size * float(alpha)) for alpha in PENALTIES]
    free = np.ones(columns, dtype=bool)
    chosen, errors = [], []
    for _ in range(k):
        lowest = np.min([path.errors(members) for path in paths], axis=0)
        lowest = np.where(free, lowest / scale, np.inf)
        best = int(ties.argmin(lowest, scale=_SHARE))
        for path in paths:
            path.add(best)
        free[best] = False
        chosen.append(best)
        errors.append(float(lowest[best]) * scale)
    return np.array(chosen, dtype=np.intp), np.array(errors)


class _Path:
    """The columns chosen so far under one penalty.

    `maker` is (I + X Xᵀ / penalty)⁻¹ of the chosen columns X, `left` is maker @ all columns and
    `residual` is maker @ y.
    """

    def __init__(self, x: FloatArray, y: FloatArray, penalty: float) -> None:
        self.x, self.penalty = x, penalty
        self.maker, self.left, self.residual = np.eye(len(x)), x.copy(), y.copy()

    @property
    def _sizes(self) -> FloatArray:
        return np.asarray(self.penalty + np.maximum((self.x * self.left).sum(axis=0), 0.0))

    def errors(self, members: list[IntArray]) -> FloatArray:
        """Return the root mean square held-out error with each column added, shape (columns,)."""
        sizes = self._sizes
        share = (self.x.T @ self.residual) / sizes
        n = len(self.x)
        total = np.zeros(len(sizes))
        single = np.array([rows[0] for rows in members if len(rows) == 1], dtype=np.intp)
        if len(single):
            diagonal = np.diag(self.maker)[single, None] - 1.0 / n  # the mean takes its share
            left = self.left[single]
            after = np.maximum(diagonal - left**2 / sizes, _LEAST)
            total += (((self.residual[single, None] - left * share) / after) ** 2).sum(axis=0)
        for rows in members:
            if len(rows) == 1:
                continue
            block = self.maker[np.ix_(rows, rows)] - 1.0 / n
            # M_gg - v vᵀ / size of each column, inverted by the formula for a change of rank one.
            left = self.left[rows]
            residual = self.residual[rows, None] - left * share
            solved = np.linalg.solve(block, np.hstack([residual, left]))
            of_residual, of_left = solved[:, : len(sizes)], solved[:, len(sizes) :]
            room = np.maximum(sizes - (left * of_left).sum(axis=0), _LEAST * sizes)
            held_out = of_residual + of_left * ((left * of_residual).sum(axis=0) / room)
            total += (held_out**2).sum(axis=0)
        return np.asarray(np.sqrt(total / n))

    def add(self, column: int) -> None:
        left = self.left[:, column].copy()
        size = float(self._sizes[column])
        self.maker -= np.outer(left, left) / size
        self.residual -= left * (float(self.x[:, column] @ self.residual) / size)
        self.left -= np.outer(left, (self.x.T @ left) / size)
