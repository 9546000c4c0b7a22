"""Low-rank completion: the target's other answers from those it gave, over the sources.

Matrix factorisation, as Zhou et al. 2025 have it predict a benchmark's missing cells, fitted in
closed form: the sources are complete.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.algorithms.completion.low_rank import LowRank, fit_low_rank
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.needs import Need
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
