"""Check prompts and scoring of a harness against those of the source models, before it runs."""

from collections.abc import Iterable

from fewbench.errors import RunError
from fewbench.scores import Scores
from fewbench.scores.benchmark import ItemTable
from fewbench.scores.conditions import compare_conditions


def check_score(score: float, scores: Scores, what: str) -> None:
    """Raise RunError for a score of a harness that is not on the scale of the scores."""
    scale = scores.scale
    if not scale.low <= score <= scale.high:
        raise RunError(
            f"{what} is {score:g}, outside {scale.low:g}..{scale.high:g}",
            hint="run the task and the metric that the source models ran"
            if scores.n_models
            else "name a metric on this scale with --metric (in Python metric=…)",
        )


def check_alike(
    before: ItemTable,
    now: ItemTable,
    items: Iterable[str],
    names: tuple[str, str],
    *,
    accept: bool,
    only_scoring: bool = False,
) -> str:
    """Return differences in prompts or scoring; RunError unless they are accepted.

    `names` are those of the two tables in messages.
    """
    compared = compare_conditions(before, now, items, names, only_scoring=only_scoring)
    differ = "; ".join(compared.differences)
    if differ and not accept:
        raise RunError(
            f"prompts or scoring would differ from {names[0]}: {differ}",
            hint=f"give the arguments, the task and the version of {names[0]}; or pass "
            "--accept-differences to use the answers anyway (in Python accept_differences=True)",
        )
    return differ
