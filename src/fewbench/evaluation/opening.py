"""Checks before an evaluation or a study is opened."""

from collections.abc import Sequence

from fewbench._names import some
from fewbench.errors import EvaluationError, MethodError
from fewbench.methods import Method, Provenance, StaticMethod, Subset
from fewbench.methods.subset import Given
from fewbench.scores import Scores


def check_budget(budget: int, n_items: int) -> None:
    """Raise MethodError unless 1 <= budget <= n_items."""
    if not 1 <= budget <= n_items:
        raise MethodError(
            f"a budget of {budget} items, where there are {n_items}",
            hint=f"use a budget from 1 to {n_items}",
        )


def check_subset(subset: Subset, wanted: Provenance) -> None:
    """Raise EvaluationError unless a given subset is of this budget, these scores and this method.

    A subset without provenance is the user's own.
    """
    if len(subset.items) != wanted.budget:
        raise EvaluationError(f"a subset of {len(subset.items)} items, a budget of {wanted.budget}")
    made = subset.provenance
    if made is not None and made.fingerprint != wanted.fingerprint:
        raise EvaluationError(
            f"the subset was chosen from other scores (fingerprint {made.fingerprint}, these have "
            f"{wanted.fingerprint})",
            hint="use the scores that it was chosen from, or choose again",
        )
    if made is not None and (made.settings, made.seed) != (wanted.settings, wanted.seed):
        raise EvaluationError(
            f"the subset was chosen by {made.method} ({made.settings}) with seed {made.seed}, not "
            f"by {wanted.method} ({wanted.settings}) with seed {wanted.seed}",
            hint="a subset is only meaningful with its method; to use its items all the same, take "
            "its provenance away",
        )


def check_targets(scores: Scores, targets: Sequence[str]) -> None:
    """Raise EvaluationError unless targets are named, once each, and are not among the sources."""
    if isinstance(targets, str):
        raise EvaluationError(f"the targets are the text {targets!r}", hint=f"use [{targets!r}]")
    if not targets or any(not target.strip() for target in targets):
        raise EvaluationError("no target, or one without a name", hint="name the new models")
    if len(set(targets)) < len(targets):
        raise EvaluationError(
            f"a target is named twice among {some(targets)}", hint="name each one once"
        )
    known = [target for target in targets if target in scores.models.index]
    if known:
        raise EvaluationError(
            f"{some(known)} is among the sources already, with its answers to all items",
            hint="its full score is known; give a new model another name",
        )


def check_scores(scores: Scores, made: Provenance, folder: str) -> None:
    """Raise EvaluationError unless these are the scores that an evaluation was started with."""
    if scores.fingerprint != made.fingerprint:
        raise EvaluationError(
            f"{folder}: opened with other scores (fingerprint {made.fingerprint}, these have "
            f"{scores.fingerprint})",
            hint="put the scores back, or start a new evaluation",
        )


def with_items(method: Method, subset: Subset) -> Method:
    """Return the method with a user's own items; with its own, if the subset says whose it is."""
    if not isinstance(method, StaticMethod):
        raise EvaluationError(
            f"{method.describe()} chooses items as it goes and takes no given subset",
            hint="start it with the method and the budget; it asks for the same first items",
        )
    made = subset.provenance
    if made is None or made.settings.startswith("given("):
        return StaticMethod(Given(subset), method.predictor)
    return method
