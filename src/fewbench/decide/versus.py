"""Versus: which of two models is better."""

import math
from collections.abc import Sequence

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench._warned import issue
from fewbench.decide.differences import checked_at, judged
from fewbench.decide.joint_estimate import JointEstimate
from fewbench.decide.multiple import ADJUSTS, Adjust, adjusted_p_values
from fewbench.decide.next_items import MOST, ONE_LOOK, ask_items, next_items
from fewbench.decide.operands import Given, Operand, labels, operands, warnings_of
from fewbench.decide.pairing import pairing
from fewbench.decide.random_pairs import ToDecide, items_to_decide, random_pairs
from fewbench.decide.versus_result import ItemDifference, TaskDifference, Verdict, Versus
from fewbench.errors import EvaluationError
from fewbench.evaluation.interval import Interval
from fewbench.methods.written import check_number
from fewbench.scores import Scores, Unit
from fewbench.uncertainty.contrast import common_answers
from fewbench.uncertainty.reruns import RunNoise, noise_of_difference
from fewbench.uncertainty.sampling import check_level

NARROWER = 0.9
"""Share of an interval's width below which that of random items is named."""


def versus(
    a: Given,
    b: Given,
    *,
    scores: Scores | None = None,
    level: float = 0.9,
    margin: float | None = None,
    adjust: Adjust = "holm",
    sequential: bool = False,
    fixed_items: bool = False,
    next_items: int | None = None,
    ask: bool = False,
    warn: bool = True,
) -> Versus:
    """Compare two models by their full scores.

    The result is the difference with its interval, the probability that A is better, and what
    random sampling of as many items would give. The verdict holds for the models, on questions like
    these and if they run again, or with `fixed_items` for exactly these items. Targets are
    estimated; a source model ran all items. If you can, run the reference model in full: the
    comparison then needs fewer items of the other one.

    Parameters
    ----------
    a, b : Evaluation, (Evaluation, str) or str
        Evaluation of one target, an evaluation and one of its targets, a target of the other
        evaluation, or a source model.
    scores : Scores, optional
        Scores file of the source models, if A and B are both names or if the file was moved.
    level : float
        Level of the interval. At most (1 - level) / 2 of the verdicts have the wrong sign.
    margin : float, optional
        Largest difference that does not matter, on the scale of the scores.
    adjust : {"holm", "bh"}
        Adjust the tasks' p values for their number: holm (a false verdict on any task in at most 1
        - level of comparisons) or bh (Benjamini-Hochberg: at most 1 - level of the verdicts are
        false, on average).
    sequential : bool
        Allow for checks after 10, 20, 40, … answers up to the budget, until there is a verdict: the
        interval is valid for all of these checks together.
    fixed_items : bool
        Compare the scores on exactly these items, of these runs, and not the models.
    next_items : int, optional
        Number of items that both run next (default: as many as would decide, at most 200).
    ask : bool
        Ask both for these items: fewbench ask DIR then lists them.
    warn : bool
        Also issue the warnings as Python warnings (EstimateWarning).

    Raises
    ------
    EvaluationError
        If a name is unknown, a target has no answers, the two are of different benchmarks, or the
        margin is out of range.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> table = simulate(30, 200, seed=1)
    >>> found = versus("model-00", "model-01", scores=table)
    >>> round(found.difference, 3), found.verdict, found.questions_needed
    (0.06, 'undecided', 277)
    >>> versus("model-00", "model-01", scores=table, fixed_items=True).verdict
    'better'
    """
    check_level(level)
    check_number("next_items", next_items, 0)
    if adjust not in ADJUSTS:
        raise EvaluationError(
            f"unknown adjustment {adjust!r}", hint="use holm or bh", kind="unknown"
        )
    (first, other), sources, notes = operands(a, b, scores=scores, ask=ask)
    check_margin(margin, sources)
    if (first.name, first.evaluation) == (other.name, other.evaluation):
        raise EvaluationError(f"{first.name!r} is compared with itself", hint="name two models")
    result = _result(
        first, other, sources, level, margin, adjust, next_items,
        sequential=sequential, fixed_items=fixed_items,
    )  # fmt: skip
    if ask:
        ask_items((first, other), result.next_items)
        notes = () if sequential else (ONE_LOOK,)
    result = result.model_copy(update={"warnings": (*result.warnings, *notes)})
    if warn:
        issue(result.warnings)
    return result


def check_margin(margin: float | None, scores: Scores) -> None:
    """Raise EvaluationError unless the margin is positive and below the range of the scores."""
    span = scores.scale.span
    if margin is not None and not 0 < margin < span:
        raise EvaluationError(
            f"the margin is {margin:g}, and the scores range over {span:g}",
            hint=f"give a number between 0 and {span:g}, on the scale of the scores",
        )


def _result(
    first: Operand,
    other: Operand,
    scores: Scores,
    level: float,
    margin: float | None,
    adjust: Adjust,
    wanted: int | None,
    *,
    sequential: bool,
    fixed_items: bool,
) -> Versus:
    joint = JointEstimate((first, other), level, fixed_items, sequential)
    difference = joint.full_difference(0, 1)
    scale = scores.scale
    low, high = difference.interval(level)
    unit_margin = None if margin is None else margin / scale.span
    not_worse = None if unit_margin is None else low > -unit_margin
    equivalent = None if unit_margin is None else bool(not_worse) and high < unit_margin
    verdict: Verdict = "undecided"
    if low > 0:
        verdict = "better"
    elif high < 0:
        verdict = "worse"
    elif equivalent:
        verdict = "equivalent"
    elif not_worse:
        verdict = "not worse"
    common, of_a, of_b = common_answers(first.answers, other.answers)
    # Where all answers of a pair are equal, no number of items decides a difference that stays.
    is_paired = margin is None and difference.paired is not None
    is_equal = is_paired and np.array_equal(of_a, of_b)
    to_decide = ToDecide()
    open_ = [side for side in (first, other) if not side.is_known]
    if verdict in ("undecided", "not worse") and not (fixed_items and (is_equal or not open_)):
        edge = 0.0 if unit_margin is None or verdict == "not worse" else -unit_margin
        distance = difference.difference - edge
        to_decide = items_to_decide(difference, (first, other), level, distance, scores.n_items)
    more = _next_items(open_, to_decide.items_needed, wanted, scores)
    deciding = _deciding(common, of_a, of_b, scores)
    (score_a, score_b), (a, b) = joint.estimates().tolist(), labels(first, other)
    random, warnings = random_pairs(joint, level), []
    half, paired = difference.wider * difference.half_of_items(level), difference.paired
    # Chosen items tell models apart better than others do, so this is the most that random ones
    # would give.
    of_random = math.inf if paired is None else paired.halves(difference.difference, level)[0]
    if difference.kind == "held-out" and random is not None and of_random < NARROWER * half:
        width = Unit(scale).points(random.half_width)
        warnings.append(
            f"the same number of random items would give a narrower interval (±{width}), because "
            f"{a} and {b} answer alike: run both with -m random"
        )
    return Versus(
        scale=scores.scale,
        average=scores.average,
        a=a,
        b=b,
        score_a=float(scale.from_unit(score_a)),
        score_b=float(scale.from_unit(score_b)),
        difference=float(scale.difference_from_unit(difference.difference)),
        interval=Interval.between(scale.difference_from_unit((low, high))),
        level=level,
        chance_a_better=difference.chance_above,
        verdict=verdict,
        margin=margin,
        not_worse=not_worse,
        equivalent=equivalent,
        kind=difference.kind,
        sources=difference.sources,
        fixed_items=fixed_items,
        checked_at=checked_at(first, other, fixed_items=fixed_items) if sequential else (),
        items_a=len(first.items),
        items_b=len(other.items),
        items_common=len(common),
        items_total=scores.n_items,
        random=random,
        next_items=more,
        tasks=_tasks(joint, level, adjust),
        groups=_groups(joint, level, adjust),
        adjust=adjust,
        deciding=deciding,
        own_ids=scores.own_ids({*more, *(each.item for each in deciding)}),
        pairing=pairing((first, other)),
        is_limited=any(side.is_limited for side in open_),
        repeats=_noise(first, other, scores, level),
        warnings=(*warnings_of((first, other)), *warnings),
        **dict(to_decide),
    )


def _noise(first: Operand, other: Operand, scores: Scores, level: float) -> RunNoise | None:
    noise = noise_of_difference(first.answers, other.answers, scores.item_weights, level)
    if noise is None:
        return None
    return noise.model_copy(update={"half_width": noise.half_width * scores.scale.span})


def _next_items(
    open_: Sequence[Operand], needed: int | None, wanted: int | None, scores: Scores
) -> tuple[str, ...]:
    """Return as many items as are wanted, or needed, for both to run next.

    A pack with answers to its own items cannot say which are needed, and refuses to if asked.
    """
    if not open_ or (wanted is None and (needed is None or scores.chosen is not None)):
        return ()
    n = min(len(side.items) for side in open_)
    n = min(MOST, (needed or n) - n) if wanted is None else wanted
    return tuple(scores.item_ids[next_items(open_, n, scores)].tolist())


def _tasks(joint: JointEstimate, level: float, adjust: Adjust) -> tuple[TaskDifference, ...]:
    scores, (first, other) = joint.scores, joint.sides
    if len(scores.tasks) < 2:
        return ()
    differences = [joint.difference(0, 1, 1 + at) for at in range(len(scores.tasks))]
    p_values = [None if task is None else task.p_value for task in differences]
    tested = np.array([p_value for p_value in p_values if p_value is not None])
    left = iter(adjusted_p_values(tested, adjust).tolist())
    adjusted = [None if p_value is None else next(left) for p_value in p_values]
    apart = (first.estimates - other.estimates)[1:].tolist()
    return tuple(
        TaskDifference(task=name, **judged(scores.scale, level, *of_task))
        for name, *of_task in zip(scores.tasks, apart, differences, p_values, adjusted, strict=True)
    )


def _groups(joint: JointEstimate, level: float, adjust: Adjust) -> tuple[TaskDifference, ...]:
    of_benchmarks = joint.by_benchmark if joint.scores.groups else None
    return () if of_benchmarks is None else _tasks(of_benchmarks, level, adjust)


def _deciding(
    common: IntArray, of_a: FloatArray, of_b: FloatArray, scores: Scores
) -> tuple[ItemDifference, ...]:
    apart = np.abs(of_a - of_b)
    order = np.argsort(-apart, kind="stable")
    a, b = (scores.scale.from_unit(values) for values in (of_a, of_b))
    tasks = scores.items["task"]
    return tuple(
        ItemDifference(
            item=str(scores.item_ids[common[at]]),
            task=str(tasks.iloc[common[at]]),
            a=float(a[at]),
            b=float(b[at]),
        )
        for at in order[apart[order] > 0].tolist()
    )
