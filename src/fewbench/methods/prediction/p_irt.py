"""p-IRT: answers where there are, what the item response model expects elsewhere.

Polo et al. 2024, "tinyBenchmarks: evaluating LLMs with fewer examples", arXiv 2402.14992, Eq. 3.1
(performance-IRT).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from fewbench.methods.base import Answers, Prediction
from fewbench.methods.item_response import NEEDS, SourceModel, source_model
from fewbench.methods.prediction.completed import completed
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Benchmark, Scores


@dataclass(frozen=True)
class PIRT:
    """Mean of the answers and of the chances, at the target's ability, to be right on the rest.

    The ability is the most likely one a posteriori; the authors' program has no prior, so that
    few answers can drive an ability to infinity (a `spread` of 100 comes to the same). The
    abilities of continuous scores come of scores cut into right and wrong.

    Parameters
    ----------
    dimensions : int, optional
        Abilities of the item response model; by default as many as best predict held-out cells.
    spread : float
        Standard deviation of the prior of a target's ability; the sources' is 1, and a target may
        be better than all of them (docs/methods/p-irt.md has the figures).
    """

    dimensions: int | None = None
    spread: float = 2.0
    costly: ClassVar[bool] = True
    needs: ClassVar = NEEDS

    def fit(self, scores: Scores, subset: Subset, seed: int) -> "FittedPIRT":
        """Fit the item response model of the sources; MethodError if a setting is out of range."""
        check_number("spread", self.spread, 0.001, 1000)
        return FittedPIRT(scores.benchmark, source_model(scores, self.dimensions), self.spread)


@dataclass(frozen=True, eq=False)
class FittedPIRT:
    """The sources' item response model, and the spread of abilities a priori."""

    benchmark: Benchmark
    model: SourceModel
    spread: float

    def predict(self, answers: Answers, *, tasks: bool = True) -> Prediction:
        """Predict full scores, the items' expected scores and, if wanted, task scores."""
        abilities = self.model.abilities(answers.items, answers.scores, self.spread)
        items = self.model.model.expected(abilities.means)
        said = completed(self.benchmark, items, answers, tasks=tasks)
        return replace(said, notes=self.model.notes)
