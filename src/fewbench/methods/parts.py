"""The parts of static methods by their command-line names.

A method is `tasks + selector + predictor`; `tasks` is optional, and with `tasks` the selector is
too. A predictor is a name such as `mean`, or `features + reduction + regressor` with optional
features (default `signature`) and reduction (default none). Settings follow in parentheses:

    random+mean
    medoids(metric=cosine,standardise=true)+answers+ridge(alpha=1)
    pds(models=100)+pca(components=64)+forest
    bento-le(components=5,tasks=3,matrix=ict.npz)+random+mean
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, cast

from fewbench._names import did_you_mean, some
from fewbench._plugins import Added, Registry, added
from fewbench.errors import MethodError
from fewbench.methods.base import Predictor, Selector
from fewbench.methods.prediction import (
    aipw,
    features,
    kriging,
    mean,
    regression,
)
from fewbench.methods.selection import (
    core_sets,
    optimal_design,
    random,
)
from fewbench.methods.written import Piece, with_settings, write

WHOLE = "method"
"""The stage of whole methods: those that choose further items after seeing answers."""


class WaysOfStage(NamedTuple):
    """How a stage is read whose parts are more than their classes.

    - `read`: Makes a part from what is written.
    - `settings`: A dataclass of settings that all parts of the stage take.
    """

    read: Callable[[Piece], Any]
    settings: type[Any]


@dataclass(frozen=True)
class MethodSet:
    """Methods of a package, and the parts that they are made of.

    A package whose methods have settings, variants or parts in common names one of these in its
    entry points of the group `fewbench.methods`; else the method itself.

    Attributes
    ----------
    entries : mapping of str to Entry
        Methods by name.
    parts : mapping of str to mapping of str to type
        Parts by stage and name, such as `{"predictor": {"shifted": Shifted}}`. A part is a frozen
        dataclass, whose fields are its settings. The stage "method" holds whole methods.
    ways : mapping of str to WaysOfStage
        How the package's parts of a stage are read.
    """

    entries: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, type[Any]]] = field(default_factory=dict)
    ways: Mapping[str, WaysOfStage] = field(default_factory=dict)

    def __post_init__(self) -> None:
        stages = (*OWN, WHOLE)
        if unknown := [stage for stage in (*self.parts, *self.ways) if stage not in stages]:
            raise MethodError(
                f"unknown stage {unknown[0]!r}", hint=f"use {', '.join(stages)}", kind="unknown"
            )


OWN: dict[str, dict[str, type[Any]]] = {
    "tasks": {},
    "selector": {
        "random": random.Random,
        "stratified": random.Stratified,
        "greedy": core_sets.Greedy,
        "optimal-design": optimal_design.OptimalDesign,
    },
    "features": {
        "signature": features.Signature,
        "answers": features.AnswerFeatures,
        "subset-score": features.SubsetScore,
        "task-means": features.TaskMeans,
    },
    "reduction": {
        "none": features.NoReduction,
        "pca": features.PCA,
    },
    "regressor": {
        "linear": regression.Linear,
        "ridge": regression.Ridge,
    },
    "predictor": {
        "mean": mean.Mean,
        "aipw": aipw.AIPW,
        "kriging": kriging.Kriging,
    },
}
"""Our own parts."""


def added_parts(stage: str) -> Iterator[Added]:
    """Yield the parts of a stage that packages add."""
    for one in added("methods"):
        if isinstance(one.thing, MethodSet):
            for name, part in one.thing.parts.get(stage, {}).items():
                if is_own(name):
                    raise one.of(name, part).refused("this name is taken")
                yield one.of(name, part)
        elif isinstance(one.thing, type) and stage == WHOLE:
            yield one


STAGES: dict[str, Registry[type[Any]]] = {
    stage: Registry(own, partial(added_parts, stage)) for stage, own in OWN.items()
}
"""Parts by stage, in the order in which they are written, and by name."""


def name_of(part: object) -> str | None:
    """Return the name of a part, None if nobody registered it."""
    kind, tables = type(part), (*OWN.values(), *STAGES.values())
    return next((name for parts in tables for name in parts if parts[name] is kind), None)


def is_own(name: str) -> bool:
    """Whether a part is fewbench's own: nothing is loaded to find it."""
    return any(name in parts for parts in OWN.values())


def stage_of(name: str) -> str | None:
    """Return the stage of a part by its name, None if there is no such part."""
    return next((stage for by in (OWN, STAGES) for stage in by if name in by[stage]), None)


def ways_of(stage: str) -> WaysOfStage | None:
    """Return how a package reads the parts that it adds to a stage, if it has a way of its own."""
    sets = [each.thing for each in added("methods") if isinstance(each.thing, MethodSet)]
    return next((each.ways[stage] for each in sets if stage in each.ways), None)


def _make(stage: str, piece: Piece) -> Any:
    ways = None if piece.name in OWN[stage] else ways_of(stage)
    if ways is not None:
        return ways.read(piece)
    return with_settings(STAGES[stage][piece.name], piece.settings, piece.name)


def combine(pieces: list[Piece]) -> tuple[Selector, Predictor]:
    """Make a selector and a predictor from pieces; MethodError if they are out of order."""
    stages: dict[str, Any] = {}
    order = list(STAGES)
    for piece in pieces:
        stage = stage_of(piece.name)
        if stage is None:
            raise MethodError(
                f"unknown method or part {piece.name!r}",
                hint=did_you_mean(
                    piece.name,
                    [name for parts in STAGES.values() for name in parts],
                    "fewbench methods --parts lists them",
                ),
                kind="unknown",
            )
        if any(order.index(done) >= order.index(stage) for done in stages):
            raise MethodError(
                f"{piece.name!r} is out of place",
                hint="the order is tasks + selector + features + reduction + regressor, "
                "or tasks + selector + predictor",
            )
        stages[stage] = _make(stage, piece)
    if "tasks" in stages:
        tasks, inside = stages.pop("tasks"), stages.get("selector")
        stages["selector"] = tasks if inside is None else replace(tasks, inside=inside)
    if "selector" not in stages:
        raise MethodError("the method has no selector", hint=some(STAGES["selector"], 9))
    if "predictor" in stages:
        if len(stages) > 2:
            name = next(each.name for each in pieces if stage_of(each.name) == "predictor")
            raise MethodError(
                f"{name} works on plain answers",
                hint=f"put nothing between the selector and {name}",
            )
        return cast(Selector, stages["selector"]), cast(Predictor, stages["predictor"])
    if "regressor" not in stages:
        predictors = [*STAGES["predictor"], *STAGES["regressor"]]
        raise MethodError("the method has no predictor", hint=some(predictors, 9))
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
    return [(name_of(piece), piece) for piece in pieces]


def _pieces(selector: Selector, predictor: Predictor) -> list[Any]:
    pieces: list[Any] = [selector]
    pieces += getattr(selector, "within", ())
    if isinstance(predictor, regression.Regression):
        pieces += [predictor.features, predictor.reduction, predictor.regressor]
    else:
        pieces.append(predictor)
    return [piece for piece in pieces if not isinstance(piece, features.NoReduction)]


def _write(part: Any) -> str:
    if hasattr(part, "describe"):  # parts of your own that are not plain dataclasses
        return str(part.describe())
    return write(name_of(part) or type(part).__name__, part)
