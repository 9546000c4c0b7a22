"""Data for charts: errors by number of tasks, similarity maps, strongest transfers.

Errors are shown for every number of tasks, never as the best over numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fewbench._seeds import child_seed
from fewbench._types import IntArray
from fewbench.tasks import Similarity, TaskMatrix, read_chooser
from fewbench.tasks.judgement import (
    DRAWS,
    LEVEL,
    TaskResults,
    nrmse,
    questions_by_chance,
    resampled_models,
    spread,
    tasks_by_chance,
    weighted_nrmse,
)

ALL = 10
SOME = (15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750)
MODELS = 10  # for child seeds
Sets = Mapping[int, IntArray]
"""Chosen tasks by their number."""
STRONGEST = 0.07
"""Share of the transfers to show (Figure 1)."""


@dataclass(frozen=True)
class Curves:
    """NRMSE for every number of tasks `k`.

    Attributes
    ----------
    k : list of int
    methods : dict of str to list of float
        NRMSE of each method; None where it was not run.
    random_mean, random_low, random_high : list of float
        Of random task sets: mean, 5th and 95th percentile.
    random_questions : list of float
        Mean of as many random questions as the tasks of the judged method hold.
    chosen : str
        The judged method.
    """

    k: list[int]
    methods: dict[str, list[float | None]]
    random_mean: list[float]
    random_low: list[float]
    random_high: list[float]
    random_questions: list[float | None]
    chosen: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Differences:
    """NRMSE on S minus NRMSE on S', with 90% intervals by resampled models.

    Above 0, the embedding ("le") is better.
    """

    k: list[int]
    sim_minus_le: list[float]
    low: list[float]
    high: list[float]


def curve_sizes(k: int, n_tasks: int) -> list[int]:
    """Return the numbers of tasks to show: all up to ten, some larger ones, and k.

    Examples
    --------
    >>> curve_sizes(40, 1000)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 30, 40]
    """
    most = max(k, ALL)
    sizes = {*range(1, ALL + 1), k, *(size for size in SOME if size < most)}
    return sorted(size for size in sizes if size < n_tasks or size == k)


def sets_of(
    method: str, matrix: TaskMatrix, sizes: Sequence[int], seed: int
) -> dict[int, IntArray]:
    """Return the tasks that a method chooses, by their number."""
    chooser = read_chooser(method)
    whole = chooser.order(matrix, max(sizes), seed)
    if whole.nested:
        return {k: whole.tasks[:k] for k in sizes}
    return {k: chooser.order(matrix, k, seed).tasks for k in sizes}


def curves(results: TaskResults, methods: Mapping[str, Sets], chosen: str, seed: int = 0) -> Curves:
    """Judge methods at every number of tasks.

    `methods` maps a method to its chosen tasks (positions in the results) by number; `chosen` is
    the method of the selection.
    """
    full = results.full
    sizes = sorted({k for sets in methods.values() for k in sets})
    drawn = [spread(tasks_by_chance(results, k, seed)) for k in sizes]
    own = methods[chosen]
    questions = [
        float(questions_by_chance(results, int(results.sizes[own[k]].sum()), seed).mean())
        if k in own and results.sizes_known and results.has_questions
        else None
        for k in sizes
    ]
    return Curves(
        sizes,
        {
            name: [
                float(nrmse(results.reduced(sets[k]), full)) if k in sets else None for k in sizes
            ]
            for name, sets in methods.items()
        },
        [one.mean for one in drawn],
        [one.low for one in drawn],
        [one.high for one in drawn],
        questions,
        chosen,
    )


def differences(results: TaskResults, sim: Sets, le: Sets, seed: int = 0) -> Differences:
    """Compare S and S' at every number of tasks on the same models."""
    full = results.full
    weights = resampled_models(results, np.random.default_rng(child_seed(seed, MODELS)), DRAWS)
    sizes: Sequence[int] = sorted(set(sim) & set(le))
    own, low, high = [], [], []
    for k in sizes:
        one, other = results.reduced(sim[k]), results.reduced(le[k])
        own.append(float(nrmse(one, full) - nrmse(other, full)))
        again = weighted_nrmse(one, full, weights) - weighted_nrmse(other, full, weights)
        ends = np.nanquantile(again, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        low.append(float(ends[0]))
        high.append(float(ends[1]))
    return Differences(list(sizes), own, low, high)


def cluster_order(names: tuple[str, ...], clusters: dict[str, int]) -> IntArray:
    """Return positions of the tasks by cluster, in table order within a cluster."""
    return np.argsort([clusters[name] for name in names], kind="stable")


def similarity_maps(
    matrix: TaskMatrix, settings: Similarity, clusters: dict[str, int]
) -> dict[str, Any]:
    """Return plain values of S and S' with the tasks ordered by cluster (Figure 2)."""
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
    """Return the strongest transfers between different tasks, minus each target's mean.

    The rows of the matrix must be transferability to all tasks, in their order.
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
