"""Iterated principal components: a row's missing cells imputed from those that are known.

Known cells are kept, missing ones start at the columns' means; the row is projected on the leading
principal components, the missing cells take what the projection says, and so on for some steps.
The components are those of complete rows and stay, so that all steps together are one closed form.
"""

from dataclasses import dataclass

import numpy as np

from fewbench._types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Components:
    """Leading principal components of complete rows.

    Attributes
    ----------
    means : ndarray, shape (items,)
    axes : ndarray, shape (items, rank)
        Orthonormal columns.
    """

    means: FloatArray
    axes: FloatArray

    def first(self, rank: int) -> "Components":
        """Return the first few of them."""
        return Components(self.means, self.axes[:, :rank])

    def impute(self, items: IntArray, answers: FloatArray, steps: int) -> FloatArray:
        """Return rows with the missing cells imputed, shape (targets, items), as they come.

        A step adds what of the known cells' deviations the projection does not yet give: with the
        known rows A of the axes, z ← z + Aᵀ(answers - means - A z), beginning at 0. Along an axis
        of AᵀA with eigenvalue e, `steps` of them have come 1 - (1 - e)^steps of the way to least
        squares; with few cells known e is small, and stopping keeps z near 0 as a ridge does.

        Parameters
        ----------
        items : ndarray of int, shape (n,)
            Positions of the cells that are known.
        answers : ndarray, shape (targets, n)
        steps : int
            At least 1.
        """
        known = self.axes[items]
        size, turn = np.linalg.eigh(known.T @ known)
        size = np.clip(size, 0.0, 1.0)
        # (1 - (1 - e)^steps) / e, which is `steps` where e is 0.
        safe = np.maximum(size, 1e-12)
        gain = -np.expm1(steps * np.log1p(-np.minimum(safe, 1.0 - 1e-15))) / safe
        told = (answers - self.means[items]) @ known @ turn
        rows = self.means + (told * gain) @ turn.T @ self.axes.T
        rows[:, items] = answers
        return np.asarray(rows)


def principal_components(values: FloatArray, rank: int) -> Components:
    """Return the leading principal components of rows, at most as many as they differ in ways.

    Parameters
    ----------
    values : ndarray, shape (models, items)
        No cell missing.
    rank : int

    Examples
    --------
    >>> rows = np.outer([0.0, 0.5, 1.0], [0.2, 0.4, 0.8]) + 0.1
    >>> model = principal_components(rows, 5)
    >>> model.axes.shape
    (3, 1)
    >>> model.impute(np.array([0]), np.array([[0.25]]), 1000).round(2).tolist()
    [[0.25, 0.4, 0.7]]
    """
    means = values.mean(axis=0)
    centred = values - means
    # The smaller of the two tables of inner products has all that is needed.
    wide = len(values) <= values.shape[1]
    squares, vectors = np.linalg.eigh(centred @ centred.T if wide else centred.T @ centred)
    squares, vectors = squares[::-1], vectors[:, ::-1]
    distinct = int((squares > 1e-10 * max(squares[0], 1e-6)).sum())
    kept = max(0, min(rank, distinct))
    axes = vectors[:, :kept]
    if wide:
        axes = centred.T @ axes / np.sqrt(squares[:kept])
    return Components(means, axes)
