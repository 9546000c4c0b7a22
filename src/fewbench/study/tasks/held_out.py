"""Chosen tasks judged on the past models that they are chosen by: each by a choice without it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fewbench._seeds import child_seed
from fewbench.algorithms.regression.ridge import fit_ridge
from fewbench.errors import StudyError
from fewbench.methods.tasks import TaskChooser, TaskMatrix
from fewbench.study.tasks.results import FloatArray, IntArray, TaskResults

FOLDS = 10
FOLD, SETS = range(2)  # what seeds are drawn for


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Past scores in parts; what is learned for a part is learned from the other parts.

    Parameters
    ----------
    results : TaskResults
        The past models' scores, with the tasks in the order of the matrix.
    matrix : TaskMatrix
        The same scores.
    ridge : bool
        Whether full scores are estimated by ridge regression on the chosen tasks' scores, not by
        the plain score on them.
    seed : int
        Of the parts.

    Raises
    ------
    StudyError
        If all models are of one family, or there is only one model.
    """

    results: TaskResults
    matrix: TaskMatrix
    ridge: bool
    seed: int = 0

    def __post_init__(self) -> None:
        if len(np.unique(self.matrix.groups)) < 2:
            raise StudyError(
                "one model, or one family of models: none can be held out",
                hint="judge on other models with --results",
            )

    @cached_property
    def parts(self) -> list[IntArray]:
        """The models of each part, by position; a family is in one part."""
        names, group_of = np.unique(self.matrix.groups, return_inverse=True)
        n = min(FOLDS, len(names))
        rng = np.random.default_rng(child_seed(self.seed, FOLD))
        part_of = (rng.permutation(len(names)) % n)[group_of]
        return [np.flatnonzero(part_of == part) for part in range(n)]

    def orders(self, chooser: TaskChooser, sizes: Sequence[int]) -> dict[int, list[IntArray]]:
        """Return what is chosen without each part, by number of tasks."""
        found: dict[int, list[IntArray]] = {k: [] for k in sizes}
        for part in self.parts:
            rest = self.matrix.of_models(self._rest(part))
            whole = chooser.order(rest, max(sizes), self.seed)
            for k in sizes:
                nested = whole.nested or k == max(sizes)
                again = whole if nested else chooser.order(rest, k, self.seed)
                found[k].append(again.tasks[:k])
        return found

    def estimates(self, sets: Sequence[IntArray]) -> FloatArray:
        """Estimate each model from the tasks chosen for its part, shape (models,)."""
        said = np.empty(len(self.results.models))
        for part, chosen in zip(self.parts, sets, strict=True):
            said[part] = self._part(part, chosen)
        return said

    def by_chance(self, k: int, draws: int) -> FloatArray:
        """Estimate each model in the same way from random tasks, shape (draws, models)."""
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
