"""Methods that only the papers' tables need: losing baselines and ablations.

They enter as a user's own methods do: as objects that `fewbench.compare` takes.
"""

from dataclasses import dataclass, fields

from fewbench.methods import Method, StaticMethod, find_method
from fewbench.methods.base import Predictor, Selector
from fewbench.methods.prediction.features import PCA, Reduction, Signature
from fewbench.methods.prediction.mean import Mean
from fewbench.methods.prediction.regression import Regression, Regressor
from fewbench.methods.selection.random import Random
from fewbench.methods.written import split, with_settings
from fewbench_papers.bento.choosers import BentoLe, BentoSim
from fewbench_papers.bento.ratio import AnchorRatio
from fewbench_papers.disco.disagreement import PredictiveDiversity
from fewbench_papers.disco.regressors import Forest
from fewbench_papers.tailoredbench.tailored import Tailored
from papers.methods.assessor import GenericAssessor
from papers.methods.bento import MatchedSim, MedoidTasks, among_tasks
from papers.methods.disco import MLP, UMAP, Boosting, Lasso, ScoreAnchors
from papers.methods.flash_helm import FlashHelm
from papers.methods.semantic import Semantic
from papers.methods.sort_and_search import SortedItems, Threshold
from papers.methods.tailored import TailoredVariant
from papers.methods.ucbe import Ucbe


@dataclass(frozen=True)
class Named(StaticMethod):
    """A static method with a name of its own."""

    name: str

    def describe(self) -> str:
        return self.name


def _disco(
    regressor: Regressor, reduction: Reduction | None = None, selector: Selector | None = None
) -> StaticMethod:
    predictor = Regression(regressor, Signature(), reduction or PCA())
    return StaticMethod(selector or PredictiveDiversity(models=100), predictor)


def _named(selector: Selector, predictor: Predictor, name: str) -> Named:
    return Named(selector, predictor, name)


METHODS: dict[str, Method] = {
    method.describe(): method
    for method in (
        FlashHelm(),
        Ucbe(share=1),
        Ucbe(share=1, rank=3),
        _named(SortedItems(), Threshold(), "sort-and-search"),
        _named(SortedItems(), Mean(), "sort-and-search-weighted"),
        _named(Random(), GenericAssessor(), "assessor"),
        _named(Semantic(), Mean(), "clustering-semantic"),
        # BenTo without transferability: tasks compared by the source models' scores.
        _named(among_tasks(BentoSim()), Mean(), "alike-tasks"),
        _named(among_tasks(MatchedSim()), AnchorRatio(), "alike-tasks-matched"),
        _named(among_tasks(BentoLe()), Mean(), "alike-tasks-le"),
        _named(among_tasks(MedoidTasks()), Mean(), "task-medoids"),
        _named(ScoreAnchors(), find_method("gp-irt-anchor").predictor, "gp-irt-anchor-corr"),
        _disco(Forest(), UMAP(8)),
        _disco(Forest(), UMAP(64)),
        _disco(MLP()),
        _disco(MLP(3)),
        _disco(Lasso()),
        _disco(Boosting()),
        _disco(MLP(), selector=Random()),
        _disco(MLP(3), selector=Random()),
    )
}
MEASURED = (
    *("flash-helm", "sort-and-search", "sort-and-search-weighted", "assessor"),
    *("alike-tasks", "alike-tasks-matched", "alike-tasks-le", "task-medoids"),
)
"""Methods that benchmarks/baselines.py runs beside those of the catalogue."""


def paper_method(text: str) -> Method | None:
    """Return the method of this package that a row names, or None for one of fewbench's."""
    if text in METHODS:
        return METHODS[text]
    first, *others = split(text)
    if others or first.name != "tailored":
        return None
    if set(first.settings) <= {setting.name for setting in fields(Tailored)}:
        return None
    variant: Method = with_settings(TailoredVariant, first.settings, first.name)
    return variant


def find(text: str) -> Method:
    """Return the method that a row names."""
    return paper_method(text) or find_method(text)
