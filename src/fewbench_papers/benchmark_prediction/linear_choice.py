"""Items by the lasso's path, and items and weights by gradient steps.

`choose_jointly` relaxes the choice to shares and optimizes shares and weights together.
"""

import warnings

import numpy as np

from fewbench.algorithms import ties
from fewbench.support import (
    FloatArray,
    IntArray,
    one_thread,
)


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
