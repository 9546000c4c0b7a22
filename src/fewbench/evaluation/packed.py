"""Evaluations that start from a pack: its method, items, seed and measured errors are given."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from fewbench._json import first_mistake
from fewbench.errors import EvaluationError, MethodError, PackError
from fewbench.evaluation.opening import Stop
from fewbench.methods import Method, Provenance, Subset
from fewbench.methods.base import AUTO
from fewbench.scores import Scale, Scores, Unit
from fewbench.scores.table import Origin

if TYPE_CHECKING:
    from fewbench.uncertainty.held_out import HeldOut


def provenance_of(origin: Origin, n_items: int) -> Provenance:
    """Return the method, budget and seed that a pack was made with.

    Raises PackError if this version of fewbench lacks the method, or the budget does not fit.
    """
    try:
        provenance = Provenance.model_validate(dict(origin.provenance))
    except ValidationError as error:
        raise _unfit(error) from error
    from fewbench.methods.catalogue import find_method

    try:
        find_method(provenance.method)
    except MethodError as error:
        raise PackError(
            f"the pack's method is not known: {error.message}",
            hint=f"upgrade fewbench: version {provenance.version} made the pack",
        ) from error
    subset = origin.subset
    items = provenance.budget if subset is None else len(subset.get("items", ()))
    if provenance.budget != items or not 1 <= provenance.budget <= n_items:
        raise PackError(
            f"the pack is for {provenance.budget:,} items and contains {items:,} of {n_items:,}",
            hint="make the pack again",
        )
    return provenance


def subset_of(origin: Origin) -> Subset | None:
    """Return a pack's chosen items, or None if its method chooses items as answers arrive."""
    if origin.subset is None:
        return None
    try:
        return Subset.model_validate(dict(origin.subset))
    except ValidationError as error:
        raise _unfit(error) from error


def _unfit(error: ValidationError) -> PackError:
    return PackError(
        f"the pack does not describe its method: {first_mistake(error)}",
        hint="make the pack again",
    )


def check_settings(
    made: Provenance, method: str | Method, stop: Stop | None, seed: int
) -> tuple[str, Stop, int]:
    """Return the method, limits and seed of an evaluation from a pack.

    A pack is for one method, number of items and seed; `auto`, limits without a number of items and
    the seed 0 mean those of the pack. Raises EvaluationError for others.
    """
    named = method if isinstance(method, str) else method.describe()
    differ = []
    if named not in (AUTO, made.method, made.settings):
        differ.append(f"method {made.method}, not {named}")
    items = made.budget if stop is None or stop.items is None else stop.items
    if items != made.budget:
        differ.append(f"{made.budget} items, not {items}")
    if seed not in (0, made.seed):
        differ.append(f"seed {made.seed}, not {seed}")
    if differ:
        raise EvaluationError(
            f"the pack is made for {' and '.join(differ)}",
            hint="leave out method, number of items and seed, or make another pack",
            kind="changed",
        )
    limits = Stop(items=items) if stop is None else stop.model_copy(update={"items": items})
    return made.method, limits, made.seed


def known_errors(scores: Scores, method: Method, made: Provenance) -> "HeldOut | None":
    """Return the errors that a pack holds, or None for other scores.

    Raises PackError if they do not fit together.
    """
    if scores.origin is None or not scores.origin.errors:
        return None
    packed = provenance_of(scores.origin, scores.n_items)
    if (packed.settings, packed.budget, packed.seed) != (method.describe(), made.budget, made.seed):
        return None
    from fewbench.uncertainty.held_out import HeldOut

    try:
        return HeldOut.from_arrays(scores.origin.errors)
    except ValueError as error:
        raise PackError(
            f"the pack's errors on held-out models do not fit together: {error}",
            hint="make the pack again",
        ) from error


def beyond_warnings(rows: Sequence[Mapping[str, Any]], method: str, scale: Scale) -> list[str]:
    """Return warnings if a method's error beyond the sources exceeds random sampling's.

    `rows` are the backtest of a pack, by kind of target, on the scale of the scores.
    """
    ends = {entry.get("target"): entry for entry in rows}
    warnings = [
        _beyond_warning(end, ends.get(end, {}), method, scale) for end in ("stronger", "weaker")
    ]
    return [warning for warning in warnings if warning is not None]


def _beyond_warning(end: str, row: Mapping[str, Any], method: str, scale: Scale) -> str | None:
    error, random, coverage = (row.get(key) for key in ("error", "random_error", "coverage"))
    if not isinstance(error, float) or not isinstance(random, float) or error <= random:
        return None
    from fewbench.methods.catalogue import STRONGER

    unit = Unit(scale)
    advised = "random" if method in STRONGER else f"{', '.join(STRONGER[:-1])} or {STRONGER[-1]}"
    is_narrow = isinstance(coverage, float) and coverage < row.get("level", 1.0)
    covers = f", and its interval covers only {coverage:.0%}" if is_narrow else ""
    return (
        f"for targets {end} than all source models, the error of {method} is "
        f"{unit.points(error)}, random sampling's {unit.points(random)}{covers}: use "
        f"{advised} for such targets"
    )
