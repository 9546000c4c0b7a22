"""Tasks from which ridge regression predicts past models' full scores best."""

from dataclasses import dataclass
from typing import ClassVar

from fewbench.algorithms.choice.forward_selection import ridge_forward
from fewbench.errors import MethodError
from fewbench.methods.tasks.chooser import Ordered
from fewbench.methods.tasks.matrix import PAST_SCORES, TaskMatrix


@dataclass(frozen=True)
class RidgeTasks:
    """Tasks chosen forward by the held-out error of a ridge on past models' task means.

    Each step adds the task with which ridge regression from the means of the chosen tasks to the
    full score errs least on past models that are left out, one after another; models of one family
    are left out together. Predict with `task-means+ridge`: the plain mean of these tasks is not
    near the full score.
    """

    compares: ClassVar[bool] = True
    estimator: ClassVar[str] = "ridge"

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Choose k tasks; MethodError if the rows are no past scores. Nothing is left to chance."""
        if matrix.kind != PAST_SCORES:
            raise MethodError(
                f"tasks-ridge learns from past models' scores; these are {matrix.kind}",
                hint="give scores instead of a matrix",
            )
        full = matrix.weights @ matrix.rows
        return Ordered(ridge_forward(matrix.rows.T, full, k, matrix.groups)[0])
