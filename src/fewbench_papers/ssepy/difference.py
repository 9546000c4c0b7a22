"""The difference estimator of Fogliato et al. 2024, arXiv 2406.07320.

For means, prediction-powered inference (Angelopoulos et al. 2023) is the same.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fewbench.algorithms.assisted import sample_errors
from fewbench.methods.base import Answers, Prediction, full_only
from fewbench.methods.confidence import Values, needs_for
from fewbench.methods.difficulty import difficulty_index
from fewbench.methods.needs import Need
from fewbench.methods.prediction.completed import TaskLines, lines_for, task_members
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_words
from fewbench.scores import Benchmark, Scores
from fewbench.support import FloatArray, IntArray


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
