"""Anchor Points Predictor: every other item by a line from the chosen item that tells most of it.

Vivek et al. 2023, "Anchor Points: Benchmarking Models with Much Fewer Examples",
arXiv 2309.08638, their AnchorPoints Predictor, as Zhang, Dorner & Hardt 2025 (arXiv 2506.07673)
use it on right and wrong answers.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench._types import FloatArray
from fewbench.algorithms.completion.item_lines import ItemLines, fit_item_lines
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.needs import Need
from fewbench.methods.prediction.completed import completed
from fewbench.methods.subset import Subset
from fewbench.scores import Benchmark, Scores

LEAST = 1e-6
"""Scores are kept as far from 0 and 1 before their log-odds are taken."""


@dataclass(frozen=True)
class AnchorLines:
    """Lines over the sources from the chosen items to the others; each item takes its best one.

    Where an item's line is from another item than its nearest medoid, so it is in the paper: the
    least squared residual decides.

    Parameters
    ----------
    logit : bool
        Draw the lines through log-odds, as the paper does for option probabilities; of use where
        scores are probabilities of the right option.
    """

    logit: bool = False
    needs: ClassVar = (Need("distinct sources", 20, "few sources to draw many lines through"),)

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedLines":
        """Draw the lines through the sources' answers."""
        values = _odds(scores.filled) if self.logit else scores.filled
        return FittedLines(
            self, scores.benchmark, fit_item_lines(values, scores.positions(subset.items))
        )


@dataclass(frozen=True, eq=False)
class FittedLines:
    """Lines over the sources."""

    method: AnchorLines
    benchmark: Benchmark
    lines: ItemLines

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, the items' expected scores and, if wanted, task scores."""
        if self.method.logit:
            from scipy.special import expit

            items = expit(self.lines.predict(_odds(answers.scores)))
        else:
            items = self.lines.predict(answers.scores)
        return completed(self.benchmark, items, answers, tasks=tasks)


def _odds(scores: FloatArray) -> FloatArray:
    from scipy.special import logit

    return np.asarray(logit(np.clip(scores, LEAST, 1.0 - LEAST)))
