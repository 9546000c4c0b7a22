"""An ensemble of low-rank factorizations, each without some cells: how sure a cell's value is.

Zhou et al. 2025, "On Speeding Up Language Model Evaluation" (ICLR, arXiv 2407.06172): a table of
scores is about U Vᵀ, fitted by alternating ridge regressions (alternating least squares). Each
member of the ensemble leaves out other cells; where members differ, a value is uncertain.

The paper factorizes the sources and the target together. Here the loadings V come from the complete
sources alone: a target's few cells hardly change them, one fit serves all targets and rounds, and
no target affects another one.
"""

from dataclasses import dataclass

import numpy as np

from fewbench._types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Fitted loadings, shape (members, items, rank), and the cells of a new row that count.

    `kept`, shape (members, items), is false where a member leaves out a cell of a new row.
    """

    loadings: FloatArray
    kept: BoolArray
    penalty: float

    def complete(self, items: IntArray, answers: FloatArray) -> FloatArray:
        """Return each member's values of a new row, shape (members, all items), not clipped.

        `answers`, shape (n,), are the known values at the positions `items`.
        """
        known = self.loadings[:, items] * self.kept[:, items, None]
        squares = known.transpose(0, 2, 1) @ known + self.penalty * np.eye(known.shape[2])
        factors = np.linalg.solve(squares, known.transpose(0, 2, 1) @ answers[:, None])
        return np.asarray((self.loadings @ factors)[..., 0])


def fit_ensemble(
    values: FloatArray,
    rank: int,
    members: int,
    dropped: float,
    penalty: float,
    steps: int,
    rng: np.random.Generator,
) -> Ensemble:
    """Fit an ensemble of factorizations to complete rows.

    - `values`, shape (models, items).
    - `dropped`: Share of the cells that each member leaves out, in [0, 1).
    - `penalty`: Ridge penalty of each regression, above 0.
    - `steps`: Alternations, from random loadings.

    >>> rows = np.outer([0.5, 0.7, 1.0], [0.2, 0.4, 0.8])
    >>> ensemble = fit_ensemble(rows, 1, 4, 0.0, 1e-6, 5, np.random.default_rng(0))
    >>> ensemble.complete(np.array([0]), np.array([0.1])).mean(axis=0).round(2).tolist()
    [0.1, 0.2, 0.4]
    """
    n_items = values.shape[1]
    loadings = np.empty((members, n_items, rank))
    for member in loadings:
        kept = (rng.random(values.shape) >= dropped).astype(np.float64)
        known = values * kept
        member[:] = rng.random((n_items, rank))
        for _ in range(steps):
            models = _ridge(known, kept, member, penalty)
            member[:] = _ridge(known.T, kept.T, models, penalty)
    return Ensemble(loadings, rng.random((members, n_items)) >= dropped, penalty)


def _ridge(known: FloatArray, kept: FloatArray, by: FloatArray, penalty: float) -> FloatArray:
    """Regress each row on `by`, shape (columns, rank), over the cells that are kept."""
    rank = by.shape[1]
    pairs = (by[:, :, None] * by[:, None, :]).reshape(len(by), -1)
    squares = (kept @ pairs).reshape(-1, rank, rank) + penalty * np.eye(rank)
    return np.asarray(np.linalg.solve(squares, (known @ by)[..., None])[..., 0])
