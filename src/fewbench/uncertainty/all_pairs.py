"""The differences of all pairs of models of a table, by a few products of matrices.

Two models that ran all items differ by the mean of their items' differences, d. Its variance for
other questions of the kind and another run is

    S^2 / N,   S^2 = (sum (d - mean d)^2 + 2 s0^2) / (N + 1)

(see `questions`, also for s0^2, which is 1 for right and wrong answers; where items belong
together, also `clustered`). For all pairs, sum d^2 = sum y_i^2 + sum y_j^2 - 2 sum y_i y_j: one
product of the table with itself. Where models lack items, the n items that both ran say how far d
varies, and the variance is

    S^2 / n + (D - mean d)^2

of which S^2 (1/n - 1/N) belongs to the items that one of the two lacks. Full scores count missing
items as the table expects them (`Scores.filled`), which may move the difference of the scores, D,
away from the one on the common items.
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from fewbench._blocks import blocks, by_rows, total
from fewbench._types import FloatArray, IntArray
from fewbench.scores import Scores
from fewbench.uncertainty.contrast import DIGITS, ONE_SIGMA
from fewbench.uncertainty.questions import (
    TINY,
    added_by_clusters,
    joined_tasks,
    task_terms,
    variance_by_task,
)

COMPARED = 1024
"""Items, about, whose scores are compared to see how often two models differ."""


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Differences of models' scores in [0, 1], row minus column, each array (models, models).

    Attributes
    ----------
    difference, variance, freedom : ndarray
        With the degrees of freedom of the variance, which is 0 for a known difference.
    """

    difference: FloatArray
    variance: FloatArray
    freedom: FloatArray

    @property
    def p_values(self) -> FloatArray:
        """The smallest 1 - level at which a pair's interval excludes 0; two-sided."""
        from scipy.special import stdtr

        size = np.abs(self.difference)
        t = np.divide(size, np.sqrt(self.variance), where=self.variance > 0,
                      out=np.where(size > 0, np.inf, 0.0))  # fmt: skip
        return np.asarray(2 * stdtr(self.freedom, -t))

    @property
    def standard_errors(self) -> FloatArray:
        """Half the widths of the intervals, as of `Contrast.standard_error`."""
        from scipy.special import stdtrit

        freedom = self.freedom
        if freedom.size and (freedom == freedom.flat[0]).all():  # all items ran, for all pairs
            freedom = freedom[:1, :1]
        return np.asarray(stdtrit(freedom, 0.5 + ONE_SIGMA / 2) * np.sqrt(self.variance))


def all_pairs(
    scores: Scores,
    estimates: FloatArray,
    *,
    fixed_items: bool = False,
    of_blocks: FloatArray | None = None,
) -> AllPairs:
    """Return the differences of the full scores of all pairs of models.

    Parameters
    ----------
    scores : Scores
        Models that ran most items.
    estimates : ndarray, shape (models,)
        Their full scores in [0, 1], missing items counted as expected.
    fixed_items : bool
        Whether the difference on exactly these items is meant: then only missing items leave
        an error.
    of_blocks : ndarray, shape (models,), optional
        The variance of each score that missing tasks leave (`block_variances`).

    Examples
    --------
    >>> from fewbench import from_arrays
    >>> table = from_arrays([[1, 1, 0, 1, 1, 1], [1, 0, 1, 0, 0, 1]], models=["a", "b"])
    >>> pairs = all_pairs(table, table.full_scores())
    >>> pairs.difference.round(2).tolist(), pairs.p_values.round(2).tolist()
    ([[0.0, 0.33], [-0.33, 0.0]], [[1.0, 0.39], [0.39, 1.0]])
    """
    weights, is_macro = scores.item_weights, scores.average == "macro"
    part_of = np.zeros(scores.n_items, dtype=np.intp)
    if is_macro:  # tasks are fixed, so each varies about its own mean
        part_of = joined_tasks(np.bincount(scores.task_of))[scores.task_of]
    mean, squares, sums = np.zeros((1, 1)), np.zeros((1, 1)), list[FloatArray]()
    for part in range(part_of.max() + 1):
        items = np.flatnonzero(part_of == part)
        w = weights[items]
        common, share = _common(scores, items, w), float(w.sum())
        load = share**2 * common.load
        squares = squares + common.squares * load / np.maximum(common.effective, 1.0)
        if fixed_items:
            load = np.where(common.count < len(items), np.maximum(load - w @ w, 0.0), 0.0)
        mean = mean + share * common.mean
        moments = common.squares, common.whole, common.differing
        sums = _added(sums, task_terms(common.effective, load, *moments))
    variance, freedom = variance_by_task(sums)
    if not is_macro:
        freedom = np.maximum(common.count - 1.0, 1.0) + np.zeros_like(variance)
    if scores.cluster_of is not None:
        # Missing items leave fewer clusters' items; without any, these items have no error.
        times = scores.n_items / _count(scores)
        more, freedom = _of_clusters(scores, scores.cluster_of, squares / times)
        variance += more * (times - fixed_items)
    difference = np.round(estimates[:, None] - estimates, DIGITS)
    moved = np.round(difference - mean, DIGITS)
    filled = moved**2
    if of_blocks is not None:
        blocks_of_both = of_blocks[:, None] + of_blocks
        np.fill_diagonal(blocks_of_both, 0.0)
        filled = np.where(blocks_of_both > 0, blocks_of_both, filled)
    variance = variance + filled
    np.fill_diagonal(variance, 0.0)  # a model does not differ from itself
    return AllPairs(difference, variance, freedom)


def _of_clusters(
    scores: Scores, cluster_of: IntArray, of_items: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return what clusters add to the variances, and degrees of freedom, missing cells filled."""
    weights, is_macro = scores.item_weights, scores.average == "macro"
    _, cluster_of = np.unique(cluster_of, return_inverse=True)
    order = np.argsort(cluster_of, kind="stable")
    begin = np.flatnonzero(np.diff(cluster_of[order], prepend=-1))

    def sums(cells: FloatArray) -> FloatArray:
        mean = (cells @ weights)[:, None]
        if is_macro:
            mean = scores.task_means(cells)[:, scores.task_of]
        parts = weights * (cells - mean)
        return np.asarray(np.add.reduceat(parts[:, order], begin, axis=1))

    of_models = by_rows(scores.filled_cells, sums)
    squares = (of_models**2).sum(axis=1)
    apart = np.maximum(squares[:, None] + squares - 2 * (of_models @ of_models.T), 0.0)
    return added_by_clusters(apart, of_items, weights, cluster_of, scores.task_of * is_macro)


def _count(scores: Scores) -> FloatArray:
    """Return how many items both models of each pair ran, at least 1."""
    if not scores.has_missing:
        return np.array([[float(scores.n_items)]])
    every = (scores.is_run[:, part].astype(float) for part in blocks(scores.n_items, len(scores)))
    return np.asarray(np.maximum(total(part @ part.T for part in every), 1.0))


@dataclass(frozen=True, eq=False)
class _Common:
    """What the items show that both models of a pair ran; arrays of (models, models) or (1, 1).

    `mean` is the weighted mean of their differences d, `load` is sum w^2 / (sum w)^2, and
    `effective` as many items as these n count, m = (sum w^2)^2 / sum w^4. `squares`, `whole` and
    `differing` are m / sum w^2 times the sums of w^2 (d - d')^2, with d' their mean by w^2, of
    w^2 d^2, and of w^2 where d is not 0.
    """

    count: FloatArray
    effective: FloatArray
    mean: FloatArray
    load: FloatArray
    squares: FloatArray
    whole: FloatArray
    differing: FloatArray


def _common(scores: Scores, items: IntArray, weights: FloatArray) -> _Common:
    w = weights / weights.mean() if np.ptp(weights) else np.ones(len(weights))
    blocks_of_items = (
        _sums(scores.cells[:, items[part]], w[part], has_missing=scores.has_missing)
        for part in blocks(len(items), scores.n_models)
    )
    count, weight, load, fourth, first, second, own, products = reduce(_added, blocks_of_items)
    mean = (first - first.T) / np.maximum(weight, TINY)
    effective = load**2 / np.maximum(fourth, TINY)
    whole, by_square = own + own.T - 2 * products, second - second.T
    squares = np.maximum(whole - by_square**2 / np.maximum(load, TINY), 0.0)
    squares, whole = (effective * each / np.maximum(load, TINY) for each in (squares, whole))
    differing = whole
    if not scores.is_binary:
        differing = np.maximum(whole, effective * _differing(scores, items, w**2))
    load = load / np.maximum(weight, TINY) ** 2
    return _Common(count, effective, mean, load, squares, whole, differing)


def _differing(scores: Scores, items: IntArray, squares: FloatArray) -> FloatArray:
    """Return the share of items on which the scores of two models differ, by squared weights.

    In large tables every few items are counted: the more models differ, the less it matters.
    """
    some = slice(None, None, -(-scores.n_items // COMPARED))
    y, squares = np.round(scores.cells[:, items[some]], DIGITS), squares[some]
    run, shares = ~np.isnan(y), np.zeros((len(y), len(y)))
    for row in range(len(y) - 1):
        both = run[row + 1 :] & run[row]
        apart = both & (y[row + 1 :] != y[row])
        shares[row, row + 1 :] = (apart @ squares) / np.maximum(both @ squares, TINY)
    return shares + shares.T


def _added(sums: list[FloatArray], more: list[FloatArray]) -> list[FloatArray]:
    return [a + b for a, b in zip(sums, more, strict=True)] if sums else more


def _sums(cells: FloatArray, w: FloatArray, *, has_missing: bool) -> list[FloatArray]:
    """Return sums over the items that both models ran.

    The sums are those of 1, w, w^2, w^4, w y, w^2 y, w^2 y^2 and w^2 y y', where y is of the row's
    model and y' of the column's. If none is missing, sums without y' have the shape (models, 1).
    """
    run = (~np.isnan(cells)).astype(np.float64)
    y = np.nan_to_num(cells, nan=0.0)

    def both(values: FloatArray) -> FloatArray:
        return values @ run.T if has_missing else values.sum(axis=1, keepdims=True)

    count, first = both(run), both(y)
    squares = first if np.array_equal(y, y * y) else both(y * y)
    if (w == 1).all():
        return [count, count, count, count, first, first, squares, y @ y.T]
    second = y * w**2
    sums = [count, *(both(run * w**power) for power in (1, 2, 4)), both(y * w), both(second)]
    return [*sums, both(second * y), second @ y.T]
