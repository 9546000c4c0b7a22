"""Whether cells are missing at random, or by task, by item, or by how hard an item is.

That models have different shares of missing cells is no bias and is taken as given: each test
compares with the same number of cells of the same model, drawn at random.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Missingness:
    """What speaks against missing at random.

    Attributes
    ----------
    by_model : ndarray, shape (models,)
        Share of the items that each model was not run on.
    by_task : ndarray, shape (models, tasks)
        The same within each task.
    p_task : float
        Probability that chance alone spreads the cells so unevenly over tasks (chi-squared).
    p_item : float
        Probability that chance alone heaps them so on the same items (dispersion).
    easier : ndarray, shape (models,)
        How much better the others score on the items that the model lacks than on those it ran;
        NaN where nothing is missing.
    p_easier : ndarray, shape (models,)
        Two-sided, of a difference as large; NaN where nothing is missing.
    """

    by_model: FloatArray
    by_task: FloatArray
    p_task: float
    p_item: float
    easier: FloatArray
    p_easier: FloatArray


def missingness(values: FloatArray, task_of: IntArray) -> Missingness:
    """Test where cells are missing.

    Parameters
    ----------
    values : ndarray, shape (models, items)
        Scores; NaN where not run.
    task_of : ndarray of int, shape (items,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.random((8, 300))
    >>> rows[0, :60] = np.nan
    >>> found = missingness(rows, np.arange(300) // 60)
    >>> found.by_task[0].tolist(), found.p_task < 0.001
    ([1.0, 0.0, 0.0, 0.0, 0.0], True)
    """
    gone = np.isnan(values)
    sizes = np.bincount(task_of)
    counts = np.stack([np.bincount(task_of, row, len(sizes)) for row in gone.astype(np.float64)])
    easier, p_easier = _difficulty(values, gone)
    return Missingness(
        gone.mean(axis=1),
        counts / sizes,
        _uneven_over_tasks(counts, sizes),
        _heaped_on_items(gone),
        easier,
        p_easier,
    )


def _uneven_over_tasks(counts: NDArray[Any], sizes: IntArray) -> float:
    """Compare each model's missing cells per task with a draw without replacement."""
    from scipy.special import chdtrc

    n = sizes.sum()
    share = counts.sum(axis=1, keepdims=True) / n
    used = (share[:, 0] > 0) & (share[:, 0] < 1)
    if not used.any() or len(sizes) < 2:
        return 1.0
    expected = share[used] * sizes
    squares = (counts[used] - expected) ** 2 / np.maximum(expected * (1 - share[used]), 1e-12)
    # Of a draw without replacement the sum has the mean (tasks - 1) n / (n - 1).
    statistic = squares.sum() * (n - 1) / n
    df = used.sum() * (len(sizes) - 1)
    # Where few cells are expected the sum varies more than chi-squared does.
    k = len(sizes)
    drawn = counts[used].sum(axis=1)
    variance = 2 * df + (1 / expected).sum() - ((k * k + 2 * k - 2) / drawn).sum()
    factor = max(float(variance) / (2 * df), 1.0)
    return float(chdtrc(df / factor, statistic / factor))


def _heaped_on_items(gone: BoolArray) -> float:
    """Compare the spread of the items' counts of missing cells with independent models'."""
    from scipy.special import ndtr

    share = gone.mean(axis=1)
    n_items = gone.shape[1]
    variance = float((share * (1 - share)).sum())
    if (gone.any(axis=1).sum() < 2) or variance <= 0 or n_items < 3:
        return 1.0
    counts = gone.sum(axis=0)
    statistic = ((counts - counts.mean()) ** 2).sum() / variance
    df = n_items - 1
    return float(ndtr(-(statistic - df) / np.sqrt(2 * df)))


def _difficulty(values: FloatArray, gone: BoolArray) -> tuple[FloatArray, FloatArray]:
    from scipy.special import ndtr

    easier, p = np.full(len(values), np.nan), np.full(len(values), np.nan)
    total = np.where(gone, 0.0, values).sum(axis=0)
    ran = (~gone).sum(axis=0)
    for row in np.flatnonzero(gone.any(axis=1)):
        own = np.where(gone[row], 0.0, values[row])
        others = ran - ~gone[row]
        known = others > 0
        mean = (total - own)[known] / others[known]
        lacks = gone[row][known]
        k, n = int(lacks.sum()), len(lacks)
        if not 0 < k < n:
            continue
        easier[row] = mean[lacks].mean() - mean[~lacks].mean()
        spread = mean.std(ddof=1) * np.sqrt(1 / k + 1 / (n - k))
        p[row] = 2 * ndtr(-abs(easier[row]) / spread) if spread > 1e-12 else 1.0
    return easier, p
