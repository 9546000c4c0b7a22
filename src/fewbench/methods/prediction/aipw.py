"""Augmented inverse propensity weighting: predict a target's other answers, then correct them.

Zhang, Dorner & Hardt 2025, "How Benchmark Prediction from Fewer Data Misses the Mark", arXiv
2506.07673, their own method (AIPW). Survey statistics call it the difference estimator, and the
regression estimator if predictions are fitted on the sample itself (Särndal et al. 1992, "Model
Assisted Survey Sampling", ch. 6).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.assisted import SampleErrors, sample_errors
from fewbench.algorithms.ridge_and_neighbors import fit_ridge
from fewbench.methods.base import Answers, Prediction, full_only
from fewbench.methods.needs import Need
from fewbench.methods.prediction.completed import task_members
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Scores

SPREAD, TINY = 0.5, 1e-12
"""Standard deviation of a proxy: that of a source that is right on half of the items."""
LEAST_REST = 0.1
"""Least share of a residual that is not the answer's own doing."""


@dataclass(frozen=True)
class AIPW:
    """Ridge regression of the target on the sources over the items, plus its mean residual.

    Items are the observations, and sources and proxies (columns `proxy:NAME` of the items) the
    features, so each target has its own model. With n
    of N items run and g the prediction of each item, the estimate is

        mean of y over the n + (1 - n / N) · (mean of g over the rest - mean of g over the n);

    unequal weights in the full score give weighted sums. The sample's weights are N / n, or those
    of the subset.

    By default, as in the authors' program, the answers that correct the regression also fit it.
    With a free intercept their residuals then sum to 0 if all items count alike, and the estimate
    is the mean prediction, unbiased up to a term in 1 / n. With `folds`, each answer corrects a
    regression fitted without it; a simple random sample is then unbiased for any sources.

    - `alpha`: Ridge penalty (the authors' program: 10); `none` takes, for each target, the one with
      the least leave-one-out error over the items run.
    - `folds`: Number of parts of the answers; 1 does not split them.
    """

    alpha: float | None = 10.0
    folds: int = 1
    needs: ClassVar = (Need("independent sources", 5, "few sources tell little of a target"),)

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedAIPW":
        """Compute the weights and split the items; regressions wait for the answers."""
        check_number("alpha", self.alpha, 0)
        check_number("folds", self.folds, 1)
        at = scores.positions(subset.items)
        everyone = np.arange(len(at))
        folds = min(self.folds, len(at))
        fold_of = np.random.default_rng(seed).permutation(len(at)) % folds
        parts = [everyone] if folds == 1 else [np.flatnonzero(fold_of == k) for k in range(folds)]
        weights = np.column_stack([scores.item_weights, scores.task_weights])
        sampled = _sampled(scores, subset, at)
        proxies = scores.proxies - scores.proxies.mean(axis=0)
        proxies *= SPREAD / np.maximum(proxies.std(axis=0), TINY)
        features = np.column_stack([scores.filled.T, proxies])
        chances = subset.chances_over(scores)
        return FittedAIPW(self, features, weights, sampled, tuple(parts), chances)


@dataclass(frozen=True, eq=False)
class FittedAIPW:
    """Sources' scores and proxies, and weights for the full score and each task's score.

    `features` has shape (items, sources + proxies). `weights`, shape (items, 1 + tasks), are the
    items' shares; columns sum to 1. With `sampled`, shape (n, 1 + tasks), sums over the chosen
    items estimate sums over all. Each of `parts` has the chosen items that correct one regression.
    """

    method: AIPW
    features: FloatArray
    weights: FloatArray
    sampled: FloatArray
    parts: tuple[IntArray, ...]
    chances: FloatArray | None = None

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, the items' expected scores and, if wanted, task scores."""
        at, n = answers.items, len(answers.items)
        features = self.features
        rest = self.weights.copy()
        rest[at] = 0.0
        beyond = self.sampled - self.weights[at]  # what the sample represents beyond itself
        weighted = answers.scores @ self.weights[at]
        unknown = np.zeros_like(weighted)
        items = np.zeros((len(answers.scores), len(features)))
        without = np.zeros_like(answers.scores)  # predictions without the answer itself
        for left_out in self.parts:
            train = left_out if len(self.parts) == 1 else np.setdiff1d(np.arange(n), left_out)
            model = fit_ridge(features[at[train]], answers.scores[:, train].T, self.method.alpha)
            expected = model.predict(features).T
            residuals = answers.scores[:, left_out] - expected[:, at[left_out]]
            shares = np.ones_like(residuals)
            if len(self.parts) == 1:
                # A residual of the fit is too small by its leverage: residual / (1 - leverage) is
                # the one without the answer (Allen 1974).
                shares = np.maximum(1 - _leverage(features[at], model.alpha), LEAST_REST)
            without[:, left_out] = answers.scores[:, left_out] - residuals / shares
            unknown += expected @ rest + (n / len(left_out)) * (residuals @ beyond[left_out])
            items += expected
        # The sum over the rest is at least 0 and at most its weight.
        means = weighted + np.clip(unknown / len(self.parts), 0.0, rest.sum(axis=0))
        items = np.clip(items / len(self.parts), 0.0, 1.0)
        items[:, at] = answers.scores
        spread = freedom = None
        samples: tuple[SampleErrors, ...] = ()
        if self.chances is not None:
            how = self.sampled[:, 0], at, self.chances
            spread, degrees, samples = sample_errors(answers.scores, without, *how)
            freedom = full_only(degrees, self.weights.shape[1] - 1)
        of_tasks = means[:, 1:] if tasks else None
        return Prediction(
            means[:, 0], of_tasks, items, spread=spread, freedom=freedom, samples=samples
        )


def _leverage(x: FloatArray, alphas: FloatArray) -> FloatArray:
    """Return how much each answer makes its own prediction, shape (targets, n)."""
    about = x - x.mean(axis=0)
    values, vectors = np.linalg.eigh(about @ about.T)
    shrunk = values / (values + alphas[:, None] + 1e-12)
    return np.asarray(np.maximum(shrunk, 0.0) @ (vectors**2).T + 1 / len(x))


def _sampled(scores: Scores, subset: Subset, at: IntArray) -> FloatArray:
    """Return weights of the chosen items as a sample of all, shape (n, 1 + tasks).

    Full score: the subset's weights, else N / n times the items' own. Tasks: weights with sum 1,
    so a task with all items run is exact.
    """
    weights = subset.weights_over(scores)
    full = weights if subset.weights else weights * (scores.n_items / len(at))
    member = task_members(scores.task_of[at], len(scores.tasks), weights)
    mass = member.sum(axis=0)
    return np.column_stack([full, member / np.where(mass > 0, mass, 1.0)])
