"""What models scored on every task of a benchmark."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fewbench._names import some
from fewbench.errors import StudyError
from fewbench.scores import Scores
from fewbench.study.inference import model_groups

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
        From 0 to 1; losses may have any range.
    models, tasks : tuple of str
    sizes : ndarray of int, shape (tasks,)
        Questions of each task; all 1 where they are not known.
    weigh : {"questions", "tasks"}
        Whether the full score is the mean over questions (the paper's MMLU) or over tasks (its
        FLAN); that of chosen tasks is the same over theirs.
    questions : Scores, optional
        The same models' scores of single questions, where they are known.
    losses : bool
        Whether the scores are losses: lower is better, and any number is possible.

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
    losses: bool = False

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
        outside = (self.scores < -ROUNDING) | (self.scores > 1 + ROUNDING)
        if outside.any() and not self.losses:
            model, task = np.argwhere(outside)[0]
            raise StudyError(
                f"{self.models[model]} has {self.scores[model, task]:g} on {self.tasks[task]}: "
                "scores are from 0 to 1",
                hint="divide percentages by 100; say --lower-is-better for losses",
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
    def sizes_known(self) -> bool:
        """Whether the number of questions of each task is known."""
        return bool((self.sizes > 1).any())

    def with_sizes(self, sizes: Mapping[str, int]) -> "TaskResults":
        """Return the same results with other numbers of questions, by task."""
        return replace(self, sizes=np.array([sizes[task] for task in self.tasks], dtype=np.intp))

    @property
    def has_questions(self) -> bool:
        """Whether random questions can be drawn: known, or right and wrong by chance."""
        return self.questions is not None or not self.losses

    @cached_property
    def group_of(self) -> Mapping[str, Hashable]:
        """Each model's group: those of one family, or (nearly) the same, are resampled as one."""
        if self.questions is None:
            return {model: model for model in self.models}
        return model_groups(self.questions)

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
