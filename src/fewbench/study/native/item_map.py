"""A map of the items by the sources' answers, and one by the targets' (Figure 1)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewbench._threads import one_thread
from fewbench.algorithms.clustering.distances import standardised
from fewbench.errors import StudyError
from fewbench.study.native.spread import coreset
from fewbench.study.native.trial import IntArray, Trial

FloatArray = NDArray[np.float64]
LEAST = 2  # models that span a map


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
    >>> from fewbench.study.native import open_trial
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
    if columns.shape[1] < LEAST:
        raise StudyError(f"one {side} spans no map", hint=f"{LEAST} or more are needed")
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
