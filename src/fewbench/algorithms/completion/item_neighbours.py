"""Item-based collaborative filtering: answers to items read off those to the most similar ones."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewbench.algorithms.completion.importance import cosine_similarities

FloatArray = NDArray[np.float64]
_HAIR = 1e-12  # so that equal similarities are not parted by the rounding of their mean


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


def _highest(values: FloatArray, k: int) -> tuple[FloatArray, NDArray[np.intp]]:
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
