"""What the tasks look like to each other: similarities by cluster, the strongest transfers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench.methods.tasks import Similarity, TaskMatrix

STRONGEST = 0.07
"""Share of the transfers that is shown (Figure 1)."""


def cluster_order(names: tuple[str, ...], clusters: dict[str, int]) -> NDArray[np.intp]:
    """Return the tasks cluster by cluster, in their own order within one."""
    return np.argsort([clusters[name] for name in names], kind="stable")


def similarity_maps(
    matrix: TaskMatrix, settings: Similarity, clusters: dict[str, int]
) -> dict[str, Any]:
    """Return S and S' with the tasks ordered by cluster (Figure 2), as plain values."""
    order = cluster_order(matrix.names, clusters)
    at = np.ix_(order, order)
    return {
        "tasks": [matrix.names[task] for task in order],
        "clusters": [clusters[matrix.names[task]] for task in order],
        "sim": settings.sim(matrix.rows)[at].tolist(),
        "le": settings.le(matrix.rows)[at].tolist(),
    }


def strongest_transfers(
    matrix: TaskMatrix, clusters: dict[str, int], share: float = STRONGEST
) -> dict[str, Any]:
    """Return the strongest transfers between different tasks, each target's mean taken off.

    The rows must be transferability to all tasks, in their order.
    """
    order = cluster_order(matrix.names, clusters)
    centred = (matrix.rows - matrix.rows.mean(axis=0))[np.ix_(order, order)]
    n = len(order)
    source, target = np.nonzero(~np.eye(n, dtype=bool))
    values = centred[source, target]
    best = np.argsort(-values, kind="stable")[: max(1, round(share * len(values)))]
    return {
        "share": share,
        "tasks": [matrix.names[task] for task in order],
        "clusters": [clusters[matrix.names[task]] for task in order],
        "arcs": [[int(source[i]), int(target[i]), float(values[i])] for i in best],
    }
