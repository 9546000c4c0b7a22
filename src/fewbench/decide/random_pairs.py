"""What plain random sampling would give for a difference, and how many items decide it."""

import math
from bisect import bisect_left
from collections.abc import Callable
from functools import partial

import numpy as np

from fewbench._json import Frozen
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms import ties
from fewbench.decide.operands import Operand, if_paired, looks_factor
from fewbench.scores import Scores
from fewbench.uncertainty.contrast import Contrast, common_answers, variance_of
from fewbench.uncertainty.intervals import Uncertainty

PAIRS = 20
"""Source models by whose pairs two targets' disagreement is guessed, those closest in score."""


class RandomPairs(Frozen):
    """Plain random sampling of as many items, which both models run.

    Attributes
    ----------
    items : int
    half_width : float
        Half width of the interval of the difference, on the scale of the scores.
    items_needed : int
        Number of items for an interval as narrow as the one that was found.
    """

    items: int
    half_width: float
    items_needed: int


def random_pairs(
    one: Operand, other: Operand, made: Contrast, scores: Scores, level: float
) -> RandomPairs | None:
    """Return what random sampling would give; None if nothing was run for this difference.

    How far the items' differences vary is guessed from pairs of the source models that are closest
    to the two, of those that ran most items. Checkpoints of one model disagree less: no more than
    on the common items, as chosen ones tell models apart better than others do. Common items that
    are a random sample say it by themselves. None if there are fewer than two sources, or if a pack
    holds their answers to the chosen items only.
    """
    from scipy.special import ndtri

    whole = scores.whole
    if made.is_known or whole.n_models < 2 or whole.chosen is not None:
        return None
    n, n_items = min(len(side.items) for side in (one, other) if not side.is_known), scores.n_items
    full = whole.full_scores()
    rows = [_nearest(full, float(side.estimates[0])) for side in (one, other)]
    cells = whole.filled_cells
    a, b = cells[rows[0]], cells[rows[1]]
    variances = (a**2).mean(axis=1)[:, None] + (b**2).mean(axis=1) - 2 * (a @ b.T) / n_items
    variances -= np.subtract.outer(a.mean(axis=1), b.mean(axis=1)) ** 2
    same = np.equal.outer(rows[0], rows[1])
    variance = float(variances[~same].mean()) if (~same).any() else 0.0
    common, of_a, of_b = common_answers(one.answers, other.answers)
    if len(common):
        seen = variance_of(of_a - of_b)
        evaluations = [side.evaluation for side in (one, other) if side.evaluation is not None]
        is_random = all(evaluation.method.plain_sampling for evaluation in evaluations)
        variance = seen if is_random else min(variance, seen)
    variance = max(variance, 1 / n_items)
    half = float(ndtri(0.5 + level / 2)) * math.sqrt(variance * max(1 / n - 1 / n_items, 0.0))
    low, high = made.interval(level)
    return RandomPairs(
        items=n,
        half_width=scores.scale.span * half,
        items_needed=items_of_width(half, (high - low) / 2, n, n_items),
    )


def _nearest(full: FloatArray, score: float) -> IntArray:
    return ties.argsort(np.abs(full - score), scale=1.0)[:PAIRS]


def items_needed(
    half: float, distance: float, n: int, n_items: int, wider: Callable[[int], float] | None = None
) -> int:
    """Return how many items make a half width as small as a distance, more than the n so far.

    Half widths shrink with sqrt(1/n - 1/N).

    Parameters
    ----------
    half, distance : float
    n, n_items : int
    wider : callable, optional
        Of several looks: how much wider the interval is than that of one look, by the number of
        items.

    Examples
    --------
    >>> items_needed(0.06, 0.03, 50, 1000)
    174
    """
    if wider is None:
        return min(n_items, max(n + 1, items_of_width(half, distance, n, n_items)))

    def decides(items: int) -> bool:
        shrunk = math.sqrt((1 / items - 1 / n_items) / (1 / n - 1 / n_items))
        return half * shrunk * wider(items) / wider(n) <= distance

    return bisect_left(range(n_items), True, lo=n + 1, key=decides)


def items_to_decide(
    made: Contrast, sides: tuple[Operand, Operand], level: float, distance: float, n_items: int
) -> tuple[int | None, int | None]:
    """Return how many items would decide a contrast, and how many if the other score were known.

    `distance` is how far the difference is above the bound that it must clear, or below it if
    negative. None if both scores are known, so that more items change nothing.
    """
    n = min((len(side.items) for side in sides if not side.is_known), default=0)
    if not n:
        return None, None
    low, high = made.interval(level)
    pairs = if_paired(made, *sides)
    half = pairs.half(level)
    if pairs is made:  # exact intervals are longer towards the middle of the scale
        half = made.difference - low if distance > 0 else high - made.difference
    looks = None if made.wider == 1.0 else partial(looks_factor, sides, level)
    needed = items_needed(half, abs(distance), n, n_items, looks)
    one, other = made.one, made.other
    if not isinstance(one, Uncertainty) or not isinstance(other, Uncertainty):
        return needed, None
    alone, n = sides[:1], len(sides[0].items)
    wider = 1.0 if looks is None else looks_factor(alone, level)
    left = Contrast(one, other.estimate, wider=wider).half(level)
    if left >= made.half(level):
        return needed, None
    looks = None if looks is None else partial(looks_factor, alone, level)
    return needed, items_needed(left, abs(distance), n, n_items, looks)


def items_of_width(half: float, wanted: float, n: int, n_items: int) -> int:
    """Return how many items give another half width if n of them give this one.

    Examples
    --------
    >>> items_of_width(0.03, 0.06, 200, 1000)
    59
    """
    if wanted <= 0 or not math.isfinite(half):
        return n_items
    if half <= 0:
        return n
    each = 1 / n_items + (1 / n - 1 / n_items) * (wanted / half) ** 2
    return min(n_items, max(1, math.ceil(1 / each - 1e-9)))
