"""Predictors of all items: expected scores of the items that were not run, then averages.

`AnchorLines`: Vivek et al. 2023, "Anchor Points: Benchmarking Models with Much Fewer Examples",
arXiv 2309.08638, AnchorPoints Predictor, as used on right and wrong answers by Zhang, Dorner &
Hardt 2025, "How Benchmark Prediction from Fewer Data Misses the Mark", arXiv 2506.07673.
`LowRankCompletion`: matrix factorization as in Zhou et al. 2025, in closed form
because the sources are complete. `Imputation`: principal components without a noise model, the PCA
of Zhang et al.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms import ties
from fewbench.algorithms.completion.item_to_item import fit_item_lines
from fewbench.algorithms.completion.low_rank import (
    LowRank,
    fit_low_rank,
    principal_components,
)
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.needs import Need
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Benchmark, Scores


def completed(
    benchmark: Benchmark, items: FloatArray, answers: Answers, *, tasks: bool = True
) -> Prediction:
    """Insert the answers into expected `items`, shape (targets, items), and average.

    Averages use unclipped items; the returned scores, tasks and items are clipped to [0, 1].

    >>> from fewbench.scores import from_arrays
    >>> scores = from_arrays([[1, 0, 1], [1, 0, 0]], models=["a", "b"])
    >>> answers = Answers(np.array([0]), np.array([[1.0]]))
    >>> said = completed(scores.benchmark, np.array([[0.2, -0.5, 0.7]]), answers)
    >>> said.scores.round(3).tolist(), said.items.tolist()
    ([0.4], [[1.0, 0.0, 0.7]])
    """
    items[:, answers.items] = answers.scores
    full = np.clip(items @ benchmark.item_weights, 0.0, 1.0)
    of_tasks = np.clip(benchmark.task_means(items), 0.0, 1.0) if tasks else None
    return Prediction(full, of_tasks, np.clip(items, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class FittedItems:
    """Predicts all items: `expected` maps answers to shape (targets, items)."""

    benchmark: Benchmark
    expected: Callable[[Answers], FloatArray]
    notes: tuple[str, ...] = ()

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, the items' expected scores and, if wanted, task scores."""
        whole = completed(self.benchmark, self.expected(answers), answers, tasks=tasks)
        return replace(whole, notes=self.notes)


@dataclass(frozen=True, eq=False)
class SeparateFits:
    """Full and task scores of the sources, learned separately when first needed.

    `fit` learns outputs, shape (sources, outputs), and returns a function of targets' features.
    """

    sources: Scores
    fit: Callable[[FloatArray], Callable[[FloatArray], FloatArray]]

    @cached_property
    def _full(self) -> Callable[[FloatArray], FloatArray]:
        return self.fit(self.sources.full_scores()[:, None])

    @cached_property
    def _tasks(self) -> Callable[[FloatArray], FloatArray]:
        return self.fit(self.sources.task_scores())

    def predict(self, x: FloatArray, *, tasks: bool) -> Prediction:
        """Predict full scores and, if wanted, task scores, both in [0, 1]."""
        full = np.clip(self._full(x)[:, 0], 0.0, 1.0)
        if not tasks:
            return Prediction(full)
        if len(self.sources.tasks) == 1:
            return Prediction(full, full[:, None])
        return Prediction(full, np.clip(self._tasks(x), 0.0, 1.0))


def task_members(task_of: IntArray, n_tasks: int, weights: FloatArray) -> FloatArray:
    """Return each item's weight in its task's column, shape (n, tasks), and 0 in the others."""
    return np.asarray(np.equal.outer(task_of, np.arange(n_tasks)) * weights[:, None])


@dataclass(frozen=True, eq=False)
class TaskLines:
    """The line through the sources' (full score, task score) pairs, for each task.

    `mean` is the mean full score; `means` and `slopes`, shape (tasks,), are the mean task scores
    and their change with the full score.
    """

    mean: float
    means: FloatArray
    slopes: FloatArray

    def fill(self, tasks: FloatArray, full: FloatArray) -> FloatArray:
        """Replace NaN in task scores, shape (targets, tasks), by the line, clipped to [0, 1]."""
        line = self.means + np.multiply.outer(full - self.mean, self.slopes)
        return np.where(np.isnan(tasks), np.clip(line, 0.0, 1.0), tasks)


def task_lines(scores: Scores) -> TaskLines:
    """Fit the lines to the sources; without any, a task's score is the full score."""
    if not scores.n_models:
        return TaskLines(0.0, np.zeros(len(scores.tasks)), np.ones(len(scores.tasks)))
    x, y = scores.full_scores(), scores.task_scores()
    centered = x - x.mean()
    spread = float(centered @ centered)
    slopes = (centered @ y) / spread if spread > 0 else np.zeros(y.shape[1])
    return TaskLines(float(x.mean()), y.mean(axis=0), slopes)


def lines_for(scores: Scores, task_of: IntArray, weights: FloatArray) -> TaskLines | None:
    """Return the lines if some task has no weight among the chosen items, else None."""
    mass = np.bincount(task_of, weights, minlength=len(scores.tasks))
    return None if (mass > 0).all() else task_lines(scores)


LEAST = 1e-6
"""Scores are clipped this far from 0 and 1 before log odds are taken."""


@dataclass(frozen=True)
class AnchorLines:
    """Lines over the sources from the chosen items to the others; each item takes its best line.

    As in the paper, the least squared residual decides, even if the line is not from the nearest
    medoid.

    - `logit`: Fit the lines to log odds, as the paper does for option probabilities; useful if
      scores are probabilities of the right option.
    """

    logit: bool = False
    needs: ClassVar = (Need("independent sources", 20, "few sources to draw many lines through"),)

    def fit(self, scores: Scores, subset: Subset, seed: int) -> FittedItems:
        """Fit the lines to the sources' answers."""
        from scipy.special import expit

        at = scores.positions(subset.items)
        if not self.logit:
            lines = fit_item_lines(scores.filled, at)
            return FittedItems(scores.benchmark, lambda answers: lines.predict(answers.scores))
        lines = fit_item_lines(_odds(scores.filled), at)
        return FittedItems(
            scores.benchmark,
            lambda answers: np.asarray(expit(lines.predict(_odds(answers.scores)))),
        )


def _odds(scores: FloatArray) -> FloatArray:
    from scipy.special import logit

    return np.asarray(logit(np.clip(scores, LEAST, 1.0 - LEAST)))


@dataclass(frozen=True)
class LowRankCompletion:
    """A few abilities, estimated from the target's answers, predict the items that were not run.

    The estimate is the mean of the answers and the unclipped expectations of other items. It can
    differ from the mean of `Prediction.items`, where each item is clipped to [0, 1] (see
    `fewbench.algorithms.completion.low_rank`).

    - `rank`: Number of abilities; by default the one that best predicts held-out sources.
    """

    rank: int | None = None
    needs: ClassVar = (Need("independent sources", 20, "few sources distinguish few abilities"),)

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedLowRank":
        """Fit the sources' answers, with missing cells filled."""
        check_number("rank", self.rank, 0)
        model = fit_low_rank(
            scores.filled,
            self.rank,
            observed=len(subset.items),
            weights=scores.item_weights,
            rng=np.random.default_rng(seed),
        )
        return FittedLowRank(scores.benchmark, model)


@dataclass(frozen=True, eq=False)
class FittedLowRank:
    """A low-rank model of the sources."""

    benchmark: Benchmark
    model: LowRank

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, the items' expected scores and, if wanted, task scores."""
        weights = np.column_stack([self.benchmark.item_weights, self.benchmark.task_weights])
        means = self.model.average(answers.items, answers.scores, weights)
        items = self.model.complete(answers.items, answers.scores)
        return Prediction(means[:, 0], means[:, 1:] if tasks else None, items)


RANKS = (2, 5, 10, 20)
STEPS = (100, 1000, 10_000)
HELD = 0.25
"""Share of the sources by which rank and steps are chosen."""


@dataclass(frozen=True)
class Imputation:
    """Items that were not run, imputed in steps from the sources' principal components.

    The authors' program recomputes the components of sources and targets together in each step.
    Here the sources' components stay fixed, so targets are independent and all steps are one
    product. The authors' program chooses the rank without hiding its held-out cells and so always
    takes the first, 2; here they are hidden.

    - `rank`: Number of components; by default 2, 5, 10 or 20, with the least error on a held-out
      quarter of the sources.
    - `steps`: Steps of imputation; fewer steps shrink more towards the sources' mean. By default
      100, 1,000 or 10,000, chosen with the rank: with few of many items run, 100 are far too few.
      The authors' program amounts to `rank=2,steps=100`.
    """

    rank: int | None = None
    steps: int | None = None
    needs: ClassVar = (Need("independent sources", 20, "few sources have few components"),)

    def fit(self, scores: Scores, subset: Subset, seed: int) -> FittedItems:
        """Find the components of the sources, with missing cells filled.

        As in the authors' program, means use the unclipped imputed values.
        """
        check_number("rank", self.rank, 0)
        check_number("steps", self.steps, 1, 1_000_000)
        rank, steps = self._chosen(scores, subset, seed)
        components = principal_components(scores.filled, rank)
        return FittedItems(
            scores.benchmark,
            lambda answers: components.impute(answers.items, answers.scores, steps),
        )

    def _chosen(self, scores: Scores, subset: Subset, seed: int) -> tuple[int, int]:
        """Choose rank and steps by the error of held-out sources' full scores."""
        ranks = RANKS if self.rank is None else (self.rank,)
        pairs = [(r, s) for r in ranks for s in (STEPS if self.steps is None else (self.steps,))]
        order = np.random.default_rng(seed).permutation(scores.n_models)
        withheld = order[: round(HELD * len(order))]
        if len(pairs) == 1 or not len(withheld):
            return pairs[0]
        values, at = scores.filled, scores.positions(subset.items)
        components = principal_components(np.delete(values, withheld, axis=0), max(ranks))
        truth = values[withheld] @ scores.item_weights
        errors = []
        for rank, steps in pairs:
            rows = components.first(rank).impute(at, values[np.ix_(withheld, at)], steps)
            errors.append(np.abs(rows @ scores.item_weights - truth).mean())
        return pairs[int(ties.argmin(np.array(errors)))]
