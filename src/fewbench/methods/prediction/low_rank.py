"""Low-rank completion: the target's other answers from those it gave, over the sources.

`LowRankCompletion` is matrix factorisation, as Zhou et al. 2025 have it predict a benchmark's
missing cells, fitted in closed form: the sources are complete. `Imputation` is by principal
components, without a model of the noise, as Zhang, Dorner & Hardt 2025 have it (their PCA): "How
Benchmark Prediction from Fewer Data Misses the Mark", arXiv 2506.07673.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.algorithms.completion.imputation import Components, principal_components
from fewbench.algorithms.completion.low_rank import LowRank, fit_low_rank
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.needs import Need
from fewbench.methods.prediction.completed import completed
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Benchmark, Scores


@dataclass(frozen=True)
class LowRankCompletion:
    """A few abilities, estimated from the target's answers, predict the items not run.

    Scores are the mean of the answers and of what is expected of the other items. That mean is
    not the mean of `Prediction.items`, in which each item is kept within 0 to 1 (see
    `fewbench.algorithms.completion.low_rank`).

    Parameters
    ----------
    rank : int, optional
        Number of abilities; by default the one that best predicts held-out sources.
    """

    rank: int | None = None
    needs: ClassVar = (Need("distinct sources", 20, "few sources tell few abilities apart"),)

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedLowRank":
        """Fit the sources' answers; missing cells are filled first."""
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
    """The items not run, imputed step by step from the sources' principal components.

    The authors' program takes the components of sources and targets together, and anew at every
    step; here they are the sources' and stay, so that no target depends on another and all steps
    are one product. Its choice of the rank never hides the held-out cells it means to hide, and so
    always falls on the first, 2; here they are hidden.

    Parameters
    ----------
    rank : int, optional
        Number of components; by default that of 2, 5, 10 and 20 which errs least on a quarter of
        the sources, held out.
    steps : int, optional
        Rounds of imputation; fewer shrink more towards the sources' mean. By default that of 100,
        1,000 and 10,000 which errs least there with that rank: with few of many items run, 100
        stop far too early. `rank=2,steps=100` is what the authors' program comes to.
    """

    rank: int | None = None
    steps: int | None = None
    needs: ClassVar = (Need("distinct sources", 20, "few sources have few components"),)

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedImputation":
        """Find the components of the sources; missing cells are filled first."""
        check_number("rank", self.rank, 0)
        check_number("steps", self.steps, 1, 1_000_000)
        rank, steps = self._chosen(scores, subset, seed)
        return FittedImputation(scores.benchmark, principal_components(scores.filled, rank), steps)

    def _chosen(self, scores: Scores, subset: Subset, seed: int) -> tuple[int, int]:
        """Choose rank and steps by the error of held-out sources' full score; of ties the least."""
        ranks = RANKS if self.rank is None else (self.rank,)
        pairs = [(r, s) for r in ranks for s in (STEPS if self.steps is None else (self.steps,))]
        order = np.random.default_rng(seed).permutation(scores.n_models)
        held = order[: round(HELD * len(order))]
        if len(pairs) == 1 or not len(held):
            return pairs[0]
        values, at = scores.filled, scores.positions(subset.items)
        components = principal_components(np.delete(values, held, axis=0), max(ranks))
        truth = values[held] @ scores.item_weights
        errors = []
        for rank, steps in pairs:
            rows = components.first(rank).impute(at, values[np.ix_(held, at)], steps)
            errors.append(np.round(np.abs(rows @ scores.item_weights - truth).mean(), 12))
        return pairs[int(np.argmin(errors))]


@dataclass(frozen=True, eq=False)
class FittedImputation:
    """The sources' components, and in how many steps they impute."""

    benchmark: Benchmark
    components: Components
    steps: int

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, the items' expected scores and, if wanted, task scores.

        As in the authors' program, means are taken of what is imputed as it comes.
        """
        items = self.components.impute(answers.items, answers.scores, self.steps)
        return completed(self.benchmark, items, answers, tasks=tasks)
