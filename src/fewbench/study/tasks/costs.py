"""How many tasks to run where each task has a cost of its own, beside that of its questions."""

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from fewbench.errors import StudyError
from fewbench.methods.base import Answers, Predictor
from fewbench.methods.prediction.features import TaskMeans
from fewbench.methods.prediction.regression import Regression
from fewbench.methods.prediction.regressors import Ridge
from fewbench.methods.selection.random import Stratified
from fewbench.methods.subset import Subset
from fewbench.methods.tasks.chooser import TaskChooser
from fewbench.methods.tasks.matrix import TaskMatrix
from fewbench.methods.tasks.ridge import RidgeTasks
from fewbench.scores import Scores
from fewbench.study.tasks.curves import curve_sizes
from fewbench.study.tasks.held_out import HeldOut
from fewbench.study.tasks.results import FloatArray, IntArray, TaskResults

ridge_on_means = partial(Regression, Ridge(), TaskMeans())


@dataclass(frozen=True)
class TaskPlan:
    """How a budget is best shared between tasks and questions.

    Attributes
    ----------
    budget, task_cost : float
        In questions: what may be spent, and what each task costs before its first question.
    errors : dict of int to float
        Mean absolute error on past models that are held out, by number of tasks.
    questions : dict of int to int
        Questions that the budget leaves, by number of tasks.
    """

    budget: float
    task_cost: float
    errors: dict[int, float]
    questions: dict[int, int]

    @property
    def k(self) -> int:
        """The number of tasks with the least error; of equal ones the fewest tasks."""
        return min(self.errors, key=lambda k: (round(self.errors[k], 9), k))


@dataclass(frozen=True, eq=False)
class CostlyTasks:
    """A way of running some questions of some tasks within a budget.

    Parameters
    ----------
    budget, task_cost : float
        In questions.
    chooser : TaskChooser
        Orders the tasks by past scores.
    predictor : Predictor
        What turns the answers into full scores.
    """

    budget: float
    task_cost: float
    chooser: TaskChooser = field(default_factory=RidgeTasks)
    predictor: Predictor = field(default_factory=ridge_on_means)

    def sizes(self, n_tasks: int) -> list[int]:
        """Return the numbers of tasks that are tried; each leaves a question for every task.

        StudyError if the budget does not hold one task and one question.
        """
        most = min(n_tasks, int(self.budget / (self.task_cost + 1)))
        if self.task_cost < 0 or most < 1:
            raise StudyError(
                f"a budget of {self.budget:g} does not hold a task at {self.task_cost:g} and one "
                "question",
                hint="--budget is in questions; --task-cost is 0 or more",
            )
        return curve_sizes(most, most) if most > 1 else [1]

    def plan(self, scores: Scores, seed: int = 0) -> TaskPlan:
        """Choose the number of tasks on past models, each part of them held out once.

        Tasks are chosen, and the prediction learned, without the part; a family is in one part.
        """
        scores = replace(scores, probabilities=None)
        matrix, results = TaskMatrix.of_scores(scores), TaskResults.of_scores(scores)
        parts = HeldOut(results, matrix, ridge=False, seed=seed)
        sizes = self.sizes(len(matrix.names))
        orders = parts.orders(self.chooser, sizes)
        truth = scores.full_scores()
        errors: dict[int, list[FloatArray]] = {k: [] for k in sizes}
        for at, part in enumerate(parts.parts):
            rest = scores.take(models=np.setdiff1d(np.arange(scores.n_models), part))
            for k in sizes:
                said = self.estimate(rest, scores.filled[part], orders[k][at], seed)
                errors[k].append(np.abs(said - truth[part]))
        left = {k: self._left(scores, np.arange(len(matrix.names)), k) for k in sizes}
        found = {k: float(np.concatenate(one).mean()) for k, one in errors.items()}
        return TaskPlan(self.budget, self.task_cost, found, left)

    def estimate(
        self, sources: Scores, targets: FloatArray, tasks: IntArray, seed: int = 0
    ) -> FloatArray:
        """Estimate full scores from some questions of some tasks, as many as the budget holds.

        Parameters
        ----------
        sources : Scores
        targets : ndarray, shape (targets, items)
            Their scores on all items; only those of the chosen questions are looked at.
        tasks : ndarray of int
        """
        subset = self.subset(sources, tasks, seed)
        at = sources.positions(subset.items)
        fitted = self.predictor.fit(sources, subset, seed)
        return fitted.predict(Answers(at, targets[:, at]), tasks=False).scores

    def subset(self, sources: Scores, tasks: IntArray, seed: int = 0) -> Subset:
        """Draw the questions of some tasks, as many of each as its share of their questions."""
        taken = sources.take(items=np.flatnonzero(np.isin(sources.task_of, tasks)))
        return Stratified().select(taken, self._left(sources, tasks, len(tasks)), seed)

    def _left(self, scores: Scores, tasks: IntArray, k: int) -> int:
        sizes = np.bincount(scores.task_of, minlength=len(scores.tasks))
        return int(min(self.budget - k * self.task_cost, sizes[tasks].sum()))
