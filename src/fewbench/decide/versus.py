"""Versus: which of two models is better."""

from typing import Literal

import numpy as np

from fewbench.decide.contrast import Contrast
from fewbench.decide.further import MOST, further_items
from fewbench.decide.paired import items_needed, mcnemar, plain_sampling
from fewbench.decide.residuals import HeldOut
from fewbench.decide.sides import Given, labels, scores_of, side
from fewbench.decide.versus_result import ItemDifference, TaskDifference, Verdict, Versus
from fewbench.errors import EvaluationError
from fewbench.evaluation.estimate import Interval
from fewbench.evaluation.sampling import check_level
from fewbench.scores import Scores
from fewbench.study.multiple import ADJUSTS, Adjust, adjusted_p_values


def versus(
    a: Given,
    b: Given,
    *,
    scores: Scores | None = None,
    level: float = 0.9,
    margin: float | None = None,
    adjust: Adjust = "holm",
    sequential: bool = False,
    next_items: int | None = None,
) -> Versus:
    """Compare the full scores of two models.

    Measures the errors of differences on the source models, which can take as long as 100 runs of
    the method. The folder of a saved evaluation keeps them.

    Parameters
    ----------
    a, b : Evaluation, (Evaluation, str) or str
        An evaluation of one target, an evaluation and one of its targets, or a name: of a target
        of the other's evaluation, or of a source model, whose full score is known.
    scores : Scores, optional
        The source models, if both are names.
    level : float
        Level of the interval, and 1 minus the share of wrong verdicts.
    margin : float, optional
        Largest difference that does not matter, on the scale of the scores.
    adjust : {"holm", "bh"}
        Adjustment of the tasks' p values for their number.
    sequential : bool
        Whether you look again after more answers and stop at a verdict. The interval is then wide
        enough for looks after 10, 20, 40, … answers together, up to the budget.
    next_items : int, optional
        How many items to choose that both run next (default: as many as decide it, at most 200).

    Raises
    ------
    EvaluationError
        If a name is unknown, a target has no answers, the two have different source scores, or
        the margin is out of range.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> table = simulate(30, 200, seed=1)
    >>> found = versus("model-00", "model-01", scores=table, margin=0.1)
    >>> round(found.difference, 3), found.verdict, found.kind
    (0.06, 'better', 'known')
    """
    return compare_given(
        *(a, b, {}),
        level=level,
        margin=margin,
        adjust=adjust,
        sequential=sequential,
        scores=scores,
        next_items=next_items,
    )


def compare_given(
    a: Given,
    b: Given,
    held: dict[tuple[object, ...], HeldOut],
    *,
    level: float,
    margin: float | None,
    adjust: Adjust,
    sequential: bool,
    scores: Scores | None = None,
    next_items: int | None = None,
) -> Versus:
    """Compare as `versus` does; errors that are measured are added to `held`, or taken from it."""
    check_level(level)
    if adjust not in ADJUSTS:
        raise EvaluationError(f"unknown adjustment {adjust!r}", hint="use holm or bh")
    found = scores_of(a, b, scores=scores)
    check_margin(margin, found)
    one, other = side(a, found, (b,)), side(b, found, (a,))
    if (one.name, one.evaluation) == (other.name, other.evaluation):
        raise EvaluationError(f"{one.name!r} is compared with itself", hint="name two models")
    contrast = Contrast(one, other, found, sequential, held)
    return compare_sides(contrast, level, margin, adjust, next_items)


def check_margin(margin: float | None, scores: Scores) -> None:
    """Raise EvaluationError unless the margin is positive and below the range of the scores."""
    span = scores.scale.high - scores.scale.low
    if margin is not None and not 0 < margin < span:
        raise EvaluationError(
            f"the margin is {margin:g}, and the scores range over {span:g}",
            hint=f"give a number between 0 and {span:g}, on the scale of the scores",
        )


def compare_sides(
    contrast: Contrast,
    level: float,
    margin: float | None,
    adjust: Adjust,
    next_items: int | None = None,
) -> Versus:
    """Return the comparison of two sides."""
    one, other, scores = contrast.one, contrast.other, contrast.scores
    scale = scores.scale
    span = scale.high - scale.low
    sign = -span if scale.lower_is_better else span
    judged = contrast.interval(level)
    unit_margin = None if margin is None else margin / span
    not_worse = None if unit_margin is None else judged.low > -unit_margin
    equivalent = None if unit_margin is None else bool(not_worse) and judged.high < unit_margin
    verdict: Verdict = "undecided"
    if judged.low > 0:
        verdict = "better"
    elif judged.high < 0:
        verdict = "worse"
    elif equivalent:
        verdict = "equivalent"
    elif not_worse:
        verdict = "not worse"
    warnings = contrast.warnings(level)
    half = span * (judged.high - judged.low) / 2
    plain = plain_sampling(contrast, level, half / span)
    needed = _needed(contrast, verdict, judged.low, judged.high, unit_margin)
    if plain is not None and half > plain.paired and not contrast.keeps_pairs:
        warnings += (
            "random sampling of the same items for both would be more precise here: if you only "
            "need the difference, start both as targets of one evaluation with --for difference",
        )
    is_pair_of_answers = scores.is_binary and contrast.is_paired_sample
    a, b = labels(one, other)
    return Versus(
        a=a,
        b=b,
        score_a=float(scale.from_unit(one.estimates[0])),
        score_b=float(scale.from_unit(other.estimates[0])),
        difference=sign * contrast.difference,
        interval=_interval(sign, judged.low, judged.high),
        level=level,
        chance_a_better=contrast.chance_above(level),
        verdict=verdict,
        margin=margin,
        not_worse=not_worse,
        equivalent=equivalent,
        kind=judged.kind,
        units=judged.units,
        looks=contrast.looks,
        items_a=len(one.items),
        items_b=len(other.items),
        items_common=len(contrast.common[0]),
        items_total=scores.n_items,
        plain=plain,
        mcnemar=mcnemar(*contrast.common) if is_pair_of_answers else None,
        items_needed=needed,
        next_items=_next_items(contrast, needed, next_items),
        tasks=_tasks(contrast, level, adjust, sign) if len(scores.tasks) > 1 else (),
        adjust=adjust,
        deciding=_deciding(contrast),
        warnings=warnings,
    )


def _interval(sign: float, low: float, high: float) -> Interval:
    ends = sorted((sign * low, sign * high))
    return Interval(low=ends[0], high=ends[1])


def _next_items(contrast: Contrast, needed: int | None, wanted: int | None) -> tuple[str, ...]:
    """Return as many items as are wanted, or needed, for both to run next."""
    if not contrast.open or (needed is None and wanted is None):
        return ()
    n = min(len(side.items) for side in contrast.open)
    n = min(MOST, (needed or n) - n) if wanted is None else wanted
    chosen = further_items(contrast.open, n, contrast.scores)
    return tuple(contrast.scores.item_ids[chosen].tolist())


def _needed(
    contrast: Contrast, verdict: str, low: float, high: float, margin: float | None
) -> int | None:
    """Return about how many items would bring 0 (or -margin) out of the interval."""
    if verdict not in ("undecided", "not worse") or not contrast.open:
        return None
    edge = 0.0 if margin is None or verdict == "not worse" else -margin
    n = min(len(side.items) for side in contrast.open)
    distance = abs(contrast.difference - edge)
    return items_needed((high - low) / 2, distance, n, contrast.scores.n_items)


def _tasks(
    contrast: Contrast, level: float, adjust: Adjust, sign: float
) -> tuple[TaskDifference, ...]:
    names = contrast.scores.tasks
    halves, p_values = contrast.task_tests(level)
    adjusted = adjusted_p_values(p_values, adjust)
    found = []
    for at, task in enumerate(names):
        apart, half = float(contrast.differences[1 + at]), float(halves[at])
        verdict: Literal["better", "worse", "undecided"] = "undecided"
        if adjusted[at] <= 1 - level + 1e-12 and apart != 0:
            verdict = "better" if apart > 0 else "worse"
        found.append(
            TaskDifference(
                task=task,
                difference=sign * apart,
                interval=_interval(sign, max(-1.0, apart - half), min(1.0, apart + half)),
                p_value=float(p_values[at]),
                p_adjusted=float(adjusted[at]),
                verdict=verdict,
            )
        )
    return tuple(found)


def _deciding(contrast: Contrast) -> tuple[ItemDifference, ...]:
    scores = contrast.scores
    items = np.intersect1d(contrast.one.items, contrast.other.items)
    first, second = contrast.common
    apart = np.abs(first - second)
    order = np.argsort(-apart, kind="stable")
    a, b = (scores.scale.from_unit(values) for values in (first, second))
    tasks = scores.items["task"]
    return tuple(
        ItemDifference(
            item=str(scores.item_ids[items[at]]),
            task=str(tasks.iloc[items[at]]),
            a=float(a[at]),
            b=float(b[at]),
        )
        for at in order[apart[order] > 0].tolist()
    )
