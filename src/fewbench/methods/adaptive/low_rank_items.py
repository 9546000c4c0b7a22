"""A low-rank completion of the items in place of stage 2 (UCBE-LRF in Table 5 of the paper)."""

from functools import cached_property

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.completion.low_rank import LowRank, fit_low_rank
from fewbench.scores import Scores


class LowRankItems:
    """Completes a target's answers by the low-rank model of the sources.

    Parameters
    ----------
    scores : Scores
        Missing cells count as filled.
    budget : int
        How many items a target is run on; the rank is chosen for it.
    seed : int
    """

    def __init__(self, scores: Scores, budget: int, seed: int) -> None:
        self._scores, self._budget, self._seed = scores, budget, seed

    def complete(self, chosen: list[IntArray], answers: FloatArray) -> FloatArray:
        """Return a target's expected score of every item, as it comes (see `ItemCompletion`)."""
        run = np.flatnonzero(~np.isnan(answers))
        return np.asarray(self._fitted.complete(run, answers[None, run], clip=False)[0])

    @cached_property
    def _fitted(self) -> LowRank:
        return fit_low_rank(
            self._scores.filled,
            observed=self._budget,
            weights=self._scores.item_weights,
            rng=np.random.default_rng(self._seed),
        )
