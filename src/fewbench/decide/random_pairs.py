"""What plain random sampling would give for a difference, and how many items decide it."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from fewbench._json import Frozen
from fewbench.decide.differences import if_paired, looks_factor
from fewbench.decide.joint_estimate import JointEstimate
from fewbench.decide.operands import Operand
from fewbench.uncertainty.contrast import Contrast
from fewbench.uncertainty.intervals import Uncertainty

MOST = 100.0
"""Beyond this multiple of the items, a number of questions is not informative."""


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


def random_pairs(joint: JointEstimate, level: float) -> RandomPairs | None:
    """Return what random sampling would give for the first two models.

    The variance is that of the joint estimate, for the models in general. None if nothing was run
    for their difference, if there are fewer than two sources, or if a pack holds their answers to
    the chosen items only.
    """
    from scipy.special import ndtri

    made, scores = joint.full_difference(0, 1), joint.scores
    whole, n_items = scores.whole, scores.n_items
    if made.is_known or whole.n_models < 2 or whole.chosen is not None:
        return None
    n = min(len(side.items) for side in joint.sides if not side.is_known)
    of_models = replace(joint, fixed_items=False).full_difference(0, 1).questions
    assert of_models is not None
    normal, at_end = float(ndtri(0.5 + level / 2)), math.sqrt(of_models.variance)
    half = normal * at_end * math.sqrt(max(n_items / n - 1, 0.0))
    of_questions = 0.0 if joint.fixed_items else normal * at_end
    low, high = made.interval(level)
    left = math.sqrt(max(((high - low) / 2) ** 2 - of_questions**2, 0.0))
    return RandomPairs(
        items=n,
        half_width=scores.scale.span * math.hypot(half, of_questions),
        items_needed=items_of_width(half, left, n, n_items),
    )


def items_needed(
    half: float,
    distance: float,
    n: int,
    n_items: int,
    wider: Callable[[int], float] | None = None,
    of_questions: float = 0.0,
) -> int | None:
    """Return how many items make a half width as small as a distance, more than the n so far.

    Half widths shrink with sqrt(1/n - 1/N), without the part that does not hang on items not run.
    None if that part alone is as wide: then even all items would not do.

    Parameters
    ----------
    half : float
        The half width that the items not run leave, at one look.
    distance : float
    n, n_items : int
    wider : callable, optional
        For several looks: how much wider the interval is than that of one look, by the number of
        items.
    of_questions : float
        The half width that is left after all items, at one look.

    Examples
    --------
    >>> items_needed(0.06, 0.03, 50, 1000)
    174
    >>> [items_needed(0.06, 0.03, 50, 1000, of_questions=left) for left in (0.02, 0.04)]
    [275, None]
    """
    at_end = of_questions if wider is None else of_questions * wider(n_items)
    if of_questions and at_end >= distance:
        return None
    if wider is None:
        left = math.sqrt(distance**2 - of_questions**2)
        return min(n_items, max(n + 1, items_of_width(half, left, n, n_items)))

    def decides(items: int) -> bool:
        shrunk = math.sqrt((1 / items - 1 / n_items) / (1 / n - 1 / n_items))
        return wider(items) * math.hypot(half * shrunk, of_questions) <= distance

    return bisect_left(range(n_items), True, lo=n + 1, key=decides)


class ToDecide(Frozen):
    """What would decide a contrast, if it stays as it is.

    Attributes
    ----------
    items_needed, items_if_known : int or None
        About how many items, and how many if the second score were known.
    is_decidable : bool
        Whether all items would decide it.
    questions_needed : int or None
        If not: about how many questions like these would. None if they are more than `MOST` times
        as many as there are items.
    """

    items_needed: int | None = None
    items_if_known: int | None = None
    is_decidable: bool = True
    questions_needed: int | None = None


def items_to_decide(
    made: Contrast, sides: tuple[Operand, Operand], level: float, distance: float, n_items: int
) -> ToDecide:
    """Return what would decide a contrast.

    `distance` is how far the difference is above the bound that it must clear, or below it if
    negative.
    """
    scores = [side for side in (made.one, made.other) if isinstance(side, Uncertainty)]
    if sum(score.open for score in scores) >= abs(distance):
        return ToDecide()  # what is open would first have to be known
    n = min((len(side.items) for side in sides if not side.is_known), default=0)
    is_fixed = made.questions is None
    looks = None
    if made.wider != 1.0:
        looks = partial(looks_factor, sides, level, fixed_items=is_fixed)
    of_questions = 0.0
    if made.questions is not None:
        questions = made.questions
        if questions.answers is not None:  # of a sample: then of all
            questions = replace(questions, answers=n_items)
        below, above = questions.reaches(level)
        of_questions = below if distance > 0 else above
        at_end = of_questions * (1.0 if looks is None else looks(n_items))
        if at_end >= abs(distance):
            times = (at_end / abs(distance)) ** 2 if distance else math.inf
            needed = math.ceil(times * n_items) if times <= MOST else None
            return ToDecide(is_decidable=False, questions_needed=needed)
    if not n:
        return ToDecide()
    pairs = if_paired(made, *sides)
    half = pairs.half_of_items(level)
    if pairs is made:  # exact intervals are longer towards the middle of the scale
        low, high = made.ends_of_items(level)
        half = (made.difference - low if distance > 0 else high - made.difference) / made.wider
    needed = items_needed(half, abs(distance), n, n_items, looks, of_questions)
    one, other = made.one, made.other
    if not isinstance(one, Uncertainty) or not isinstance(other, Uncertainty):
        return ToDecide(items_needed=needed)
    alone, n = sides[:1], len(sides[0].items)
    left = Contrast(one, other.estimate)
    wider = 1.0 if looks is None else looks_factor(alone, level, fixed_items=is_fixed)
    if replace(left, wider=wider, questions=made.questions).half(level) >= made.half(level):
        return ToDecide(items_needed=needed)
    looks = None if looks is None else partial(looks_factor, alone, level, fixed_items=is_fixed)
    half = left.half_of_items(level)
    if_known = items_needed(half, abs(distance), n, n_items, looks, of_questions)
    return ToDecide(items_needed=needed, items_if_known=if_known)


def items_of_width(half: float, wanted: float, n: int, n_items: int) -> int:
    """Return how many items give a wanted half width if n of them give this one.

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
