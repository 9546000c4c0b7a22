"""The difference of two operands: its interval, at one look or several, and what is found of it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._warned import in_cell
from fewbench.decide.operands import Operand
from fewbench.evaluation.interval import Interval
from fewbench.scores import Scale
from fewbench.uncertainty.all_pairs import all_pairs
from fewbench.uncertainty.contrast import (
    Contrast,
    PairedAnswers,
    beside_known,
    common_answers,
    error_correlation,
    look_factor,
    paired_answers,
)
from fewbench.uncertainty.held_out import looks_of
from fewbench.uncertainty.intervals import Uncertainty
from fewbench.uncertainty.missing_blocks import block_variances
from fewbench.uncertainty.question_error import CommonAnswers, of_one_score
from fewbench.uncertainty.questions import Questions

PRIOR_PAIRS = 10.0
"""So many pairs of answers count for errors that do not move together, where few are common."""
AHEAD = 3.0
"""With this bound, looks after every doubling of one side alone, up to 64 times its budget, miss
together in 11% at 90%, after those up to the budget; without one they do in 11%, with 2 in 13%
(200,000 draws). A baseline that ran 64 times its budget then widens 1.3 times, not 2.8."""


def contrast(
    one: Operand,
    other: Operand,
    *,
    level: float = 0.9,
    sequential: bool = False,
    fixed_items: bool = False,
) -> Contrast:
    """Return the difference of the full scores of two operands.

    For the models in general, on questions like these and in a new run, or with `fixed_items`, on
    exactly these items. With `sequential`, for checks after 10, 20, 40 … answers up to the budget
    that end at a verdict at this level.
    """
    wider = looks_factor((one, other), level, fixed_items=fixed_items) if sequential else 1.0
    questions: Questions | None = None
    if one.is_of_table and other.is_of_table:
        questions = _of_table(one, other, fixed_items=fixed_items)
    elif len(other.items):
        questions = _in_common(one, other).of_full_score(fixed_items=fixed_items)
    elif not fixed_items:  # a number
        questions = of_one_score(one.scores, one.items, one.answers.scores[0], one.score)
    correlation, paired = _correlation(one, other), _paired(one, other)
    return Contrast(*_scores(one, other), correlation, wider, paired, questions)


def _scores(one: Operand, other: Operand) -> tuple[Uncertainty | float, Uncertainty | float]:
    """Return both scores; that of a random sample as it is beside a known model."""
    if other.evaluation is not None and one.evaluation is None:
        second, first = _scores(other, one)
        return first, second
    score, known = one.score, other.answers
    is_plain = one.evaluation is not None and one.evaluation.scores.counts_equally
    is_whole = other.is_of_table and len(known.items) == other.scores.n_items
    if not (isinstance(score, Uncertainty) and is_plain and is_whole and _is_random(score)):
        return score, other.score
    return beside_known(score, one.answers, known.scores[0]), other.score


def _is_random(score: Uncertainty) -> bool:
    """Whether the answers are a simple random sample."""
    return (
        score.sample is not None and not np.ptp(score.sample.chances) and score.kind != "held-out"
    )


def _of_table(one: Operand, other: Operand, *, fixed_items: bool) -> Questions | None:
    """Return the error of two models of a table, as `rank` has it of all its pairs."""
    rows = one.scores.model_positions([one.name, other.name])
    two, of_blocks = one.scores.take(models=rows), block_variances(one.scores)[rows]
    estimates = np.array([one.estimates[0], other.estimates[0]])
    pairs = all_pairs(two, estimates, fixed_items=fixed_items, of_blocks=of_blocks)
    variance, freedom = float(pairs.variance[0, 1]), float(pairs.freedom[0, 1])
    return Questions(variance, freedom) if variance else None


def score_interval(
    side: Operand, level: float, task: int | None = None, *, fixed_items: bool
) -> tuple[float, float] | None:
    """Return the interval of a full score or a task score, of the model or on exactly these items.

    None if nothing is known about the task.
    """
    score = side.score if task is None else side.tasks[task]
    if score is None:
        return None
    questions = None
    if not fixed_items:
        questions = of_one_score(side.scores, side.items, side.answers.scores[0], score, task)
    return Contrast(score, 0.0, questions=questions).interval(level)


def task_contrasts(
    one: Operand, other: Operand, *, fixed_items: bool = False
) -> "list[Contrast | None]":
    """Return the difference of every task, or None where it is unknown."""
    correlation, pairs = _correlation(one, other), _paired_by_task(one, other)
    errors = _in_common(one, other).of_tasks(fixed_items=fixed_items)
    return [
        None
        if a is None or b is None
        else Contrast(a, b, correlation, paired=paired, questions=questions)
        for a, b, paired, questions in zip(one.tasks, other.tasks, pairs, errors, strict=True)
    ]


def _in_common(one: Operand, other: Operand) -> CommonAnswers:
    items, ours, theirs = common_answers(one.answers, other.answers)
    chances = [side.chances for side in (one, other)]
    n_items, filled = one.scores.n_items, 1.0
    known = [side for side in (one, other) if side.evaluation is None]
    if known and any(len(side.items) < n_items for side in known):
        filled = n_items / (len(items) if len(known) == 2 else len(known[0].items))
    return CommonAnswers(
        max((one.scores, other.scores), key=lambda scores: scores.n_models),
        items,
        ours - theirs,
        np.array([one.estimates, other.estimates]),
        None
        if chances[0] is None or chances[1] is None
        else np.minimum(chances[0], chances[1])[items],
        min(len(one.items), len(other.items)),
        filled,
    )


def _correlation(first: Operand, other: Operand) -> float:
    """Return how far the errors of two estimates move together."""
    a, b = first.score, other.score
    if not isinstance(a, Uncertainty) or not isinstance(b, Uncertainty):
        return 0.0
    assert first.evaluation is not None
    assert other.evaluation is not None
    ours, theirs = first.evaluation.provenance, other.evaluation.provenance
    same = (ours.fingerprint, ours.settings, ours.budget) == (
        theirs.fingerprint, theirs.settings, theirs.budget,
    )  # fmt: skip
    if ours.seed != theirs.seed and first.evaluation.method.asks_once:
        same = False  # each ran items of its own
    errors = first.evaluation.estimating.judge.errors if same else None
    return error_correlation(a, b, min(len(first.items), len(other.items)), errors)


def _paired(first: Operand, other: Operand) -> PairedAnswers | None:
    evaluation, copies = first.evaluation or other.evaluation, None
    if evaluation is None:
        return None
    if first.evaluation is None or other.evaluation is None:
        # Beside a known model, the errors on held-out sources hold for near copies, too.
        side = other if first.evaluation is None else first
        if not isinstance(side.score, Uncertainty) or side.score.kind != "held-out":
            return None
        copies = 0.0
    return paired_answers(first.answers, other.answers, evaluation.scores.item_weights, copies)


def _paired_by_task(first: Operand, other: Operand) -> "list[PairedAnswers | None]":
    paired = _paired(first, other)
    if paired is None or first.evaluation is None or other.evaluation is None:
        return [None] * len(first.tasks)
    return [
        paired_answers(first.answers, other.answers, weights, paired.copies)
        for weights in first.evaluation.scores.task_weights.T
    ]


def if_paired(made: Contrast, one: Operand, other: Operand) -> Contrast:
    """Return the difference as it would be if both had answered the same items."""
    a, b = one.score, other.score
    if not isinstance(a, Uncertainty) or not isinstance(b, Uncertainty):
        return made
    if a.sample is None or b.sample is None:
        return made
    common = np.isfinite(a.sample.influence) & np.isfinite(b.sample.influence)
    influence, theirs = a.sample.influence[common], b.sample.influence[common]
    size = math.sqrt(float(influence @ influence) * float(theirs @ theirs))
    alike = float(influence @ theirs) / size if size > 0 else 0.0
    alike *= len(influence) / (len(influence) + PRIOR_PAIRS)
    return replace(made, correlation=max(made.correlation, alike))


def looks_factor(
    sides: Sequence[Operand], level: float, least: int = 0, *, fixed_items: bool = False
) -> float:
    """Return how much wider the interval of a difference is for one of several looks.

    It is the larger factor of the two sides. If a target is ahead of the other one, at most `AHEAD`
    times the other one's share of its budget counts: its further answers hardly change the
    difference. 1 for models of the sources, and with `fixed_items` if both scores are known: after
    all items only a verdict on the models has an error that earlier looks add to.

    Parameters
    ----------
    sides : sequence of Operand
    level : float
    least : int
        As it would be after so many answers of each side, where it has fewer.
    fixed_items : bool
    """
    open_ = _looked_at(sides, fixed_items=fixed_items)
    answers = [max(len(side.items), least) for side in open_]
    shares = [n / side.budget for n, side in zip(answers, open_, strict=True)]
    most = AHEAD * min(shares, default=0.0)
    factors = [
        look_factor(min(n, math.ceil(most * side.budget)), side.budget, level)
        for n, side in zip(answers, open_, strict=True)
    ]
    return max(factors, default=1.0)


def checked_at(*operands: Operand, fixed_items: bool = False) -> tuple[int, ...]:
    """Return the numbers of answers after which the longest evaluation is checked."""
    budgets = [side.budget for side in _looked_at(operands, fixed_items=fixed_items)]
    return looks_of(max(budgets)) if budgets else ()


def _looked_at(sides: Sequence[Operand], *, fixed_items: bool) -> list[Operand]:
    """Return the operands whose errors hang on how often one looks."""
    return [
        side for side in sides if not (side.is_known if fixed_items else side.evaluation is None)
    ]


def judged(
    scale: Scale,
    level: float,
    difference: float,
    pair: Contrast | None,
    p_value: float | None,
    p_adjusted: float | None,
) -> dict[str, Any]:
    """Return what is found of one of several differences, as fields of a result.

    It is better or worse if the p value that is adjusted for their number is at most 1 - level.
    `difference` is in [0, 1]; the interval is on the scale of the scores, None if nothing is known.
    The p values are None where nothing is tested: then, or for a difference without error.
    """
    verdict = "undecided"
    if p_adjusted is not None and p_adjusted <= 1 - level + 1e-12 and difference != 0:
        verdict = "better" if difference > 0 else "worse"
    is_tested = pair is not None and not pair.is_certain
    return {
        "difference": float(scale.difference_from_unit(difference)),
        "interval": None
        if pair is None
        else Interval.between(scale.difference_from_unit(pair.interval(level))),
        "p_value": p_value if is_tested else None,
        "p_adjusted": p_adjusted if is_tested else None,
        "verdict": verdict,
    }


def frame_of(
    parts: Iterable[Any], columns: Sequence[str], warnings: Iterable[str]
) -> "pd.DataFrame":
    """Return a row for each part, with the ends of its interval as low and high, and warnings."""
    rows = [{**dict(part), **dict(part.interval or {})} for part in parts]
    return pd.DataFrame(rows, columns=list(columns)).assign(warnings=in_cell(warnings))
