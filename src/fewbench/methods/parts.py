"""The parts of static methods by their command-line names.

A method is `tasks + selector + predictor`; `tasks` is optional, and with `tasks` the selector is
too. A predictor is a name such as `mean`, or `features + reduction + regressor` with optional
features (default `signature`) and reduction (default none). Settings follow in parentheses:

    random+mean
    medoids(metric=cosine,standardise=true)+answers+ridge(alpha=1)
    pds(models=100)+pca(components=64)+forest
    bento-le(components=5,tasks=3,matrix=ict.npz)+random+mean
"""

from dataclasses import replace
from typing import Any, cast

from fewbench._names import did_you_mean, some
from fewbench.errors import MethodError
from fewbench.methods.base import Predictor, Selector
from fewbench.methods.prediction.abilities import GPIRT, PIRT, Ability
from fewbench.methods.prediction.aipw import AIPW
from fewbench.methods.prediction.completed import (
    AnchorLines,
    GenericAssessor,
    Imputation,
    LowRankCompletion,
)
from fewbench.methods.prediction.features import (
    PCA,
    UMAP,
    AnswerFeatures,
    Features,
    NoReduction,
    Reduction,
    Signature,
    SubsetScore,
    TaskMeans,
)
from fewbench.methods.prediction.mean import AnchorRatio, Difference, Mean
from fewbench.methods.prediction.regression import (
    MLP,
    Boosting,
    Forest,
    JointWeights,
    Lasso,
    Linear,
    Neighbours,
    Regression,
    Regressor,
    Ridge,
)
from fewbench.methods.prediction.threshold import Threshold
from fewbench.methods.selection.clusters import Clusters, IRTAnchors, Medoids
from fewbench.methods.selection.core_sets import (
    BestOfRandom,
    Greedy,
    Informative,
    Joint,
    LassoPath,
    RidgeSearch,
)
from fewbench.methods.selection.disagreement import (
    CorrectnessVariance,
    JensenShannon,
    PredictiveDiversity,
)
from fewbench.methods.selection.random import Random, Strata, Stratified
from fewbench.methods.selection.semantic import Semantic
from fewbench.methods.selection.sorted_items import SortedItems
from fewbench.methods.selection.within_tasks import WholeTasks, WithinTasks, read_within
from fewbench.methods.tasks.choosers import CHOOSERS
from fewbench.methods.written import Piece, with_settings, write

SELECTORS: dict[str, type[Any]] = {
    "random": Random,
    "stratified": Stratified,
    "medoids": Medoids,
    "clusters": Clusters,
    "semantic": Semantic,
    "pds": PredictiveDiversity,
    "jsd": JensenShannon,
    "variance": CorrectnessVariance,
    "sorted": SortedItems,
    "irt-anchors": IRTAnchors,
    "best-of-random": BestOfRandom,
    "ridge-search": RidgeSearch,
    "informative": Informative,
    "strata": Strata,
    "lasso-path": LassoPath,
    "greedy": Greedy,
    "joint": Joint,
}
FEATURES: dict[str, type[Any]] = {
    "signature": Signature,
    "answers": AnswerFeatures,
    "subset-score": SubsetScore,
    "task-means": TaskMeans,
}
REDUCTIONS: dict[str, type[Any]] = {"none": NoReduction, "pca": PCA, "umap": UMAP}
REGRESSORS: dict[str, type[Any]] = {
    "linear": Linear,
    "ridge": Ridge,
    "lasso": Lasso,
    "knn": Neighbours,
    "forest": Forest,
    "boosting": Boosting,
    "mlp": MLP,
}
PREDICTORS: dict[str, type[Any]] = {
    "mean": Mean,
    "anchor-ratio": AnchorRatio,
    "completion": LowRankCompletion,
    "imputation": Imputation,
    "aipw": AIPW,
    "ability": Ability,
    "anchor-lines": AnchorLines,
    "joint-weights": JointWeights,
    "threshold": Threshold,
    "p-irt": PIRT,
    "gp-irt": GPIRT,
    "difference": Difference,
    "assessor": GenericAssessor,
}
STAGES = {
    "tasks": CHOOSERS,
    "selector": SELECTORS,
    "features": FEATURES,
    "reduction": REDUCTIONS,
    "regressor": REGRESSORS,
    "predictor": PREDICTORS,
}
_NAMES = {part: name for parts in STAGES.values() for name, part in parts.items()}


def combine(pieces: list[Piece]) -> tuple[Selector, Predictor]:
    """Make a selector and a predictor from pieces; MethodError if they are out of order."""
    made: dict[str, Any] = {}
    order = list(STAGES)
    for piece in pieces:
        stage = next((stage for stage in order if piece.name in STAGES[stage]), None)
        if stage is None:
            raise MethodError(
                f"unknown method or part {piece.name!r}",
                hint=did_you_mean(
                    piece.name,
                    _NAMES.values(),
                    "fewbench methods --parts lists them",
                ),
            )
        if any(order.index(done) >= order.index(stage) for done in made):
            raise MethodError(
                f"{piece.name!r} is out of place",
                hint="the order is tasks + selector + features + reduction + regressor, "
                "or tasks + selector + predictor",
            )
        if stage == "tasks":
            made[stage] = read_within(piece)
        else:
            made[stage] = with_settings(STAGES[stage][piece.name], piece.settings, piece.name)
    if "tasks" in made:
        tasks, inside = made.pop("tasks"), made.get("selector")
        made["selector"] = tasks if inside is None else replace(tasks, inside=inside)
    if "selector" not in made:
        raise MethodError("the method does not begin with a selector", hint=some(SELECTORS, 9))
    if "predictor" in made:
        if len(made) > 2:
            name = next(piece.name for piece in pieces if piece.name in PREDICTORS)
            raise MethodError(
                f"{name} takes the answers as they are", hint=f"selector + {name}, nothing between"
            )
        return cast(Selector, made["selector"]), cast(Predictor, made["predictor"])
    if "regressor" not in made:
        raise MethodError(
            "the method does not end with a predictor", hint=some([*PREDICTORS, *REGRESSORS], 9)
        )
    return cast(Selector, made["selector"]), Regression(
        cast(Regressor, made["regressor"]),
        cast(Features, made.get("features", Signature())),
        cast(Reduction, made.get("reduction", NoReduction())),
    )


def describe(selector: Selector, predictor: Predictor) -> str:
    """Write a selector and a predictor as `combine` reads them, with changed settings only."""
    return "+".join(_write(part) for part in _pieces(selector, predictor))


def parts_of(*whole: Any) -> list[tuple[str | None, Any]]:
    """Return the parts of a selector and a predictor with their names; None for your own parts."""
    pieces = _pieces(*whole) if len(whole) == 2 else list(whole)
    return [(_NAMES.get(type(piece)), piece) for piece in pieces]


def _pieces(selector: Selector, predictor: Predictor) -> list[Any]:
    pieces: list[Any] = [selector]
    if isinstance(selector, WithinTasks) and not isinstance(selector.inside, WholeTasks):
        pieces.append(selector.inside)
    if isinstance(predictor, Regression):
        pieces += [predictor.features, predictor.reduction, predictor.regressor]
    else:
        pieces.append(predictor)
    return [piece for piece in pieces if not isinstance(piece, NoReduction)]


def _write(part: Any) -> str:
    if hasattr(part, "describe"):  # parts of your own that are no plain dataclasses
        return str(part.describe())
    return write(_NAMES.get(type(part), type(part).__name__), part)
