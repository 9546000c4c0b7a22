"""What models scored on every task of a benchmark."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fewbench._names import some
from fewbench.errors import StudyError
from fewbench.scores import Scores

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Weigh = Literal["questions", "tasks"]
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class TaskResults:
    """Scores of models on tasks.

    Parameters
    ----------
    scores : ndarray, shape (models, tasks)
        From 0 to 1.
    models, tasks : tuple of str
    sizes : ndarray of int, shape (tasks,)
        Questions of each task.
    weigh : {"questions", "tasks"}
        Whether the full score is the mean over questions (the paper's MMLU) or over tasks (its
        FLAN); that of chosen tasks is the same over theirs.
    questions : Scores, optional
        The same models' scores of single questions, where they are known.

    Raises
    ------
    StudyError
        If shapes do not fit, a score is missing or not from 0 to 1, or all are 0.
    """

    scores: FloatArray
    models: tuple[str, ...]
    tasks: tuple[str, ...]
    sizes: IntArray
    weigh: Weigh = "questions"
    questions: Scores | None = None

    def __post_init__(self) -> None:
        shape = (len(self.models), len(self.tasks))
        if self.scores.shape != shape or self.sizes.shape != shape[1:] or 0 in shape:
            raise StudyError(f"results have the shape {self.scores.shape}, not {shape}")
        if not np.isfinite(self.scores).all():
            model, task = np.argwhere(~np.isfinite(self.scores))[0]
            raise StudyError(
                f"no score of {self.models[model]} on {self.tasks[task]} is given",
                hint="leave that model out, or run it there",
            )
        if (outside := (self.scores < -ROUNDING) | (self.scores > 1 + ROUNDING)).any():
            model, task = np.argwhere(outside)[0]
            raise StudyError(
                f"{self.models[model]} has {self.scores[model, task]:g} on {self.tasks[task]}: "
                "scores are from 0 to 1",
                hint="divide percentages by 100",
            )
        if not self.full.any():
            raise StudyError("every full score is 0: errors cannot be related to them")

    @classmethod
    def of_scores(cls, scores: Scores) -> "TaskResults":
        """Take the task scores of a table of single questions."""
        return cls(
            scores.task_scores(),
            tuple(scores.model_ids),
            tuple(scores.tasks),
            np.bincount(scores.task_of, minlength=len(scores.tasks)),
            "questions" if scores.average == "micro" else "tasks",
            scores,
        )

    @property
    def weights(self) -> FloatArray:
        """What each task counts in the full score, shape (tasks,), summing to 1."""
        w = self.sizes if self.weigh == "questions" else np.ones(len(self.tasks))
        return np.asarray(w / w.sum())

    @property
    def full(self) -> FloatArray:
        """The full scores, shape (models,)."""
        return np.asarray(self.scores @ self.weights)

    def reduced(self, chosen: IntArray) -> FloatArray:
        """Return scores on chosen tasks, shape (models,); a task named twice counts twice."""
        w = self.weights[chosen]
        return np.asarray(self.scores[:, chosen] @ (w / w.sum()))

    def positions(self, tasks: tuple[str, ...]) -> IntArray:
        """Return where tasks stand; StudyError if the results lack one."""
        if lacking := [task for task in tasks if task not in self.tasks]:
            raise StudyError(
                f"the results have no task {some(lacking)}", hint=f"theirs are {some(self.tasks)}"
            )
        return np.array([self.tasks.index(task) for task in tasks], dtype=np.intp)
