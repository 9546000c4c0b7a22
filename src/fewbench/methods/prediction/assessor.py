"""The generic assessor: success on every other item, from the answers on the reference items.

Pacchiardi, Cheke & Hernández-Orallo 2024, "100 instances is all you need: predicting the success
of a new LLM on unseen data by testing on a few instances" (arXiv 2409.03563).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.algorithms.completion.assessor import Assessor, fit_assessor
from fewbench.errors import MethodError
from fewbench.methods.base import Answers, Prediction
from fewbench.methods.needs import Need
from fewbench.methods.prediction.completed import completed
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Benchmark, Scores


@dataclass(frozen=True)
class GenericAssessor:
    """One logistic regression over all (source, item) pairs predicts the items not run.

    The chosen items are the paper's reference set. Its authors know items by embeddings of their
    prompts; here an item is known by how the other sources did on it, which needs no text and
    says more of how hard it is. Scores are the mean of the answers and of the predicted
    probabilities of the other items.

    Parameters
    ----------
    interaction : bool
        Let an answer count by how alike its item and the predicted one are: the paper's partial
        cross products of similarity and success. Without, only a model's level and an item's
        difficulty count.
    alpha : float, optional
        Penalty on squared weights (the authors' program: 1); by default the one that best
        predicts held-out sources' mean scores.
    pairs : int
        Train on about so many (source, item) pairs: all sources, on random items.
    """

    interaction: bool = False
    alpha: float | None = None
    pairs: int = 100_000
    costly: ClassVar[bool] = True
    needs: ClassVar = (
        Need("sources", 2, "it is trained on how sources compare", required=True),
        Need("distinct sources", 20, "few sources to learn what an answer says of a model"),
    )

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedAssessor":
        """Train on the sources; MethodError if there is one, or a setting is out of range."""
        check_number("alpha", self.alpha, 0)
        check_number("pairs", self.pairs, 1)
        if scores.n_models < 2:
            raise MethodError(
                f"assessor needs at least 2 source models, there is {scores.n_models}"
            )
        assessor = fit_assessor(
            scores.filled,
            scores.positions(subset.items),
            self.alpha,
            interaction=self.interaction,
            pairs=self.pairs,
            item_weights=scores.item_weights,
            rng=np.random.default_rng(seed),
        )
        return FittedAssessor(scores.benchmark, assessor)


@dataclass(frozen=True, eq=False)
class FittedAssessor:
    """An assessor trained on the sources."""

    benchmark: Benchmark
    assessor: Assessor

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, the items' expected scores and, if wanted, task scores."""
        items = self.assessor.probabilities(answers.scores)
        return completed(self.benchmark, items, answers, tasks=tasks)
