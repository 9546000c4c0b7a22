"""The N-set: items chosen for a target by its native sources, and what they say of all items.

TailoredBench, Sections 3.4 (anchored k-medoids) and 3.5 (calibrated estimation).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.clustering.distances import Metric, item_distances
from fewbench.algorithms.clustering.kmedoids import alternating_kmedoids, kmedoids

Search = Literal["swap", "alternate"]
Clip = Literal["none", "above", "both"]


@dataclass(frozen=True, eq=False)
class NativeSet:
    """Medoids and the items that each stands for.

    Attributes
    ----------
    new : ndarray of int
        The medoids that are not of the probe set, ascending.
    medoids : ndarray of int, shape (m,)
        All medoids.
    share : ndarray, shape (items, m)
        How much of an item's estimate each medoid gives; rows sum to 1.
    mean : ndarray, shape (items,)
        Mean score of the native sources.
    """

    new: IntArray
    medoids: IntArray
    share: NDArray[np.float32]
    mean: FloatArray

    def expected(
        self, answers: FloatArray, *, calibrate: bool = True, clip: Clip = "above"
    ) -> FloatArray:
        """Expected score of every item from the answers on all items (Eq. 8-9).

        Parameters
        ----------
        answers : ndarray, shape (items,) or (items, models)
            Only those on medoids are looked at.
        calibrate : bool
            Scale a medoid's answer by the native sources' means on the item and on the medoid.
        clip : {"none", "above", "both"}
            Keep expectations as they come, at most 1, or from 0 to 1.
        """
        said = answers[self.medoids]
        if calibrate:
            level = (self.mean + 0.5).reshape(-1, *[1] * (said.ndim - 1))
            found = (self.share @ ((said + 0.5) / level[self.medoids])) * level - 0.5
        else:
            found = self.share @ said
        if clip == "none":
            return np.asarray(found)
        return np.clip(found, 0.0 if clip == "both" else None, 1.0)


def make_native_set(
    columns: FloatArray,
    probe: IntArray,
    k: int,
    rng: np.random.Generator,
    *,
    metric: Metric = "manhattan",
    standardise: bool = True,
    search: Search = "swap",
    anchored: bool = True,
    shared: bool = False,
    restarts: int = 1,
    candidates: int = 2000,
) -> NativeSet:
    """Choose `k` items beside the probe items, and give every item to its nearest medoid.

    Parameters
    ----------
    columns : ndarray, shape (items, native sources)
        Scores of the native sources.
    probe : ndarray of int
        Items that the target has answered.
    anchored : bool
        Whether the probe items are medoids too. If not, they are only answers that are known.
    shared : bool
        Whether an item that is equally near several medoids takes from all of them, or from one,
        drawn once for all items.
    restarts : int
        Random starts of the swap search; the cheapest clustering is kept.
    candidates : int
        At most so many items, drawn at random, are tried as medoids by the swap search.

    Other parameters are those of `Tailored`.
    """
    among = np.setdiff1d(np.arange(len(columns)), probe)
    anchors = probe if anchored or not k else np.empty(0, dtype=np.intp)
    to_tried = None
    if k == len(among):
        new = among
    elif not k:
        new = np.empty(0, dtype=np.intp)
    elif search == "alternate":
        distances = item_distances(columns, metric, standardise)
        if not len(anchors):
            distances = distances[np.ix_(among, among)]
            new = among[alternating_kmedoids(distances, k, rng)]
        else:
            new = alternating_kmedoids(distances, k, rng, anchors=anchors)
    else:
        if len(among) > max(candidates, k):
            among = np.sort(rng.choice(among, max(candidates, k), replace=False))
        tried = np.concatenate([among, anchors])
        to_tried = item_distances(columns, metric, standardise, tried)
        distances = to_tried[:, : len(among)]
        if len(anchors):  # which makes plain k-medoids of it
            near = to_tried[:, len(among) :].min(axis=1)
            distances = np.minimum(distances, near[:, None])
        new = among[kmedoids(distances, k, rng, restarts=restarts).medoids]
    # In random order, so that of medoids equally near none is preferred for its place in the table.
    medoids = rng.permutation(np.concatenate([anchors, new]))
    if to_tried is not None:  # what was worked out to choose the medoids serves once more
        place = np.empty(len(columns), dtype=np.intp)
        place[tried] = np.arange(len(tried))
        to_medoids = to_tried[:, place[medoids]]
    else:
        to_medoids = item_distances(columns, metric, standardise, medoids)
    return NativeSet(np.sort(new), medoids, _shares(to_medoids, shared), columns.mean(axis=1))


def given_set(
    columns: FloatArray,
    medoids: IntArray,
    *,
    metric: Metric = "manhattan",
    standardise: bool = True,
    shared: bool = False,
) -> NativeSet:
    """Give every item to the nearest of given medoids, as where only some were answered."""
    to_medoids = item_distances(columns, metric, standardise, medoids)
    return NativeSet(medoids[:0], medoids, _shares(to_medoids, shared), columns.mean(axis=1))


def _shares(to_medoids: NDArray[np.float32], shared: bool) -> NDArray[np.float32]:
    nearest = to_medoids == to_medoids.min(axis=1, keepdims=True)
    if not shared:
        nearest = np.equal.outer(nearest.argmax(axis=1), np.arange(to_medoids.shape[1]))
    return np.asarray(nearest / nearest.sum(axis=1, keepdims=True, dtype=np.float32))
