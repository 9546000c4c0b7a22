"""k-medoids of tasks: the paper's comparison with facility location (Figure 4)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.algorithms.clustering.kmedoids import kmedoids
from fewbench.methods.tasks.chooser import Ordered
from fewbench.methods.tasks.matrix import TaskMatrix
from fewbench.methods.tasks.similarity import Distance, Scaling, Similarity, Space
from fewbench.methods.written import check_words

RESTARTS = 20


@dataclass(frozen=True)
class TaskMedoids:
    """Medoids of the rows of A, S or S' (the paper's KM-raw, KM-sim, KM-le).

    Parameters
    ----------
    space : {"raw", "sim", "le"}
    scaling, distance, components
        See `Similarity`.
    """

    space: Space = "raw"
    scaling: Scaling = "centre"
    distance: Distance = "euclidean"
    components: int = 0
    compares: ClassVar[bool] = True

    @property
    def similarity(self) -> Similarity:
        """How tasks are compared."""
        check_words(self)
        return Similarity(self.scaling, self.distance, self.components)

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k medoids, the one with most tasks first; other k, other medoids."""
        e = self.similarity.medoid_distances(matrix.rows, self.space)
        found = kmedoids(e, k, np.random.default_rng(seed), restarts=RESTARTS if k > 1 else 1)
        numbers = np.bincount(found.labels, minlength=k)
        return Ordered(found.medoids[np.argsort(-numbers, kind="stable")], nested=False)
