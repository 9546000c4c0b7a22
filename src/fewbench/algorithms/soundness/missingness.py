"""Whether cells are missing at random, or by task, by item or by difficulty.

Models may have different shares of missing cells: each test compares with the same number of
random cells of the same model. With few missing cells, the usual approximations find too many
patterns. Cells are then drawn, and a bound that holds for any number judges difficulty.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fewbench._blocks import Matrix, by_columns, not_run
from fewbench._types import BoolArray, FloatArray, IntArray

FEW = 5000  # cells
DRAWS = 999
UNLIKELY = 0.1  # what an approximation calls likelier is not worth drawing


@dataclass(frozen=True, eq=False)
class Missingness:
    """Evidence against missing at random.

    - `by_model`, shape (models,): Share of items that each model was not run on.
    - `by_task`, shape (models, tasks): The same within each task.
    - `p_task`, `p_item`: Probability that chance spreads the cells so unevenly over tasks
      (chi-squared), or concentrates them so on the same items (dispersion).
    - `easier`, shape (models,): How much better the others score on the model's missing items than
      on its other items, NaN where nothing is missing.
    - `p_easier`, shape (models,): Two-sided upper bound of the probability of such a difference,
      NaN where nothing is missing.
    """

    by_model: FloatArray
    by_task: FloatArray
    p_task: float
    p_item: float
    easier: FloatArray
    p_easier: FloatArray


def missingness(values: Matrix, task_of: IntArray) -> Missingness:
    """Test where cells of `values`, shape (models, items), are missing (NaN).

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.random((8, 300))
    >>> rows[0, :60] = np.nan
    >>> found = missingness(rows, np.arange(300) // 60)
    >>> found.by_task[0].tolist(), found.p_task <= 0.001
    ([1.0, 0.0, 0.0, 0.0, 0.0], True)
    """
    gone = not_run(values)
    sizes = np.bincount(task_of)
    lacks = gone.sum(axis=1)
    rows, items = np.nonzero(gone)
    of_task = _by_task(rows, items, task_of, len(values))
    p_task = _uneven_over_tasks(of_task, sizes)
    p_item = _heaped_on_items(gone)
    if lacks.sum() <= FEW:
        # Models by what they lack and tasks by size: no order of the table changes what is drawn.
        there = np.repeat(np.arange(len(sizes)), np.sort(sizes))
        lacks = np.sort(lacks)
        if p_task < UNLIKELY:
            seen = _unevenness(of_task, sizes)
            drawn = (
                _unevenness(_by_task(row, item, there, len(values)), np.sort(sizes))
                for row, item in _draws(lacks, len(there))
            )
            p_task = _share_above(seen, drawn)
        if p_item < UNLIKELY:
            seen = float((gone.sum(axis=0) ** 2).sum())
            drawn = (float((np.bincount(item) ** 2).sum()) for _, item in _draws(lacks, len(there)))
            p_item = _share_above(seen, drawn)
    easier, p_easier = _difficulty(values, gone)
    return Missingness(gone.mean(axis=1), of_task / sizes, p_task, p_item, easier, p_easier)


def _by_task(row: IntArray, item: IntArray, task_of: IntArray, n_models: int) -> FloatArray:
    """Count cells by model and task."""
    n = int(task_of.max()) + 1
    counts = np.bincount(row * n + task_of[item], minlength=n_models * n)
    return np.asarray(counts.reshape(n_models, n), dtype=np.float64)


def _draws(lacks: IntArray, n_items: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Draw as many different items per model as it lacks; yield their models and items."""
    rng = np.random.default_rng(0)
    models = np.arange(len(lacks))
    many = lacks > n_items / 5  # of all items in random order, the first; else until all differ
    ordered = np.tile(np.arange(n_items), (int(many.sum()), 1))
    first = ordered < lacks[many][:, None]
    row = np.repeat(models, np.where(many, 0, lacks))
    rows = np.concatenate([row, models[many][np.nonzero(first)[0]]])
    for _ in range(DRAWS):
        item = rng.integers(n_items, size=len(row))
        while True:
            again = np.ones(len(row), dtype=np.bool_)
            again[np.unique(row * n_items + item, return_index=True)[1]] = False
            if not again.any():
                break
            item[again] = rng.integers(n_items, size=int(again.sum()))
        yield rows, np.concatenate([item, rng.permuted(ordered, axis=1)[first]])


def _share_above(seen: float, drawn: Iterator[float]) -> float:
    """Return the probability of such a value by chance, the table itself counted as one draw."""
    return (1 + sum(value >= seen - 1e-9 * abs(seen) for value in drawn)) / (DRAWS + 1)


def _unevenness(counts: FloatArray, sizes: IntArray) -> float:
    """Sum over models and tasks of squared differences from an even share, in variances."""
    n = sizes.sum()
    share = counts.sum(axis=1, keepdims=True) / n
    used = (share[:, 0] > 0) & (share[:, 0] < 1)
    expected = share[used] * sizes
    squares = (counts[used] - expected) ** 2 / np.maximum(expected * (1 - share[used]), 1e-12)
    # For a draw without replacement, the sum has the mean (tasks - 1) n / (n - 1).
    return float(squares.sum() * (n - 1) / n)


def _uneven_over_tasks(counts: FloatArray, sizes: IntArray) -> float:
    """Compare each model's missing cells per task with a draw without replacement: chi-squared."""
    from scipy.special import chdtrc

    lacks, n, k = counts.sum(axis=1), sizes.sum(), len(sizes)
    lacks = lacks[(lacks > 0) & (lacks < n)]
    if not len(lacks) or k < 2:
        return 1.0
    df = len(lacks) * (k - 1)
    # Where few cells are expected the sum varies more than chi-squared does.
    sparse = (n / np.outer(lacks, sizes)).sum() - ((k * k + 2 * k - 2) / lacks).sum()
    factor = max(1.0 + float(sparse) / (2 * df), 1.0)
    return float(chdtrc(df / factor, _unevenness(counts, sizes) / factor))


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


def _difficulty(values: Matrix, gone: BoolArray) -> tuple[FloatArray, FloatArray]:
    """How much easier for others a model's missing items are, with Bernstein's bound on chance.

    The bound is exp(-t² / (2 v + 2 b t / 3)), with t the distance of a sum of k values from its
    expectation, v its variance and b the largest distance of one value. It also holds for draws
    without replacement (Hoeffding 1963).
    """
    easier, p = np.full(len(values), np.nan), np.full(len(values), np.nan)
    total = by_columns(values, lambda part: np.where(np.isnan(part), 0.0, part).sum(axis=0))
    ran = (~gone).sum(axis=0)
    for row in np.flatnonzero(gone.any(axis=1)):
        scores = np.where(gone[row], 0.0, values[row])
        others = ran - ~gone[row]
        shared = others > 0
        mean = (total - scores)[shared] / others[shared]
        lacks = gone[row][shared]
        k, n = int(lacks.sum()), len(lacks)
        if not 0 < k < n:
            continue
        easier[row] = mean[lacks].mean() - mean[~lacks].mean()
        apart = np.abs(mean - mean.mean())
        far = abs(mean[lacks].sum() - k * mean.mean())
        room = 2 * min(k, n - k) * (apart**2).mean() + 2 * apart.max() * far / 3
        p[row] = min(1.0, 2 * np.exp(-(far**2) / room)) if room > 1e-12 else 1.0
    return easier, p
