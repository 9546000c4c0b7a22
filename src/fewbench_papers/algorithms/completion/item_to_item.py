"""Predict a model's answers to items from its answers to other items.

- Lines: each item by the best least-squares line from one of a few items.
- Neighbors: item-based collaborative filtering, Section 4.2.2 of "Efficient Evaluation of Large
  Language Models via Collaborative Filtering". Values are rounded to 12 decimals, so equal values
  tie in whatever order sums are taken.
- Transport: new columns by optimal transport between columns of scores, with uniform masses and
  Euclidean costs (Eq. 9), solved exactly by POT's network simplex. Each column of the plan is
  divided by its sum: as printed, with columns that sum to 1 / number of items, every transported
  value would be near 0. If several plans are optimal, the one that keeps the order of the items
  most is taken, so that every solver gives the same answer.
"""

import math
from dataclasses import dataclass

import numpy as np

from fewbench.algorithms import ties
from fewbench.errors import MissingExtraError
from fewbench.support import FloatArray, IntArray

_BLOCK = 256  # items at a time: a table of all anchors and items is large


@dataclass(frozen=True, eq=False)
class ItemLines:
    """Item i is expected at slope[i] × (answer on anchor nearest[i] - start) + mean[i].

    `nearest`, `slope` and `mean` have shape (items,); `start`, shape (anchors,), has the anchors'
    means.
    """

    nearest: IntArray
    slope: FloatArray
    mean: FloatArray
    start: FloatArray

    def predict(self, answers: FloatArray) -> FloatArray:
        """Return unclipped expectations, (targets, items), from answers, (targets, anchors)."""
        return np.asarray((answers - self.start)[:, self.nearest] * self.slope + self.mean)


def fit_item_lines(values: FloatArray, anchors: IntArray) -> ItemLines:
    """Fit least-squares lines from each anchor to each item; keep each item's best line.

    `values`, shape (models, items), has no missing cell; `anchors` are positions of items. The
    first of equally good anchors wins. From an anchor with equal scores, the line is level at the
    item's mean.

    >>> values = np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 0.5], [1.0, 1.0, 1.0]])
    >>> fit_item_lines(values, np.array([0, 1])).predict(np.array([[1.0, 1.0]])).round(2).tolist()
    [[1.0, 1.0, 0.75]]
    """
    mean = values.mean(axis=0)
    centred = values - mean
    centred[:, values.min(axis=0) == values.max(axis=0)] = 0.0  # not merely nearly so
    of_anchors = centred[:, anchors]
    spread = (of_anchors**2).sum(axis=0)
    total = (centred**2).sum(axis=0)
    nearest = np.empty(values.shape[1], dtype=np.intp)
    slope = np.empty(values.shape[1])
    for first in range(0, values.shape[1], _BLOCK):
        part = slice(first, first + _BLOCK)
        shared = of_anchors.T @ centred[:, part]  # (anchors, items of the block)
        slopes = shared / np.where(spread > 0, spread, 1.0)[:, None]
        explained = slopes * shared / np.where(total[part] > 0, total[part], 1.0)
        best = ties.argmax(explained, axis=0, scale=0.1)  # squared correlations
        nearest[part], slope[part] = best, slopes[best, np.arange(len(best))]
    return ItemLines(nearest, slope, mean, mean[anchors])


_DECIMALS = 12
_HAIR = 1e-12  # so that equal similarities are not parted by the rounding of their mean


def importance(values: FloatArray) -> FloatArray:
    """Return how well each item tells models apart: the variance of its scores (Eq. 6).

    `values` has shape (models, items); the result, shape (items,), is 0 for one model.

    >>> importance(np.array([[1.0, 0, 1], [1, 0, 0], [1, 1, 0], [1, 1, 0]])).round(3).tolist()
    [0.0, 0.333, 0.25]
    """
    if len(values) < 2:
        return np.zeros(values.shape[1])
    return np.asarray(np.round(values.var(axis=0, ddof=1), _DECIMALS))


def cosine_similarities(rows: FloatArray, among: FloatArray) -> FloatArray:
    """Cosine similarity of each row with each row of `among`.

    A row of zeros has similarity 1 with rows of zeros and 0 with others.

    >>> rows = np.array([[1.0, 0.0], [0.0, 0.0]])
    >>> cosine_similarities(rows, np.array([[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    lengths, others = _lengths(rows), _lengths(among)
    similarities = rows @ among.T
    similarities /= np.where(lengths > 0, lengths, 1.0)[:, None]
    similarities /= np.where(others > 0, others, 1.0)
    similarities[np.ix_(lengths == 0, others == 0)] = 1.0
    return np.asarray(np.round(similarities, _DECIMALS, out=similarities))


def most_similar(row: FloatArray, among: FloatArray, n: int, priority: IntArray) -> IntArray:
    """Return the positions of the n rows with the highest cosine similarity to `row`.

    Ties go to the least Manhattan distance (to a row of zeros all rows are equally similar), then
    to the least priority. Fewer than n rows are all returned.

    >>> rows = np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    >>> most_similar(np.zeros(2), rows, 2, np.arange(3)).tolist()
    [2, 1]
    """
    similarities = ties.levels(-cosine_similarities(row[None], among)[0])
    apart = ties.levels(np.abs(among - row).sum(axis=1))
    return np.lexsort((priority, apart, similarities))[:n]


def _lengths(rows: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


@dataclass(frozen=True)
class ItemNeighbours:
    """Settings for predicting items from similar items.

    - `neighbours`: Number of most similar items; all where there are fewer.
    - `least`: Items whose neighbors' mean similarity is below this use the fallback.
    - `quantile`: So do items below this quantile of the items' mean similarities.
    """

    neighbours: int
    least: float
    quantile: float

    def find(self, items: FloatArray, known: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return items' mean similarity to the most similar known items, and their positions.

        `items` and `known`, shapes (models, items) and (models, known items), are source scores.
        Results have shapes (items,) and (items, neighbors). The first of equally similar known
        items are taken.
        """
        n = min(self.neighbours, known.shape[1])
        similarities, nearest = _highest(cosine_similarities(items.T, known.T), n)
        return similarities.sum(axis=1) / max(n, 1), nearest

    def predict(
        self, similarity: FloatArray, nearest: IntArray, answers: FloatArray, fallback: FloatArray
    ) -> FloatArray:
        """Predict answers to items, shape (items,), from `answers`, shape (known items,).

        `similarity` and `nearest` are those of `find`. `fallback`, shape (items,), is for items
        without similar known items.

        >>> known = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        >>> items = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
        >>> settings = ItemNeighbours(1, least=0.5, quantile=0.0)
        >>> neighbors = settings.find(items, known)
        >>> settings.predict(*neighbors, np.array([0.0, 1.0]), np.array([0.5, 0.5])).tolist()
        [0.0, 1.0]
        """
        if not nearest.size:
            return fallback.copy()
        theirs = answers[nearest].sum(axis=1) / nearest.shape[1]
        enough = max(self.least, float(np.quantile(similarity, self.quantile)))
        return np.where(similarity >= enough - _HAIR, theirs, fallback)


def _highest(values: FloatArray, k: int) -> tuple[FloatArray, IntArray]:
    """Return each row's k highest values and their positions, ties to the lowest position.

    Overwrites the values. A few passes are faster than sorting.
    """
    rows = np.arange(len(values))
    highest, where = np.empty((len(values), k)), np.empty((len(values), k), dtype=np.intp)
    for at in range(k):
        where[:, at] = values.argmax(axis=1)
        highest[:, at] = values[rows, where[:, at]]
        values[rows, where[:, at]] = -np.inf
    return highest, where


_MOST_PIVOTS = 10**9
_ORDER = 1e-8  # of the largest cost: what the order of the items counts
_DECIMALS = 12


def check_solver() -> None:
    """Raise MissingExtraError if the solver is not installed."""
    try:
        import ot  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "optimal transport needs the package POT", hint="pip install 'fewbench[transport]'"
        ) from error


def column_distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """Euclidean distances between the columns of a and the columns of b, by one matrix product.

    For whole-number scores the squares are exact, so equal distances are equal to the last bit.

    >>> column_distances(np.array([[0.0, 1], [0, 1]]), np.array([[1.0], [0]])).tolist()
    [[1.0], [1.0]]
    """
    squares = (a**2).sum(axis=0)[:, None] + (b**2).sum(axis=0) - 2.0 * (a.T @ b)
    # What is left of equal columns by rounding is not a distance.
    return np.asarray(np.sqrt(np.maximum(np.round(squares, _DECIMALS), 0.0)))


def barycentric_weights(costs: FloatArray) -> FloatArray:
    """Solve the transport problem and return the plan, each column divided by its sum.

    `costs` has shape (from, to); both sides have uniform masses of the same total. Column k of the
    result has the shares of the mass that arrives at k. If several plans are optimal, first items
    go to first items. Raises MissingExtraError if POT is missing.

    >>> barycentric_weights(np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    >>> barycentric_weights(np.zeros((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    check_solver()
    import ot

    n_from, n_to = costs.shape
    # Whole masses, so that the solver only adds and subtracts whole numbers and the shares are
    # exact: a share of one half is one half.
    common = math.gcd(n_from, n_to)
    supply, taken = n_to // common, n_from // common
    plan = ot.emd(
        np.full(n_from, float(supply)),
        np.full(n_to, float(taken)),
        costs - _ORDER * (costs.max() or 1.0) * in_order(n_from, n_to),
        numItermax=_MOST_PIVOTS,
        center_dual=False,
    )
    return np.asarray(plan / taken, dtype=np.float64)


def in_order(n_from: int, n_to: int) -> FloatArray:
    """Return what is gained by taking one item to another: most if all keep their order.

    Roots of whole numbers hardly ever add up alike, so one plan gains most.
    """
    ranks = (np.sqrt(np.arange(1, n + 1) / n) for n in (n_from, n_to))
    return np.asarray(np.multiply.outer(*ranks))


def mixed(values: FloatArray, shares: FloatArray, *, binary: bool) -> FloatArray:
    """Mix the last axis of `values`, shape (…, from), in `shares`, shape (from, to) (Eq. 9).

    The barycenter of what arrives at an item is a column in the space of the sources, so a target's
    answers can be mixed in the same shares as the sources' columns. `binary` rounds results to 0 or
    1, one half up.
    """
    mix = values @ shares
    return (np.round(mix, _DECIMALS) >= 0.5).astype(np.float64) if binary else np.asarray(mix)
