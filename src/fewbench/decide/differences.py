"""Differences at one look or several, and what is found of them."""

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
from fewbench.uncertainty.contrast import Contrast, look_factor
from fewbench.uncertainty.held_out import looks_of
from fewbench.uncertainty.intervals import Uncertainty

POWER = 0.8
"""Share of changes of the wanted size that are found, or of equal models that pass a margin."""
PRIOR_PAIRS = 10.0
"""So many pairs of answers count for errors that do not move together, where few are common."""
AHEAD = 3.0
"""With this bound, looks after every doubling of one side alone, up to 64 times its budget, miss
together in 11% at 90%, after those up to the budget; without one they do in 11%, with 2 in 13%
(200,000 draws). A baseline that ran 64 times its budget then widens 1.3 times, not 2.8."""


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
