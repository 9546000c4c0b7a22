"""Whether models that score well on the other items also score well on this item."""

from dataclasses import dataclass

import numpy as np

from fewbench._blocks import Matrix, by_rows
from fewbench._types import BoolArray, FloatArray

_BLOCK = 2048  # items ranked at a time


@dataclass(frozen=True, eq=False)
class Discrimination:
    """How each item agrees with the other items; both arrays have shape (items,).

    `r` correlates the item's scores with the models' ranks by their mean on all other items. It is
    NaN where one of the two does not vary. `p` is the probability of an r this low if the true r is
    0: small for items that better models fail.
    """

    r: FloatArray
    p: FloatArray

    def wrong_way(self, level: float = 0.05) -> BoolArray:
        """Whether better models fail each item, at a false discovery rate of `level`."""
        from scipy.stats import false_discovery_control

        tested = ~np.isnan(self.p)
        wrong = np.zeros(len(self.p), dtype=np.bool_)
        wrong[tested] = false_discovery_control(self.p[tested]) <= level
        return wrong


def discrimination(values: Matrix, weights: FloatArray) -> Discrimination:
    """Correlate each item with the rest; `values`, shape (models, items), are NaN where not run.

    `weights`, shape (models,), count each model at most 1 (`likeness.independent_weights`). Their
    sum is the number of independent models, so ten models of a lineage do not count as ten.

    >>> ability = np.arange(40)[:, None]
    >>> rows = (ability > np.arange(1, 40)).astype(float)
    >>> rows[:, 20] = 1 - rows[:, 20]
    >>> np.flatnonzero(discrimination(rows, np.ones(40)).wrong_way()).tolist()
    [20]
    """
    from scipy.special import ndtr
    from scipy.stats import rankdata

    total = by_rows(values, lambda part: np.where(np.isnan(part), 0.0, part).sum(axis=1))[:, None]
    count = by_rows(values, lambda part: (~np.isnan(part)).sum(axis=1))[:, None]
    r = np.full(values.shape[1], np.nan)
    n = np.zeros(values.shape[1])
    for at in range(0, values.shape[1], _BLOCK):
        part = values[:, at : at + _BLOCK]
        there = ~np.isnan(part)
        part = np.where(there, part, 0.0)
        others = count - there
        rest = (total - part) / np.maximum(others, 1)
        there = there & (others > 0)
        # Rounded, so that equal means tie whatever the order of the sums above. Ranks are
        # bounded: one far-off model cannot make an item significant.
        ranks = rankdata(np.where(there, np.round(rest, 12), np.inf), axis=0)
        weight = weights[:, None] * there
        r[at : at + _BLOCK] = _correlation(part, ranks, weight)
        n[at : at + _BLOCK] = weight.sum(axis=0)
    # The variance of a correlation with ranks in random order is 1 / (n - 1).
    p = np.where(n > 2, ndtr(r * np.sqrt(np.maximum(n - 1.0, 0.0))), np.nan)
    return Discrimination(r, np.where(np.isnan(r), np.nan, p))


def _correlation(a: FloatArray, b: FloatArray, weight: FloatArray) -> FloatArray:
    """Weighted correlation of columns, NaN where one does not vary."""
    mass = np.maximum(weight.sum(axis=0), 1e-12)
    a = a - (weight * a).sum(axis=0) / mass
    b = b - (weight * b).sum(axis=0) / mass
    spread = np.sqrt((weight * a * a).sum(axis=0) * (weight * b * b).sum(axis=0))
    varies = spread > 1e-9
    both = (weight * a * b).sum(axis=0)
    return np.asarray(np.where(varies, both / np.where(varies, spread, 1.0), np.nan))
