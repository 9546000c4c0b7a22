"""Choose and judge tasks with the same models, each held out; and how many tasks a budget buys."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from fewbench.algorithms.ridge_and_neighbors import fit_ridge
from fewbench.errors import StudyError
from fewbench.methods.base import Answers, Predictor
from fewbench.methods.prediction.features import TaskMeans
from fewbench.methods.prediction.regression import Regression, Ridge
from fewbench.methods.selection.random import Stratified
from fewbench.methods.subset import Subset
from fewbench.scores import Scores
from fewbench.support import FloatArray, IntArray, child_seed
from fewbench_papers.bento.choosers import RidgeTasks, TaskChooser
from fewbench_papers.bento.judgement import TaskResults
from fewbench_papers.bento.matrix import TaskMatrix
from fewbench_papers.bento.selection import BudgetPlan

FOLDS = 10
FOLD, SETS = range(2)  # for child seeds
ridge_on_means = partial(Regression, Ridge(), TaskMeans())


@dataclass(frozen=True, eq=False)
class HeldOutTasks:
    """Source scores in parts; everything for a part is learned from the other parts.

    Parameters
    ----------
    results : TaskResults
        The source models' scores, with the tasks in the order of the matrix.
    matrix : TaskMatrix
        The same scores.
    ridge : bool
        Estimate full scores by ridge regression on the chosen tasks, not by the plain score.
    seed : int
        Seed of the parts.

    Raises
    ------
    StudyError
        If there is only one model or family.
    """

    results: TaskResults
    matrix: TaskMatrix
    ridge: bool
    seed: int = 0

    def __post_init__(self) -> None:
        if len(np.unique(self.matrix.groups)) < 2:
            raise StudyError(
                "the results have only one model or family, so none can be held out",
                hint="pass other models with --results",
                kind="too-few",
            )

    @cached_property
    def parts(self) -> list[IntArray]:
        """Positions of the models of each part; a family is in one part."""
        names, group_of = np.unique(self.matrix.groups, return_inverse=True)
        n = min(FOLDS, len(names))
        rng = np.random.default_rng(child_seed(self.seed, FOLD))
        part_of = (rng.permutation(len(names)) % n)[group_of]
        return [np.flatnonzero(part_of == part) for part in range(n)]

    def orders(self, chooser: TaskChooser, sizes: Sequence[int]) -> dict[int, list[IntArray]]:
        """Return the tasks chosen without each part, by number of tasks."""
        orders: dict[int, list[IntArray]] = {k: [] for k in sizes}
        for part in self.parts:
            rest = self.matrix.of_models(self._rest(part))
            whole = chooser.order(rest, max(sizes), self.seed)
            for k in sizes:
                nested = whole.nested or k == max(sizes)
                again = whole if nested else chooser.order(rest, k, self.seed)
                orders[k].append(again.tasks[:k])
        return orders

    def estimates(self, sets: Sequence[IntArray]) -> FloatArray:
        """Estimate each model from the tasks chosen for its part, shape (models,)."""
        estimates = np.empty(len(self.results.models))
        for part, chosen in zip(self.parts, sets, strict=True):
            estimates[part] = self._part(part, chosen)
        return estimates

    def by_chance(self, k: int, draws: int) -> FloatArray:
        """Estimate each model the same way from random tasks, shape (draws, models)."""
        rng = np.random.default_rng(child_seed(self.seed, SETS, k))
        n = len(self.matrix.names)
        return np.array(
            [self.estimates([rng.permutation(n)[:k]] * len(self.parts)) for _ in range(draws)]
        )

    def _rest(self, part: IntArray) -> IntArray:
        return np.setdiff1d(np.arange(len(self.results.models)), part)

    def _part(self, part: IntArray, chosen: IntArray) -> FloatArray:
        if not self.ridge:
            return self.results.reduced(chosen)[part]
        rest, full = self._rest(part), self.results.full
        x = self.results.scores[:, chosen]
        return np.clip(fit_ridge(x[rest], full[rest, None]).predict(x[part])[:, 0], 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class CostlyTasks:
    """A way to run some questions of some tasks within a budget.

    Parameters
    ----------
    budget, task_cost : float
        The budget and the fixed cost of each task, in questions.
    chooser : TaskChooser
        Orders the tasks by source scores.
    predictor : Predictor
        Estimates full scores from the answers.
    """

    budget: float
    task_cost: float
    chooser: TaskChooser = field(default_factory=RidgeTasks)
    predictor: Predictor = field(default_factory=ridge_on_means)

    def sizes(self, n_tasks: int) -> list[int]:
        """Return the numbers of tasks to try; StudyError if the budget holds no task at all."""
        most = min(n_tasks, int(self.budget / (self.task_cost + 1)))
        if self.task_cost < 0 or most < 1:
            raise StudyError(
                f"a budget of {self.budget:g} questions is too small for a task at cost "
                f"{self.task_cost:g} with one question",
                hint="raise --budget; --task-cost is in questions, 0 or more",
            )
        return _tried(most)

    def plan(self, scores: Scores, seed: int = 0) -> BudgetPlan:
        """Choose the number of tasks on source models, each held out once with its family."""
        scores = replace(scores, probabilities=None)
        matrix, results = TaskMatrix.of_scores(scores), TaskResults.of_scores(scores)
        parts = HeldOutTasks(results, matrix, ridge=False, seed=seed)
        sizes = self.sizes(len(matrix.names))
        orders = parts.orders(self.chooser, sizes)
        truth = scores.full_scores()
        errors: dict[int, list[FloatArray]] = {k: [] for k in sizes}
        for at, part in enumerate(parts.parts):
            rest = scores.take(models=np.setdiff1d(np.arange(scores.n_models), part))
            for k in sizes:
                estimates = self.estimate(rest, scores.filled[part], orders[k][at], seed)
                errors[k].append(np.abs(estimates - truth[part]))
        expected = {k: float(np.concatenate(of_size).mean()) for k, of_size in errors.items()}
        k = min(expected, key=lambda k: (round(expected[k], 9), k))  # the fewest of equal ones
        left = self._left(scores, np.arange(len(matrix.names)), k)
        costs = {"budget": self.budget, "task_cost": self.task_cost}
        return BudgetPlan(**costs, k=k, questions=left, errors=expected)

    def estimate(
        self, sources: Scores, targets: FloatArray, tasks: IntArray, seed: int = 0
    ) -> FloatArray:
        """Estimate full scores from as many questions of some tasks as the budget holds.

        `targets` has the targets' scores on all items, shape (targets, items); only the chosen
        questions are used. `tasks` are positions.
        """
        subset = self.subset(sources, tasks, seed)
        at = sources.positions(subset.items)
        fitted = self.predictor.fit(sources, subset, seed)
        return fitted.predict(Answers(at, targets[:, at]), tasks=False).scores

    def subset(self, sources: Scores, tasks: IntArray, seed: int = 0) -> Subset:
        """Draw questions of some tasks in proportion to their sizes."""
        taken = sources.take(items=np.flatnonzero(np.isin(sources.task_of, tasks)))
        return Stratified().select(taken, self._left(sources, tasks, len(tasks)), seed)

    def _left(self, scores: Scores, tasks: IntArray, k: int) -> int:
        sizes = np.bincount(scores.task_of, minlength=len(scores.tasks))
        return int(min(self.budget - k * self.task_cost, sizes[tasks].sum()))


ALL = 10
SOME = (15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750)


def _tried(most: int) -> list[int]:
    """Return all numbers of tasks up to ten, some larger ones, and the largest.

    Examples
    --------
    >>> _tried(40)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 30, 40]
    """
    return sorted({*range(1, min(ALL, most) + 1), *(size for size in SOME if size < most), most})
