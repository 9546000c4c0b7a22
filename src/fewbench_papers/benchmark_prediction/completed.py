"""Expected scores of the items that were not run, by low-rank models of the source models.

`LowRankCompletion`: matrix factorization as in Zhou et al. 2025, in closed form because the sources
are complete. `Imputation`: principal components without a noise model, the PCA of Zhang, Dorner &
Hardt 2025, arXiv 2506.07673.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.algorithms import ties
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.needs import Need
from fewbench.methods.prediction.completed import FittedItems
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Benchmark, Scores
from fewbench_papers.algorithms.completion.low_rank import (
    LowRank,
    fit_low_rank,
    principal_components,
)


@dataclass(frozen=True)
class LowRankCompletion:
    """A few abilities, estimated from the target's answers, predict the items that were not run.

    The estimate is the mean of the answers and the unclipped expectations of other items. It can
    differ from the mean of `Prediction.items`, where each item is clipped to [0, 1] (see
    `fewbench_papers.algorithms.completion.low_rank`).

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
