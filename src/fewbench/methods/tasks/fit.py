"""Tasks whose scores come nearest past models' full scores."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.errors import MethodError
from fewbench.methods.tasks.chooser import Ordered
from fewbench.methods.tasks.matrix import PAST_SCORES, TaskMatrix

SMALLEST = 1e-15


@dataclass(frozen=True)
class FittedTasks:
    """Tasks on which past models score as on all, by least squares; one after another.

    What BenTo is measured against: it needs past models' results, and no transferability.

    Parameters
    ----------
    exchange : bool
        Then exchange single tasks for others while that lowers the error.
    """

    exchange: bool = True
    compares: ClassVar[bool] = True

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k tasks; MethodError if the rows are no past scores. Nothing is left to chance."""
        if matrix.kind != PAST_SCORES:
            raise MethodError(
                f"tasks are fitted to past models' scores; these are {matrix.kind}",
                hint="give scores instead of a matrix",
            )
        w = matrix.weights
        weighted, full = matrix.rows * w[:, None], w @ matrix.rows
        chosen: list[int] = []
        for _ in range(k):
            errors = _errors(weighted, w, full, chosen)
            errors[chosen] = np.inf
            chosen.append(int(np.argmin(errors)))
        if not self.exchange:
            return Ordered(np.array(chosen, dtype=np.intp))
        return Ordered(_exchanged(weighted, w, full, chosen), nested=False)


def _errors(weighted: FloatArray, w: FloatArray, full: FloatArray, kept: list[int]) -> FloatArray:
    """Mean squared error with each task added to those kept, shape (tasks,)."""
    total = weighted[kept].sum(axis=0) + weighted
    return np.asarray(((total / (w[kept].sum() + w)[:, None] - full) ** 2).mean(axis=1))


def _exchanged(
    weighted: FloatArray, w: FloatArray, full: FloatArray, chosen: list[int]
) -> IntArray:
    """Make the best exchange of one task for another, again and again while it helps."""
    current = list(chosen)
    while len(current) < len(w):
        cost = float(_errors(weighted, w, full, current[:-1])[current[-1]])
        best = (cost - SMALLEST, -1, -1)
        for place in range(len(current)):
            errors = _errors(weighted, w, full, current[:place] + current[place + 1 :])
            errors[current] = np.inf
            other = int(np.argmin(errors))
            best = min(best, (float(errors[other]), place, other))
        if best[1] < 0:
            break
        current[best[1]] = best[2]
    return np.array(current, dtype=np.intp)
