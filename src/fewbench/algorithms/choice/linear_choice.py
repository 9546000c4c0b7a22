"""Columns chosen together for a linear model: forward selection, the lasso and gradient steps.

`ridge_forward` minimizes a held-out error in closed form. Ridge regression is a linear smoother:
with M the matrix that maps y to its residuals, the residuals of a group of rows under the fit
without these rows are M_gg⁻¹ (M y)_g (the hat-matrix formula; Allen 1974 for single rows). Adding
a column changes M by a rank-one matrix, so all candidates are judged together without refitting.

`choose_jointly` relaxes the choice to shares and optimizes shares and weights together.
"""

import warnings
from collections.abc import Callable

import numpy as np

from fewbench._blocks import Matrix, by_columns, is_large, row_blocks, total, whole
from fewbench._threads import one_thread
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms import ties

_SHARE = 0.1  # errors and shares explained are differences of numbers of this size
_NOTHING = 1e-10  # a share explained that is rounding
PENALTIES = np.logspace(-4, 1, 6)  # multiples of the columns' mean squared size
PIECE = 8  # rows
_LEAST = 1e-9  # an own share below this would divide by rounding


def forward_selection(x: Matrix, y: FloatArray, k: int, alpha: float) -> IntArray:
    """Choose columns one by one, each the column that lowers the ridge loss most.

    The loss of a set of columns is the least of |y - X b|² + alpha |b|², alpha > 0. With the
    residual maker P = (I + X Xᵀ / alpha)⁻¹ of the chosen columns, adding column x lowers the loss
    by (xᵀPy)² / (alpha + xᵀPx); P changes by a rank-one matrix.

    `x` has shape (rows, columns), `y` (rows,). Returns at most `k` columns in the order of choice:
    fewer if no remaining column explains anything. The first of equally good columns wins.

    >>> x = np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> forward_selection(x, np.array([0.1, 1.0, 1.2, 0.2]), 2, 0.1).tolist()
    [0, 1]
    """
    mean = by_columns(x, lambda part: part.mean(axis=0))
    along = _products_with(x, mean)
    y = y - y.mean()
    scale = float(y @ y)
    maker = np.eye(len(x))
    products = along(y)
    spread = total(((x[rows] - mean) ** 2).sum(axis=0) for rows in row_blocks(x)) + alpha
    free = np.ones(x.shape[1], dtype=bool)
    chosen: list[int] = []
    while len(chosen) < k and scale > 0:
        gain = np.where(free, products**2 / spread, 0.0) / scale
        best = int(ties.argmax(gain, scale=_SHARE))
        if gain[best] <= _NOTHING:
            break
        column = x[:, best] - mean[best]
        left = maker @ column
        size = alpha + float(column @ left)
        shared = along(left)
        maker -= np.outer(left, left) / size
        products = products - shared * (products[best] / size)
        spread = np.maximum(spread - shared**2 / size, alpha)
        chosen.append(best)
        free[best] = False
    return np.array(chosen, dtype=np.intp)


def _products_with(x: Matrix, mean: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return a function that multiplies all centred columns with a vector, shape (columns,)."""
    if not is_large(x.shape[0] * x.shape[1]):
        centred = whole(x) - mean
        return lambda vector: np.asarray(centred.T @ vector)
    # Read again each time, in pieces that stay in the processor's cache.
    pieces = [slice(at, at + PIECE) for at in range(0, len(x), PIECE)]
    return lambda vector: np.asarray(
        total(vector[rows] @ x[rows] for rows in pieces) - mean * vector.sum()
    )


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


def lasso_support(x: FloatArray, y: FloatArray, k: int) -> IntArray:
    """Return the first k columns that the lasso uses at once as its penalty falls.

    Follows the path exactly from knot to knot (least angle regression, Efron et al. 2004). A lasso
    never uses more columns than rows - 1; for a larger `k` the largest set of the path is
    returned. Only the first of identical or opposite columns takes part. Columns with larger
    coefficient × spread come first.

    >>> x = np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> lasso_support(x, np.array([0.1, 1.0, 1.2, 0.2]), 1).tolist()
    [0]
    """
    none = np.array([], dtype=np.intp)
    varies = np.flatnonzero(x.max(axis=0) > x.min(axis=0))
    if not len(varies) or y.max() - y.min() <= 0:
        return none
    about = x[:, varies] - x[:, varies].mean(axis=0)
    alike = np.round(about * np.where(about[0] > 0, 1.0, -1.0), 9)
    _, first = np.unique(alike.T, axis=0, return_index=True)
    columns = varies[np.sort(first)]
    centred = x[:, columns] - x[:, columns].mean(axis=0)
    # A path that was cut short is followed again: ask for as many steps as k columns took on the
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
    order = ties.argsort(-weight)[: int(used[knot])]
    return np.asarray(columns[order[:k]], dtype=np.intp)


def _path(x: FloatArray, y: FloatArray, steps: int) -> FloatArray:
    """Return the coefficients at every knot, shape (columns, knots)."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import lars_path

    with warnings.catch_warnings(), one_thread():  # the order of sums could change ties
        # It warns of columns that depend on others, and drops them.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Columns that depend on others exactly are dropped or kept by rounding.
        x, y = ties.shaken(x, 1e-5), ties.shaken(y)
        _, _, coefficients = lars_path(x, y, method="lasso", max_iter=steps)
    sizes = np.abs(coefficients)  # what a column has at the knot where it leaves is rounding
    return np.where(sizes > ties.CLOSE * sizes.max(initial=0.0), coefficients, 0.0)


STEPS = 1000
PATIENCE = 100
HELD = 0.2
RATE_OF_WEIGHTS, RATE_OF_SHARES = 0.1, 0.001
DECAY = 1e-4


def choose_jointly(x: FloatArray, y: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """Choose k columns and weights with a weighted mean near y; return the sorted columns.

    Each column of `x`, shape (rows, columns), has a share in [0, 1] and a weight, initially normal
    at random; shares sum to k. The k columns with the largest shares are used. Shares and weights
    follow the gradient of the mean squared error (for a share, as if the share itself were used),
    and shares are projected back to their sum. The choice with the least error on a held-out fifth
    of the rows is kept.

    >>> x = np.random.default_rng(0).random((50, 6))
    >>> choose_jointly(x, x[:, [1, 4]].mean(axis=1), 2, np.random.default_rng(2)).tolist()
    [1, 4]
    """
    shares = np.full(x.shape[1], k / x.shape[1])
    weights: FloatArray = rng.normal(size=(x.shape[1],))
    train, held_out = _divided(len(x), rng)
    rows, truth = x[train], y[train]
    of_weights, of_shares = Adam(RATE_OF_WEIGHTS), Adam(RATE_OF_SHARES)
    least, since = np.inf, 0
    chosen = np.arange(k)
    for _ in range(STEPS):
        used = np.argsort(-shares, kind="stable")[:k]
        error = float(((x[np.ix_(held_out, used)] @ weights[used] / k - y[held_out]) ** 2).mean())
        since += 1
        if not ties.at_least(error, least):
            least, since, chosen = error, 0, used
        elif since > PATIENCE:
            break
        residual = rows[:, used] @ weights[used] / k - truth
        slope = (residual @ rows) * (2.0 / (len(train) * k))
        on_used = np.zeros_like(slope)
        on_used[used] = slope[used]
        on_shares = slope * weights
        weights = weights - of_weights(on_used + DECAY * weights)
        shares = onto_simplex(shares - of_shares(on_shares + DECAY * shares), k)
    return np.sort(chosen)


def weights_by_steps(x: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Find weights, shape (columns, outputs), with y near x @ weights, without an intercept.

    Takes the same steps as `choose_jointly` with all columns used. Each output, `y` having shape
    (rows, outputs), keeps the weights with the least error on the held-out rows.
    """
    k = x.shape[1]
    # All outputs begin at the same weights, so that none depends on how many there are.
    weights: FloatArray = np.repeat(rng.normal(size=(k, 1)), y.shape[1], axis=1)
    train, held_out = _divided(len(x), rng)
    step = Adam(RATE_OF_WEIGHTS)
    least, since = np.full(y.shape[1], np.inf), np.zeros(y.shape[1])
    kept = weights.copy()
    for _ in range(STEPS):
        error = ((x[held_out] @ weights / k - y[held_out]) ** 2).mean(axis=0)
        better = ~ties.at_least(error, least) & (since <= PATIENCE)
        least = np.where(better, error, least)
        kept[:, better] = weights[:, better]
        since = np.where(better, 0, since + 1)
        if (since > PATIENCE).all():
            break
        residual = x[train] @ weights / k - y[train]
        slope = x[train].T @ residual * (2.0 / (len(train) * k))
        weights = weights - step(slope + DECAY * weights)
    return np.asarray(kept / k)


def _divided(n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Split rows into training and held-out rows; with fewer than 5 rows both are all rows."""
    order = rng.permutation(n)
    count = int(np.ceil(HELD * n))
    return (order[:-count], order[-count:]) if n >= 5 else (order, order)


class Adam:
    """Steps of the optimizer Adam (Kingma & Ba 2015) with its usual settings."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._mean: FloatArray | float = 0.0
        self._square: FloatArray | float = 0.0
        self._n = 0

    def __call__(self, gradient: FloatArray) -> FloatArray:
        """Return what to subtract after this gradient."""
        self._n += 1
        self._mean = 0.9 * self._mean + 0.1 * gradient
        self._square = 0.999 * self._square + 0.001 * gradient**2
        mean = self._mean / (1.0 - 0.9**self._n)
        square = self._square / (1.0 - 0.999**self._n)
        return np.asarray(self._rate * mean / (np.sqrt(square) + 1e-8))


def onto_simplex(values: FloatArray, total: float) -> FloatArray:
    """Return the nearest numbers in [0, 1] with sum `total`, at most the number of values.

    >>> onto_simplex(np.array([2.0, 0.5, 0.1]), 2.0).round(3).tolist()
    [1.0, 0.7, 0.3]
    """
    low, high = float(values.min()) - 1.0, float(values.max())
    for _ in range(60):  # halving finds the number to take off all
        middle = (low + high) / 2
        if np.clip(values - middle, 0.0, 1.0).sum() > total:
            low = middle
        else:
            high = middle
    return np.clip(values - (low + high) / 2, 0.0, 1.0)
