"""Native sources: the source models whose answers are most like a target's.

TailoredBench (Section 3.3, Eq. 3-5): all models are embedded by their scores on a few probe
items; a target's native sources are its nearest ones, as many as there are on average within the
mean distance between models.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.clustering.distances import Metric, item_distances

Count = Literal["average", "dynamic", "own", "all"]


def native_sources(
    sources: FloatArray,
    targets: FloatArray,
    metric: Metric = "manhattan",
    standardise: bool = True,
    *,
    count: Count = "average",
    inclusive: bool = True,
) -> list[IntArray]:
    """Choose each target's native sources by the scores on the probe items.

    Parameters
    ----------
    sources : ndarray, shape (sources, probe items)
    targets : ndarray, shape (targets, probe items)
    metric : {"manhattan", "euclidean", "cosine", "correlation"}
        Distance between two models.
    standardise : bool
        First bring every probe item to mean 0 and variance 1 over all models.
    count : {"average", "dynamic", "own", "all"}
        How many. With d the mean distance over all pairs of models (Eq. 4): as many as a target
        has within d on average over the targets, rounded down (Eq. 5); at least so many, and all
        within d ("dynamic", Table 9 of the paper); those within d, for every target by itself;
        or all sources. At least one. A target alone is averaged with the sources, each taken
        for a target in its turn: one target says little of how many are near.
    inclusive : bool
        Whether a source at exactly d is within it.

    Returns
    -------
    list of ndarray of int, one a target
        Positions of the native sources, ascending. Of sources equally near the first is taken.

    Examples
    --------
    >>> sources = np.array([[0.0, 0], [0, 1], [1, 1], [1, 1]])
    >>> [natives.tolist() for natives in native_sources(sources, np.array([[1.0, 1], [0, 0]]))]
    [[2, 3], [0, 1]]
    """
    n_sources, n_targets = len(sources), len(targets)
    distances = item_distances(np.concatenate([sources, targets]), metric, standardise)
    mean = distances[np.triu_indices(len(distances), 1)].mean(dtype=np.float64)
    to_sources = distances[:, :n_sources]
    within = to_sources <= mean if inclusive else to_sources < mean
    np.fill_diagonal(within, False)  # no model is its own source
    counts = within.sum(axis=1)
    own = counts[n_sources:]
    average = int((own if n_targets > 1 else counts).mean())
    wanted = {
        "average": np.full(n_targets, average),
        "dynamic": np.maximum(own, average),
        "own": own,
        "all": np.full(n_targets, n_sources),
    }[count]
    nearest = nearest_first(distances, n_sources)
    return [np.sort(order[: max(1, n)]) for order, n in zip(nearest, wanted.tolist(), strict=True)]


def nearest_first(distances: NDArray[np.float32], n_sources: int) -> IntArray:
    """Order the sources by their distance to each target, the first in the table where they tie.

    Parameters
    ----------
    distances : ndarray, shape (models, models)
        The sources come first, then the targets.
    n_sources : int

    Returns
    -------
    ndarray of int, shape (targets, sources)
    """
    return distances[n_sources:, :n_sources].argsort(axis=1, kind="stable")
