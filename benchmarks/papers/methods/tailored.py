"""TailoredBench with parts left out or exchanged: Tables 7-10 and what could be better."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fewbench._types import FloatArray, IntArray
from fewbench.errors import MethodError
from fewbench.scores import Scores
from fewbench_papers.algorithms.clustering.distances import (
    Metric,
    average_count,
    item_distances,
    nearest_sources,
    within_mean,
)
from fewbench_papers.algorithms.clustering.kmedoids import kmedoids
from fewbench_papers.tailoredbench.tailored import NativeSet, Tailored, TailoredSession


@dataclass(frozen=True)
class TailoredVariant(Tailored):
    """The program of TailoredBench with other parts.

    - `metric`: Distance between items and between models, of `item_distances`.
    - `natives` ("average", "dynamic", "own", "all"): The number of native sources: the average
      within the mean distance (Eq. 5); at least that many, and all within it (Table 9); those
      within it of each target; or all sources.
    - `anchored`: Keep the probe items as medoids. Otherwise they count only as answers (Table 10).
    - `calibrate`: Calibrate by the native sources' means (Eq. 8-9).
    - `ties` ("one", "shared"): Whether an item equally near several medoids takes its score from
      one or from all.
    - `restarts`: Random starts of the swap search; the cheapest clustering is kept.
    - `corrected`: Subtract from each item's expected score the mean error of the same estimate on
      the native sources: it is too low for targets stronger than most.
    """

    metric: Metric = "manhattan"
    natives: Literal["average", "dynamic", "own", "all"] = "average"
    anchored: bool = True
    calibrate: bool = True
    ties: Literal["one", "shared"] = "one"
    restarts: int = 1
    corrected: bool = False

    def __post_init__(self) -> None:
        if self.printed or (self.values != "scores" and not self.calibrate):
            raise MethodError("a variant is of the program, and by scores where not calibrated")

    @property
    def targets_apart(self) -> bool:
        return super().targets_apart or self.natives in ("own", "all")

    def start(
        self, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> "VariantSession":
        super().start(scores, budget, seed, targets)  # checks the settings
        return VariantSession(self, scores, budget, seed, targets)

    def distances(self, columns: FloatArray, among: IntArray | None = None) -> NDArray[np.float32]:
        return item_distances(columns, self.metric, True, among)

    def choose_probe(self, columns: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
        return kmedoids(self.distances(columns), k, rng, restarts=self.restarts).medoids

    def search(
        self,
        distances: NDArray[np.float32],
        k: int,
        rng: np.random.Generator,
        near: NDArray[np.float32],
    ) -> IntArray:
        return kmedoids(distances, k, rng, restarts=self.restarts, near=near).medoids

    def choose_natives(self, distances: NDArray[np.float32], n_sources: int) -> list[IntArray]:
        own = within_mean(distances, n_sources)[n_sources:]
        average = average_count(distances, n_sources)
        counts = {
            "average": np.full(len(own), average),
            "dynamic": np.maximum(own, average),
            "own": own,
            "all": np.full(len(own), n_sources),
        }[self.natives]
        return nearest_sources(distances, n_sources, counts.tolist())

    def anchors(self, probe: IntArray) -> IntArray:
        return probe if self.anchored else probe[:0]

    def shares(self, to_medoids: NDArray[np.float32]) -> NDArray[np.float32]:
        if self.ties == "one":
            return super().shares(to_medoids)
        nearest = to_medoids == to_medoids.min(axis=1, keepdims=True)
        return np.asarray(nearest / nearest.sum(axis=1, keepdims=True, dtype=np.float32))


class VariantSession(TailoredSession):
    """Asks as the program does; expected scores may be uncalibrated or corrected."""

    _method: TailoredVariant

    def expected(self, target: str, native_set: NativeSet, natives: IntArray) -> FloatArray:
        expected = self._of(native_set, self._values(target))
        if not self._method.corrected:
            return expected
        truth = self._scores.filled[natives]
        known = self._columns[:, natives].T if self._method.calibrate else truth
        errors = [self._of(native_set, row) for row in known] - truth
        return np.asarray(expected - errors.mean(axis=0))

    def _of(self, native_set: NativeSet, values: FloatArray) -> FloatArray:
        if self._method.calibrate:
            return np.minimum(native_set.expected(values), 1.0)
        return np.minimum(native_set.share @ values[native_set.medoids], 1.0)
