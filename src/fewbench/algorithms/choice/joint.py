"""Columns and their weights optimised together by gradient steps, the choice relaxed to shares."""

import numpy as np

from fewbench._types import FloatArray, IntArray

STEPS = 1000
PATIENCE = 100
HELD = 0.2
RATE_OF_WEIGHTS, RATE_OF_SHARES = 0.1, 0.001
DECAY = 1e-4


def choose_jointly(x: FloatArray, y: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """Choose k columns such that a weighted mean of them is near y, optimising both.

    Every column has a share in [0, 1], the shares summing to k, and a weight, at first normal
    at random. The k columns of the largest shares are used; both move along the gradient of the
    mean squared error (that of a share is taken as if the share itself were used), and shares are
    projected back to their sum. What errs least on a fifth of the rows, held out, is kept.

    Parameters
    ----------
    x : ndarray, shape (rows, columns)
    y : ndarray, shape (rows,)
    k : int
        At most the number of columns.
    rng : Generator

    Returns
    -------
    ndarray of int, shape (k,)
        In the columns' order.

    Examples
    --------
    >>> x = np.random.default_rng(0).random((50, 6))
    >>> choose_jointly(x, x[:, [1, 4]].mean(axis=1), 2, np.random.default_rng(2)).tolist()
    [1, 4]
    """
    shares = np.full(x.shape[1], k / x.shape[1])
    weights: FloatArray = rng.normal(size=(x.shape[1],))
    train, held = _divided(len(x), rng)
    rows, truth = x[train], y[train]
    of_weights, of_shares = Adam(RATE_OF_WEIGHTS), Adam(RATE_OF_SHARES)
    least, since = np.inf, 0
    chosen = np.arange(k)
    for _ in range(STEPS):
        used = np.argsort(-shares, kind="stable")[:k]
        error = float(((x[np.ix_(held, used)] @ weights[used] / k - y[held]) ** 2).mean())
        since += 1
        if error < least:
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
    """Find weights with which the mean of the weighted columns is near y, without an intercept.

    The same steps as in `choose_jointly` with all columns used; for each output what errs least on
    the rows held out is kept.

    Parameters
    ----------
    x : ndarray, shape (rows, columns)
    y : ndarray, shape (rows, outputs)
    rng : Generator

    Returns
    -------
    ndarray, shape (columns, outputs)
        So that y is near x @ weights: the mean's division is in them.
    """
    k = x.shape[1]
    # All outputs begin at the same weights, so that none depends on how many there are.
    weights: FloatArray = np.repeat(rng.normal(size=(k, 1)), y.shape[1], axis=1)
    train, held = _divided(len(x), rng)
    step = Adam(RATE_OF_WEIGHTS)
    least, since = np.full(y.shape[1], np.inf), np.zeros(y.shape[1])
    kept = weights.copy()
    for _ in range(STEPS):
        error = ((x[held] @ weights / k - y[held]) ** 2).mean(axis=0)
        better = (error < least) & (since <= PATIENCE)
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
    """Divide rows to learn from those held out; a few rows are both."""
    order = rng.permutation(n)
    held = int(np.ceil(HELD * n))
    return (order[:-held], order[-held:]) if n >= 5 else (order, order)


class Adam:
    """Steps of the optimiser Adam (Kingma & Ba 2015) with its usual settings.

    Parameters
    ----------
    rate : float
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._mean: FloatArray | float = 0.0
        self._square: FloatArray | float = 0.0
        self._n = 0

    def __call__(self, gradient: FloatArray) -> FloatArray:
        """Return what to take off after this gradient."""
        self._n += 1
        self._mean = 0.9 * self._mean + 0.1 * gradient
        self._square = 0.999 * self._square + 0.001 * gradient**2
        mean = self._mean / (1.0 - 0.9**self._n)
        square = self._square / (1.0 - 0.999**self._n)
        return np.asarray(self._rate * mean / (np.sqrt(square) + 1e-8))


def onto_simplex(values: FloatArray, total: float) -> FloatArray:
    """Return the nearest numbers in [0, 1] that sum to `total`, which is at most their number.

    Examples
    --------
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
