"""The score on the chosen items, times what past models' full scores are to theirs.

Ours for tasks, a ratio estimator as surveys know it (Cochran 1977, ch. 6): chosen items, or tasks,
that are easier than all of them are so for past models too.
"""

from dataclasses import dataclass

import numpy as np

from fewbench.errors import MethodError
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.prediction.mean import FittedMean, Mean
from fewbench.methods.subset import Subset
from fewbench.scores import Scores


@dataclass(frozen=True)
class AnchorRatio:
    """P = s_X · full / s_X of the anchor, or of all past models together.

    Parameters
    ----------
    anchor : str, optional
        A past model's name; by default sums over all of them.
    """

    anchor: str | None = None

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedAnchorRatio":
        """Work out the ratio; MethodError if there is no such model."""
        if self.anchor is None:
            models = np.arange(scores.n_models)
        elif self.anchor in scores.model_ids:
            models = np.array([scores.model_ids.index(self.anchor)])
        else:
            raise MethodError(f"no past model is called {self.anchor!r}", hint="name a source")
        at = scores.positions(subset.items)
        weights = subset.weights_over(scores)
        of_chosen = float((scores.filled[np.ix_(models, at)] @ weights).sum() / weights.sum())
        full = float(scores.full_scores()[models].sum())
        ratio = full / of_chosen if of_chosen > 0 else 1.0
        return FittedAnchorRatio(Mean().fit(scores, subset, seed), ratio)


@dataclass(frozen=True, eq=False)
class FittedAnchorRatio:
    """The mean of the answers, and what it is multiplied by."""

    mean: FittedMean
    ratio: float

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, at most 1; the score of a task with items is their mean."""
        full = np.clip(self.mean.full(answers) * self.ratio, 0.0, 1.0)
        if not tasks:
            return Prediction(full)
        return Prediction(full, self.mean.tasks(answers, full))
