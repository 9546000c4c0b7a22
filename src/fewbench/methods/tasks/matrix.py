"""What tasks are compared by: a row of numbers for each of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewbench.errors import MethodError
from fewbench.methods.tasks.transferability import Transferability
from fewbench.scores import Scores

FloatArray = NDArray[np.float64]
PAST_SCORES = "past models' scores"


@dataclass(frozen=True, eq=False)
class TaskMatrix:
    """Tasks, a row of numbers for each, and how large and how easy they are.

    Attributes
    ----------
    rows : ndarray, shape (tasks, columns)
        Transferability to each target, scores of each past model, or BM25 with each task's text.
    names : tuple of str, length tasks
    sizes : ndarray, shape (tasks,)
        Questions of each task.
    ease : ndarray, shape (tasks,), optional
        What one model, or the past models on average, score on each task.
    kind : str
        What the rows are, in words.
    weigh_tasks : bool
        Whether the full score is the mean over tasks, not over questions.
    """

    rows: FloatArray
    names: tuple[str, ...]
    sizes: NDArray[np.intp]
    ease: FloatArray | None
    kind: str
    weigh_tasks: bool = False

    @property
    def weights(self) -> FloatArray:
        """What each task counts in the full score, shape (tasks,), summing to 1."""
        counts = np.ones(len(self.names)) if self.weigh_tasks else self.sizes
        return np.asarray(counts / counts.sum())

    @classmethod
    def of_transfer(
        cls,
        transfer: Transferability,
        seeds: NDArray[np.intp] | None = None,
        *,
        weigh_tasks: bool = False,
    ) -> "TaskMatrix":
        """Take the mean over seeds, all or some; ease is known where every task was a target."""
        rows = transfer.mean if seeds is None else transfer.mean_over(seeds)
        ease = rows.mean(axis=0) if transfer.is_square else None
        sizes = transfer.n_questions
        return cls(rows, transfer.tasks, sizes, ease, "in-context transferability", weigh_tasks)

    @classmethod
    def of_scores(cls, scores: Scores) -> "TaskMatrix":
        """Take past models' scores on each task, shape (tasks, models)."""
        rows = np.ascontiguousarray(scores.task_scores().T)
        sizes = np.bincount(scores.task_of, minlength=len(rows))
        return cls(
            rows,
            tuple(scores.tasks),
            sizes,
            rows.mean(axis=1),
            PAST_SCORES,
            scores.average == "macro",
        )

    def __post_init__(self) -> None:
        if len(self.names) < 2:
            raise MethodError("there is one task: nothing to choose from")
        if not np.isfinite(self.rows).all():
            raise MethodError(f"{self.kind} of the tasks are not all known")
