"""The mean of the answers, and two corrections: a ratio and a difference estimator.

The ratio estimator is from survey statistics (Cochran 1977, ch. 6); its use for tasks is ours: if
the chosen items or tasks are easier than all of them, they are so for the sources too. The
difference estimator is that of Fogliato et al. 2024, arXiv 2406.07320; for means,
prediction-powered inference (Angelopoulos et al. 2023) is the same.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.assisted import sample_errors
from fewbench.methods.base import Answers, Prediction, full_only
from fewbench.methods.confidence import Values, needs_for
from fewbench.methods.difficulty import difficulty_index
from fewbench.methods.needs import Need
from fewbench.methods.prediction.completed import TaskLines, lines_for, task_members
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_words
from fewbench.scores import Benchmark, Scores


@dataclass(frozen=True)
class Mean:
    """Mean of the answers with the subset's weights, else the items' own weights.

    A task's score is the weighted mean of its chosen items. A task without any follows from the
    full score by a line over the sources.
    """

    packs_answers: ClassVar[bool] = True

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedMean":
        """Take the weights; nothing is learned."""
        at = scores.positions(subset.items)
        task_of, weights = scores.task_of[at], subset.weights_over(scores)
        lines = lines_for(scores, task_of, weights)
        is_even = not scores.n_models and subset.weights is None  # an exact interval
        chances = None if is_even else subset.chances_over(scores)
        return FittedMean(len(scores.tasks), task_of, weights, lines, chances)


@dataclass(frozen=True, eq=False)
class FittedMean:
    """Weights and tasks of the chosen items, shape (n,), and lines for tasks without items.

    For a sample, also the probabilities of all items.
    """

    n_tasks: int
    task_of: IntArray
    weights: FloatArray
    lines: TaskLines | None
    chances: FloatArray | None = None

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores and, if wanted, task scores."""
        full = self.full(answers)
        of_tasks = self.tasks(answers, full) if tasks else None
        if self.chances is None:
            return Prediction(full, of_tasks)
        how = self.weights, answers.items, self.chances
        predicted = np.zeros_like(answers.scores)  # nothing: the estimate is the plain mean
        spread, degrees, samples = sample_errors(answers.scores, predicted, *how)
        freedom = full_only(degrees, self.n_tasks)
        return Prediction(full, of_tasks, spread=spread, freedom=freedom, samples=samples)

    def full(self, answers: Answers) -> FloatArray:
        """Return the weighted means, shape (targets,)."""
        return np.asarray(answers.scores @ (self.weights / self.weights.sum()))

    def tasks(self, answers: Answers, full: FloatArray) -> FloatArray:
        """Return the tasks' scores, shape (targets, tasks), given the full scores."""
        member = task_members(self.task_of, self.n_tasks, self.weights)
        with np.errstate(invalid="ignore"):
            seen = np.asarray((answers.scores @ member) / member.sum(axis=0))
        return seen if self.lines is None else self.lines.fill(seen, full)  # NaN without items


@dataclass(frozen=True)
class AnchorRatio:
    """P = s_X · full / s_X of all source models together."""

    packs_answers: ClassVar[bool] = True

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedAnchorRatio":
        """Compute the ratio."""
        at = scores.positions(subset.items)
        weights = subset.weights_over(scores)
        of_chosen = float((scores.columns(at, filled=True) @ weights).sum() / weights.sum())
        full = float(scores.full_scores().sum())
        ratio = full / of_chosen if of_chosen > 0 else 1.0
        return FittedAnchorRatio(Mean().fit(scores, subset, seed), ratio)


@dataclass(frozen=True, eq=False)
class FittedAnchorRatio:
    """The mean of the answers and its multiplier."""

    mean: FittedMean
    ratio: float

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, at most 1; a task with items scores their mean."""
        full = np.clip(self.mean.full(answers) * self.ratio, 0.0, 1.0)
        if not tasks:
            return Prediction(full)
        return Prediction(full, self.mean.tasks(answers, full))


@dataclass(frozen=True)
class Difference:
    """Mean of the proxy over all items, plus the weighted mean of answer minus proxy.

    With proxy x, the items' weights w in the full score and the sample's weights v, the estimate
    is sum_all w λ x + sum_sample v (y - λ x). For λ = 1 it is unbiased for any proxy where the
    weighted mean of the answers is. A task's score uses its own items; a task without any follows
    from the full score by a line over the sources.

    - `proxy` ("scores", "probabilities"): As in the selector `strata`.
    - `tune`: λ is the slope of the target's answers over the proxy, clipped to [0, 1], as in PPI++
      (Angelopoulos et al. 2023, arXiv 2311.01453); otherwise 1.
    """

    proxy: Values = "scores"
    tune: bool = False
    packs_answers: ClassVar[bool] = True

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the proxy needs."""
        some = Need("independent sources", 5, "few sources tell little of how easy an item is")
        return (some, *needs_for(self.proxy))

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedDifference":
        """Compute the proxy of all items and the weights of the chosen items."""
        check_words(self)
        at = scores.positions(subset.items)
        weights = subset.weights_over(scores)
        proxy = difficulty_index(scores, self.proxy)
        lines = lines_for(scores, scores.task_of[at], weights)
        weights = weights / weights.sum()
        fitted = scores.benchmark, lines, at, weights, proxy, self.tune
        return FittedDifference(*fitted, subset.chances_over(scores))


@dataclass(frozen=True, eq=False)
class FittedDifference:
    """Weights of the chosen items, shape (n,), and the proxy, shape (items,)."""

    benchmark: Benchmark
    lines: TaskLines | None
    at: IntArray
    weights: FloatArray
    proxy: FloatArray
    tune: bool
    chances: FloatArray | None = None

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores and, if wanted, task scores, all within 0 to 1."""
        x = self.proxy[self.at]
        slope = self._slopes(answers.scores) if self.tune else np.ones(len(answers.scores))
        left = answers.scores - slope[:, None] * x
        full = left @ self.weights + slope * float(self.benchmark.item_weights @ self.proxy)
        full = np.clip(full, 0.0, 1.0)
        task_of, n_tasks = self.benchmark.task_of[self.at], len(self.benchmark.tasks)
        predicted = Prediction(full)
        if self.chances is not None:
            how = self.weights, self.at, self.chances
            spread, degrees, samples = sample_errors(answers.scores, slope[:, None] * x, *how)
            freedom = full_only(degrees, n_tasks)
            predicted = Prediction(full, spread=spread, freedom=freedom, samples=samples)
        if not tasks:
            return predicted
        member = task_members(task_of, n_tasks, self.weights)
        with np.errstate(invalid="ignore"):
            means = (left @ member) / member.sum(axis=0)  # NaN where a task has no item
        means += np.multiply.outer(slope, self.benchmark.task_means(self.proxy[None])[0])
        means = np.clip(means, 0.0, 1.0)
        of_tasks = means if self.lines is None else self.lines.fill(means, full)
        return replace(predicted, tasks=of_tasks)

    def _slopes(self, answers: FloatArray) -> FloatArray:
        """Return each target's slope over the proxy, 0 if too little is known.

        The covariance is the sample's; the variance is the proxy's over all items.
        """
        w = self.benchmark.item_weights
        variance = float(w @ (self.proxy - w @ self.proxy) ** 2)
        n = len(self.at)
        if n < 2 or variance <= 0:
            return np.zeros(len(answers))
        x = self.proxy[self.at]
        covariance = answers @ (self.weights * (x - self.weights @ x)) * n / (n - 1)
        return np.asarray(np.clip(covariance / variance, 0.0, 1.0))
