"""Items as sources and as targets answer them: maps, and distances to medoids (Figure 1)."""

import math
from dataclasses import dataclass, replace

import numpy as np

from fewbench._seeds import child_seed
from fewbench._threads import one_thread
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.clustering.distances import item_distances, standardised
from fewbench.errors import StudyError
from fewbench.scores import Scores
from fewbench.study.tailoredbench.trials import Trial

LEAST_SOURCES = 4  # sources that can be halved
MANY = 2000
LEAST_MODELS = 2  # models that span a map


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
    >>> from fewbench.study.tailoredbench.trials import open_trial
    >>> from fewbench.testing import simulate
    >>> trial = open_trial(simulate(60, 80), Split(np.arange(0, 60, 2), np.arange(1, 60, 2)),
    ...                    Tailored(), budget=15, seed=0)
    >>> found = spread(trial)
    >>> found.shares["sources"] < found.shares["targets"]
    True
    """
    if trial.sources.n_models < LEAST_SOURCES:
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


@dataclass(frozen=True, eq=False)
class ItemMap:
    """Places of the items on two maps.

    Attributes
    ----------
    source, target : ndarray, shape (items, 2)
        Principal components of the items' columns of answers by sources and by targets, in units
        of their root mean square distance from the middle. The first grows with the mean score;
        the second of the targets is turned to go with that of the sources.
    source_share, target_share : tuple of float
        Share of the variance that each component holds.
    medoids : ndarray of int
        The coreset that the sources choose (see `coreset`).
    medoid_ids : list of str
    """

    source: FloatArray
    target: FloatArray
    source_share: tuple[float, float]
    target_share: tuple[float, float]
    medoids: IntArray
    medoid_ids: list[str]


def item_map(trial: Trial) -> ItemMap:
    """Draw up both maps.

    The paper uses t-SNE; principal components need no setting, do not depend on chance, and
    distances on them mean something. Columns are standardised if the method does so.

    Raises
    ------
    StudyError
        If there are fewer than two targets, or one of the sides answers all items alike.

    Examples
    --------
    >>> from fewbench.methods.adaptive.tailored import Tailored
    >>> from fewbench.study import Split
    >>> from fewbench.study.tailoredbench.trials import open_trial
    >>> from fewbench.testing import simulate
    >>> trial = open_trial(simulate(40, 80), Split(np.arange(0, 40, 2), np.arange(1, 40, 2)),
    ...                    Tailored(), budget=15, seed=0)
    >>> found = item_map(trial)
    >>> found.source.shape, found.target.shape, len(found.medoids)
    ((80, 2), (80, 2), 15)
    """
    with one_thread():
        source, source_share = _components(trial, trial.sources.filled.T, "source")
        target, target_share = _components(trial, trial.targets.filled.T, "target")
        medoids = coreset(trial)
    if source[:, 1] @ target[:, 1] < 0:
        target[:, 1] *= -1
    names = [str(item) for item in trial.sources.item_ids[medoids]]
    return ItemMap(source, target, source_share, target_share, medoids, names)


def _components(
    trial: Trial, columns: FloatArray, side: str
) -> tuple[FloatArray, tuple[float, float]]:
    if columns.shape[1] < LEAST_MODELS:
        raise StudyError(f"one {side} spans no map", hint=f"{LEAST_MODELS} or more are needed")
    if not (columns.min(axis=0) < columns.max(axis=0)).any():
        raise StudyError(f"every {side} scores the same on all items", hint="look at the audit")
    x = standardised(columns) if trial.method.standardise else columns - columns.mean(axis=0)
    # Items far outnumber models: the small matrix of the models is enough.
    values, vectors = np.linalg.eigh(x.T @ x)
    places = x @ vectors[:, [-1, -2]]
    if places[:, 0] @ (columns.mean(axis=1) - columns.mean()) < 0:
        places[:, 0] *= -1
    if places[np.abs(places[:, 1]).argmax(), 1] < 0:
        places[:, 1] *= -1
    first, second = (max(0.0, float(v)) / float(values.sum()) for v in values[[-1, -2]])
    return places / np.sqrt((places**2).sum(axis=1).mean()), (first, second)
