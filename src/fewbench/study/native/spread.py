"""How well a coreset chosen on sources stands for the items where others answer (Figure 1)."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fewbench._seeds import child_seed
from fewbench._threads import one_thread
from fewbench.algorithms.clustering.distances import item_distances
from fewbench.errors import StudyError
from fewbench.scores import Scores
from fewbench.study.native.trial import IntArray, Trial

FloatArray = NDArray[np.float64]
LEAST = 4  # sources that can be halved
MANY = 2000


@dataclass(frozen=True, eq=False)
class Spread:
    """Distances of items to the medoids that stand for them.

    Distances are by the method's metric. Sums over models are divided by the number of models, so
    that embeddings by different numbers of models compare; `…_any` is the mean distance between
    two items, the same way: what an item drawn at random would give.

    Attributes
    ----------
    medoids : ndarray of int, shape (m,)
        The items that the method's clustering chooses by all sources.
    medoid_of : ndarray of int, shape (items,)
        The medoid (position of the item) of each item by the sources.
    source, target : ndarray, shape (items,)
        The items' distances to their medoids under the sources' and the targets' answers.
    source_any, target_any : float
    half : dict of str to float
        The same with half of the sources, drawn at random, choosing the medoids: mean distances
        as a share of that between any two items, under those who chose ("chose"), under the other
        half ("held_out"), and under the targets ("targets"); each half chooses once. Medoids suit
        those who chose them best, so held-out sources, not those, are what targets compare with.
    """

    medoids: IntArray
    medoid_of: IntArray
    source: FloatArray
    target: FloatArray
    source_any: float
    target_any: float
    half: dict[str, float]

    @property
    def shares(self) -> dict[str, float]:
        """Mean distances as a share of that between any two items: sources and targets."""
        return {
            "sources": _over(float(self.source.mean()), self.source_any),
            "targets": _over(float(self.target.mean()), self.target_any),
        }


def coreset(trial: Trial) -> IntArray:
    """As many items as the budget, chosen by all sources alike: medoids, positions ascending."""
    return _coreset(trial, trial.sources)


def spread(trial: Trial) -> Spread:
    """Measure how far items are from their medoids, by sources and by targets.

    Raises
    ------
    StudyError
        If there are fewer than four sources.

    Examples
    --------
    >>> from fewbench.methods.adaptive.tailored import Tailored
    >>> from fewbench.study import Split
    >>> from fewbench.study.native import open_trial
    >>> from fewbench.testing import simulate
    >>> trial = open_trial(simulate(60, 80), Split(np.arange(0, 60, 2), np.arange(1, 60, 2)),
    ...                    Tailored(), budget=15, seed=0)
    >>> found = spread(trial)
    >>> found.shares["sources"] < found.shares["targets"]
    True
    """
    if trial.sources.n_models < LEAST:
        raise StudyError(f"{trial.sources.n_models} sources cannot be halved", hint="4 are needed")
    with one_thread():
        known, asked = trial.sources.filled.T, trial.targets.filled.T
        medoids = coreset(trial)
        medoid_of, source = _assigned(trial, known, medoids)
        target = _to_own(trial, asked, medoid_of)
        order = np.random.default_rng(child_seed(trial.seed, 5)).permutation(known.shape[1])
        middle = len(order) // 2
        halves = [np.sort(order[:middle]), np.sort(order[middle:])]
        rows = [_half(trial, mine, other) for mine, other in (halves, halves[::-1])]
    half = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return Spread(medoids, medoid_of, source, target, _any(trial, known), _any(trial, asked), half)


def _half(trial: Trial, mine: IntArray, other: IntArray) -> dict[str, float]:
    whole = trial.sources.complete()
    chose = whole.values[mine].T
    medoid_of, own = _assigned(trial, chose, _coreset(trial, whole.take(mine)))
    shares = {"chose": _over(float(own.mean()), _any(trial, chose))}
    for name, columns in (("held_out", whole.values[other].T), ("targets", trial.targets.filled.T)):
        apart = float(_to_own(trial, columns, medoid_of).mean())
        shares[name] = _over(apart, _any(trial, columns))
    return shares


def _coreset(trial: Trial, sources: Scores) -> IntArray:
    whole = replace(trial.method, probe=trial.budget)
    return whole.start(sources, trial.budget, trial.seed, trial.targets.model_ids).probe


def _assigned(trial: Trial, columns: FloatArray, medoids: IntArray) -> tuple[IntArray, FloatArray]:
    """Each item's nearest medoid, the first of equally near ones, and its distance."""
    distances = _distances(trial, columns, medoids)
    nearest = distances.argmin(axis=1)
    nearest[medoids] = np.arange(len(medoids))  # a medoid stands for itself, whatever ties
    return medoids[nearest], distances[np.arange(len(columns)), nearest]


def _to_own(trial: Trial, columns: FloatArray, medoid_of: IntArray) -> FloatArray:
    medoids, which = np.unique(medoid_of, return_inverse=True)
    return _distances(trial, columns, medoids)[np.arange(len(columns)), which]


def _any(trial: Trial, columns: FloatArray) -> float:
    """Mean distance between two items; of many items, from all to some drawn at random."""
    n = len(columns)
    among = None
    if n > MANY:
        rng = np.random.default_rng(child_seed(trial.seed, 6))
        among = np.sort(rng.choice(n, MANY, replace=False))
    distances = _distances(trial, columns, among)
    return float(distances.sum() / max(1, distances.size - distances.shape[1]))  # none to itself


def _distances(trial: Trial, columns: FloatArray, among: IntArray | None = None) -> FloatArray:
    """Distances from all items to some, per model where the metric is a sum over models."""
    method, n = trial.method, columns.shape[1]
    sums = {"manhattan": float(n), "euclidean": math.sqrt(n)}
    found = item_distances(columns, method.metric, method.standardise, among)
    return np.asarray(found / sums.get(method.metric, 1.0), dtype=np.float64)


def _over(one: float, other: float) -> float:
    return one / other if other > 0 else float("nan")
