"""A line from one item to each other: the best of the lines from a few items, over models.

Item-based collaborative filtering: answers to items read off those to the most similar ones.

Equations 6 and 11 of "Efficient Evaluation of Large Language Models via Collaborative Filtering".
Everything is rounded to 12 decimals, so that what is equal ties whatever the order of sums.

Optimal transport between columns of scores, and new columns made of it.

Uniform masses, Euclidean costs, the linear programme solved exactly (network simplex of the
optional package POT). The best plan need not be unique: of several of the same cost the solver
returns one, always the same for the same matrix.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.errors import MissingExtraError

_LINE_DECIMALS = 10  # of squared correlations, so that rounding does not part equally good lines
_BLOCK = 256  # items at a time: a table of all anchors and items is large


@dataclass(frozen=True, eq=False)
class ItemLines:
    """Item i is expected at slope[i] × (answer on nearest[i] - start) + mean[i].

    Attributes
    ----------
    nearest : ndarray of int, shape (items,)
        Which of the anchors the item's line is from, counted among them.
    slope, mean : ndarrays, shape (items,)
    start : ndarray, shape (anchors,)
        The anchors' means.
    """

    nearest: IntArray
    slope: FloatArray
    mean: FloatArray
    start: FloatArray

    def predict(self, answers: FloatArray) -> FloatArray:
        """Return what is expected of every item, shape (targets, items), not kept in [0, 1].

        Parameters
        ----------
        answers : ndarray, shape (targets, anchors)
        """
        return np.asarray((answers - self.start)[:, self.nearest] * self.slope + self.mean)


def fit_item_lines(values: FloatArray, anchors: IntArray) -> ItemLines:
    """Fit, for each item, a line from each anchor by least squares; keep that of least residual.

    Of equally good lines the first anchor's is kept. From an anchor on which all models score
    alike, the line is level at the item's mean.

    Parameters
    ----------
    values : ndarray, shape (models, items)
        No cell missing.
    anchors : ndarray of int, shape (anchors,)
        Positions of items.

    Examples
    --------
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
        best = np.round(explained, _LINE_DECIMALS).argmax(axis=0)
        nearest[part], slope[part] = best, slopes[best, np.arange(len(best))]
    return ItemLines(nearest, slope, mean, mean[anchors])


Importance = Literal["variance", "balance"]
_DECIMALS = 12
_HAIR = 1e-12  # so that equal similarities are not parted by the rounding of their mean


def importance(values: FloatArray, kind: Importance) -> FloatArray:
    """Importance v(x | F) of items to tell the models F apart.

    Parameters
    ----------
    values : ndarray, shape (models, items)
    kind : {"variance", "balance"}
        The sample variance of an item's scores (Eq. 6; 0 of one model), or, of right-or-wrong
        scores, 1 / |right - wrong| (Eq. 11; as many right as wrong counts as a difference of 1,
        still more than any other an even number of models can have).

    Returns
    -------
    ndarray, shape (items,)

    Examples
    --------
    >>> answers = np.array([[1.0, 0, 1], [1, 0, 0], [1, 1, 0], [1, 1, 0]])
    >>> importance(answers, "variance").round(3).tolist()
    [0.0, 0.333, 0.25]
    >>> importance(answers, "balance").tolist()
    [0.25, 1.0, 0.5]
    """
    if kind == "balance":
        return np.asarray(1.0 / np.maximum(np.abs(2.0 * values.sum(axis=0) - len(values)), 1.0))
    if len(values) < 2:
        return np.zeros(values.shape[1])
    return np.asarray(np.round(values.var(axis=0, ddof=1), _DECIMALS))


def cosine_similarities(rows: FloatArray, among: FloatArray) -> FloatArray:
    """Cosine similarity of every row with every one of `among`.

    A row of zeros has similarity 1 with rows like it and 0 with others.

    Examples
    --------
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
    """Positions of the n rows most similar to one by the cosine, the most similar first.

    Of equally similar rows those at the least Manhattan distance come first (to a row of zeros
    all others are equally similar), then those of the least priority; all rows if there are fewer
    than n.

    Examples
    --------
    >>> rows = np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    >>> most_similar(np.zeros(2), rows, 2, np.arange(3)).tolist()
    [2, 1]
    """
    similarities = cosine_similarities(row[None], among)[0]
    apart = np.round(np.abs(among - row).sum(axis=1), _DECIMALS)
    return np.lexsort((priority, apart, -similarities))[:n]


def _lengths(rows: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


@dataclass(frozen=True)
class ItemNeighbours:
    """How answers are carried over from items to items like them.

    Parameters
    ----------
    neighbours : int
        How many most similar items are asked; all where there are fewer.
    weighted : bool
        Weigh their answers by similarity.
    least : float
        An item whose neighbours' mean similarity is below this is left to the fallback.
    quantile : float
        So is an item below this quantile of the items' mean similarities.
    """

    neighbours: int
    weighted: bool
    least: float
    quantile: float

    def predict(
        self, items: FloatArray, known: FloatArray, answers: FloatArray, fallback: FloatArray
    ) -> FloatArray:
        """Predict the answers to items from those to known items.

        Parameters
        ----------
        items : ndarray, shape (models, items)
            Columns of past scores.
        known : ndarray, shape (models, known items)
        answers : ndarray, shape (known items,)
        fallback : ndarray, shape (items,)
            For items without known items similar enough. Of equally similar known items the
            first are taken.

        Returns
        -------
        ndarray, shape (items,)

        Examples
        --------
        >>> known = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        >>> items = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
        >>> nearest = ItemNeighbours(1, weighted=False, least=0.5, quantile=0.0)
        >>> nearest.predict(items, known, np.array([0.0, 1.0]), np.array([0.5, 0.5])).tolist()
        [0.0, 1.0]
        """
        n_items, n_known = items.shape[1], known.shape[1]
        if not n_items or not n_known:
            return fallback.copy()
        similarities, nearest = _highest(
            cosine_similarities(items.T, known.T), min(self.neighbours, n_known)
        )
        mean = similarities.mean(axis=1)
        weights = similarities if self.weighted else np.ones_like(similarities)
        # Neighbours that are not similar at all weigh the same.
        weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)
        theirs = (weights * answers[nearest]).sum(axis=1) / weights.sum(axis=1)
        enough = max(self.least, float(np.quantile(mean, self.quantile)))
        return np.where(mean >= enough - _HAIR, theirs, fallback)


def _highest(values: FloatArray, k: int) -> tuple[FloatArray, IntArray]:
    """The k highest of every row and where they are, ties to the lowest position.

    The values are overwritten. A few passes are faster than sorting.
    """
    rows = np.arange(len(values))
    found, where = np.empty((len(values), k)), np.empty((len(values), k), dtype=np.intp)
    for at in range(k):
        where[:, at] = values.argmax(axis=1)
        found[:, at] = values[rows, where[:, at]]
        values[rows, where[:, at]] = -np.inf
    return found, where


_MOST_PIVOTS = 10**9
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
    """Euclidean distances between the columns of a and those of b, shape (columns, columns).

    By one matrix product. Where all scores are whole numbers (right or wrong, say) the squares
    are exact, so equal distances are equal to the last bit.

    Examples
    --------
    >>> column_distances(np.array([[0.0, 1], [0, 1]]), np.array([[1.0], [0]])).tolist()
    [[1.0], [1.0]]
    """
    squares = (a**2).sum(axis=0)[:, None] + (b**2).sum(axis=0) - 2.0 * (a.T @ b)
    # What is left of equal columns by rounding is not a distance.
    return np.asarray(np.sqrt(np.maximum(np.round(squares, _DECIMALS), 0.0)))


def barycentric_weights(costs: FloatArray) -> FloatArray:
    """Solve the transport problem and return the plan, each column divided by its sum.

    Parameters
    ----------
    costs : ndarray, shape (from, to)
        Both sides have uniform masses of the same total.

    Returns
    -------
    ndarray, shape (from, to)
        Column k says in what shares the mass that arrives at k comes from where.

    Raises
    ------
    MissingExtraError
        If POT is not installed.

    Examples
    --------
    >>> barycentric_weights(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    check_solver()
    import ot

    n_from, n_to = costs.shape
    # Whole masses, so that the solver only adds and subtracts whole numbers and the shares are
    # exact: a share of one half is one half.
    common = math.gcd(n_from, n_to)
    given, taken = n_to // common, n_from // common
    plan = ot.emd(
        np.full(n_from, float(given)),
        np.full(n_to, float(taken)),
        costs,
        numItermax=_MOST_PIVOTS,
        center_dual=False,
    )
    return np.asarray(plan / taken, dtype=np.float64)


def oversample(
    selected: FloatArray, unselected: FloatArray, answers: FloatArray, *, binary: bool
) -> tuple[FloatArray, FloatArray]:
    """Make a column for every unselected one, a mixture of the selected transported to it.

    Parameters
    ----------
    selected : ndarray, shape (sources, selected items)
        At least one.
    unselected : ndarray, shape (sources, unselected items)
        At least one.
    answers : ndarray, shape (selected items,)
        A target's scores on the selected items, mixed in the same shares.
    binary : bool
        Set what is made to 0 or 1, one half and more being 1.

    Returns
    -------
    columns : ndarray, shape (sources, unselected items)
    answers : ndarray, shape (unselected items,)
    """
    shares = barycentric_weights(column_distances(selected, unselected))
    columns, mixed = selected @ shares, answers @ shares
    if binary:
        columns, mixed = _halved(columns), _halved(mixed)
    return np.asarray(columns), np.asarray(mixed)


def _halved(values: FloatArray) -> FloatArray:
    return (np.round(values, _DECIMALS) >= 0.5).astype(np.float64)
