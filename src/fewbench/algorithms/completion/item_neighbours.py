"""Item-based collaborative filtering: answers to items read off those to the most similar ones.

Equations 6 and 11 of "Efficient Evaluation of Large Language Models via Collaborative Filtering".
Everything is rounded to 12 decimals, so that what is equal ties whatever the order of sums.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fewbench._types import FloatArray, IntArray

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
