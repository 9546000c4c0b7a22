"""A line from the best chosen item predicts each other item.

Vivek et al. 2023, "Anchor Points: Benchmarking Models with Much Fewer Examples", arXiv 2309.08638,
AnchorPoints Predictor, as used on right and wrong answers by Zhang, Dorner & Hardt 2025, arXiv
2506.07673.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.methods.needs import Need
from fewbench.methods.prediction.completed import FittedItems
from fewbench.methods.subset import Subset
from fewbench.scores import Scores
from fewbench.support import FloatArray
from fewbench_papers.algorithms.completion.item_to_item import fit_item_lines

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
