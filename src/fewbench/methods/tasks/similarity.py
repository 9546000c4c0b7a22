"""How alike tasks are, by what they transfer to (BenTo, Eq. 2-4 and 6)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.clustering.spectral import eigenmaps, row_cosines, spectral_clusters
from fewbench.errors import MethodError
from fewbench.methods.written import check_number

Scaling = Literal["none", "centre", "sum", "z-score"]
Distance = Literal["euclidean", "cosine", "chebyshev"]
Space = Literal["raw", "sim", "le"]

STRETCH = 1.5
"""S = c - E with c this many times the largest distance (the paper's; 5.2)."""
IDENTITY = 1e-6
"""Off-diagonal similarities no larger than this say nothing."""


@dataclass(frozen=True)
class Similarity:
    """Settings from a matrix of transferability to tasks' similarities.

    Parameters
    ----------
    scaling : {"centre", "none", "sum", "z-score"}
        What is done to each target's column: its mean taken off (Eq. 2), nothing, divided by its
        sum (what the published selection needs), or mean taken off and divided by the standard
        deviation (the paper's FLAN). Centring changes no Euclidean or Chebyshev distance.
    distance : {"euclidean", "cosine", "chebyshev"}
        Between rows (Eq. 3; the others: Table 4).
    components : int
        Eigenvectors of the Laplacian eigenmaps, below the number of tasks; 0: ten, or a third of
        the tasks where they are fewer than thirty, at least two.
    self_loops : bool
        Whether a task's similarity with itself counts in the Laplacian, as Eq. 4 is printed; the
        authors' program leaves it out.
    """

    scaling: Scaling = "centre"
    distance: Distance = "euclidean"
    components: int = 0
    self_loops: bool = False

    def __post_init__(self) -> None:
        check_number("components", self.components, 0)

    def scaled(self, matrix: FloatArray) -> FloatArray:
        """Scale the columns of a matrix, shape (sources, targets)."""
        if self.scaling == "none":
            return matrix
        if self.scaling == "sum":
            total = matrix.sum(axis=0)
            if (np.abs(total) < np.finfo(float).tiny).any():
                raise MethodError("a target's column adds up to 0", hint="use scaling=centre")
            return np.asarray(matrix / total)
        centred = matrix - matrix.mean(axis=0)
        if self.scaling == "centre":
            return np.asarray(centred)
        spread = centred.std(axis=0)
        return np.asarray(centred / np.where(spread > 0, spread, 1.0))

    def distances(self, matrix: FloatArray) -> FloatArray:
        """E: distances between the rows of a scaled matrix, shape (sources, sources)."""
        return _distances(self.scaled(matrix), self.distance)

    def sim(self, matrix: FloatArray) -> FloatArray:
        """S = c - E, shape (sources, sources), all positive unless all tasks are the same."""
        e = self.distances(matrix)
        return np.asarray(STRETCH * (e.max() or 1.0) - e)

    def embedding(self, matrix: FloatArray) -> FloatArray:
        """A': the first eigenvectors of the Laplacian of S, shape (sources, components).

        MethodError if as many components as tasks are asked for, or fewer than two.
        """
        n = len(matrix)
        components = self.components or default_components(n)
        least = min(2, n - 1)
        if not least <= components < n:
            why = (
                "with all of them every task is at a right angle to every other, and the choice "
                "hangs on rounding"
                if components >= n
                else "they do not tell tasks apart"
            )
            raise MethodError(
                f"{components} eigenvectors of {n} tasks: {why}",
                hint=f"components from {least} to {n - 1}",
            )
        return eigenmaps(self.sim(matrix), components, self_loops=self.self_loops)

    def le(self, matrix: FloatArray) -> FloatArray:
        """S': cosines between the rows of the embedding, shape (sources, sources)."""
        return row_cosines(self.embedding(matrix))

    def of(self, matrix: FloatArray, space: Literal["sim", "le"]) -> FloatArray:
        """S or S'."""
        return self.le(matrix) if space == "le" else self.sim(matrix)

    def medoid_distances(self, matrix: FloatArray, space: Space) -> FloatArray:
        """Distances between tasks for k-medoids on the rows of A, S or S'."""
        if space == "raw":
            return self.distances(matrix)
        return _distances(self.of(matrix, space), "euclidean")

    def clusters(self, matrix: FloatArray, seed: int, number: int = 0) -> IntArray:
        """Spectral clusters: k-means of the embedding; as many as components by default."""
        rows = self.embedding(matrix)
        return spectral_clusters(rows, number or rows.shape[1], seed)


def default_components(n_tasks: int) -> int:
    """Return how many eigenvectors are kept where nobody says."""
    return min(10, max(2, n_tasks // 3), n_tasks - 1)


def is_identity(similarity: FloatArray) -> bool:
    """Whether nothing is like anything else, so that every choice is as good."""
    off = similarity[~np.eye(len(similarity), dtype=bool)]
    return bool(np.abs(off).max() <= IDENTITY * max(float(np.abs(similarity).max()), 1.0))


def _distances(rows: FloatArray, metric: Distance) -> FloatArray:
    from scipy.spatial.distance import cdist

    if metric != "cosine":
        return np.asarray(cdist(rows, rows, metric))
    return 1.0 - row_cosines(rows)
