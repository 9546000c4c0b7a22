"""A line from one item to each other: the best of the lines from a few items, over models."""

from dataclasses import dataclass

import numpy as np

from fewbench._types import FloatArray, IntArray

_DECIMALS = 10  # of squared correlations, so that rounding does not part equally good lines
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
        best = np.round(explained, _DECIMALS).argmax(axis=0)
        nearest[part], slope[part] = best, slopes[best, np.arange(len(best))]
    return ItemLines(nearest, slope, mean, mean[anchors])
