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
from fewbench.methods.prediction import (
    abilities,
    aipw,
    completed,
    features,
    kriging,
    mean,
    regression,
)
from fewbench.methods.selection import (
    clusters,
    core_sets,
    disagreement,
    optimal_design,
    random,
    within_tasks,
)
from fewbench.methods.tasks.choosers import CHOOSERS
from fewbench.methods.written import Piece, with_settings, write

SELECTORS: dict[str, type[Any]] = {
    "random": random.Random,
    "stratified": random.Stratified,
    "medoids": clusters.Medoids,
    "clusters": clusters.Clusters,
    "pds": disagreement.PredictiveDiversity,
    "jsd": disagreement.JensenShannon,
    "irt-anchors": clusters.IRTAnchors,
    "best-of-random": core_sets.BestOfRandom,
    "ridge-search": core_sets.RidgeSearch,
    "informative": core_sets.Informative,
    "strata": random.Strata,
    "lasso-path": core_sets.LassoPath,
    "greedy": core_sets.Greedy,
    "joint": core_sets.Joint,
    "optimal-design": optimal_design.OptimalDesign,
}
FEATURES: dict[str, type[Any]] = {
    "signature": features.Signature,
    "answers": features.AnswerFeatures,
    "subset-score": features.SubsetScore,
    "task-means": features.TaskMeans,
}
REDUCTIONS: dict[str, type[Any]] = {
    "none": features.NoReduction,
    "pca": features.PCA,
}
REGRESSORS: dict[str, type[Any]] = {
    "linear": regression.Linear,
    "ridge": regression.Ridge,
    "knn": regression.Neighbours,
    "forest": regression.Forest,
}
PREDICTORS: dict[str, type[Any]] = {
    "mean": mean.Mean,
    "anchor-ratio": mean.AnchorRatio,
    "completion": completed.LowRankCompletion,
    "imputation": completed.Imputation,
    "aipw": aipw.AIPW,
    "ability": abilities.Ability,
    "anchor-lines": completed.AnchorLines,
    "joint-weights": regression.JointWeights,
    "p-irt": abilities.PIRT,
    "gp-irt": abilities.GPIRT,
    "difference": mean.Difference,
    "kriging": kriging.Kriging,
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
    stages: dict[str, Any] = {}
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
        if any(order.index(done) >= order.index(stage) for done in stages):
            raise MethodError(
                f"{piece.name!r} is out of place",
                hint="the order is tasks + selector + features + reduction + regressor, "
                "or tasks + selector + predictor",
            )
        if stage == "tasks":
            stages[stage] = within_tasks.read_within(piece)
        else:
            stages[stage] = with_settings(STAGES[stage][piece.name], piece.settings, piece.name)
    if "tasks" in stages:
        tasks, inside = stages.pop("tasks"), stages.get("selector")
        stages["selector"] = tasks if inside is None else replace(tasks, inside=inside)
    if "selector" not in stages:
        raise MethodError("the method has no selector", hint=some(SELECTORS, 9))
    if "predictor" in stages:
        if len(stages) > 2:
            name = next(piece.name for piece in pieces if piece.name in PREDICTORS)
            raise MethodError(
                f"{name} works on plain answers",
                hint=f"put nothing between the selector and {name}",
            )
        return cast(Selector, stages["selector"]), cast(Predictor, stages["predictor"])
    if "regressor" not in stages:
        raise MethodError("the method has no predictor", hint=some([*PREDICTORS, *REGRESSORS], 9))
    return cast(Selector, stages["selector"]), regression.Regression(
        cast(regression.Regressor, stages["regressor"]),
        cast(features.Features, stages.get("features", features.Signature())),
        cast(features.Reduction, stages.get("reduction", features.NoReduction())),
    )


def describe(selector: Selector, predictor: Predictor) -> str:
    """Write a selector and a predictor as `combine` reads them, with changed settings only."""
    return "+".join(_write(part) for part in _pieces(selector, predictor))


def parts_of(*whole: Any) -> list[tuple[str | None, Any]]:
    """Return the parts of a selector and a predictor with their names, or None for others."""
    pieces = _pieces(*whole) if len(whole) == 2 else list(whole)
    return [(_NAMES.get(type(piece)), piece) for piece in pieces]


def _pieces(selector: Selector, predictor: Predictor) -> list[Any]:
    pieces: list[Any] = [selector]
    if isinstance(selector, within_tasks.WithinTasks) and not isinstance(
        selector.inside, within_tasks.WholeTasks
    ):
        pieces.append(selector.inside)
    if isinstance(predictor, regression.Regression):
        pieces += [predictor.features, predictor.reduction, predictor.regressor]
    else:
        pieces.append(predictor)
    return [piece for piece in pieces if not isinstance(piece, features.NoReduction)]


def _write(part: Any) -> str:
    if hasattr(part, "describe"):  # parts of your own that are not plain dataclasses
        return str(part.describe())
    return write(_NAMES.get(type(part), type(part).__name__), part)
