"""Plain paired sampling: what it would give with as many items, and McNemar's test."""

import math

from pydantic import BaseModel, ConfigDict

from fewbench._types import FloatArray
from fewbench.decide.contrast import Contrast
from fewbench.scores import Scores


class Plain(BaseModel):
    """What plain random sampling of as many items would give for the difference.

    Attributes
    ----------
    items : int
    paired, unpaired : float
        Half widths of its interval if both are run on the same items, and if each is run on items
        of its own; on the scale of the scores.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    items: int
    paired: float
    unpaired: float


class McNemar(BaseModel):
    """McNemar's exact test on a random sample that both ran.

    Attributes
    ----------
    only_a, only_b : int
        Items that only A, and only B, answered right.
    p_value : float
        Two-sided.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    only_a: int
    only_b: int
    p_value: float


def plain_sampling(contrast: Contrast, level: float) -> Plain | None:
    """Return what random sampling would give; None if nothing was run for this difference."""
    from scipy.special import ndtri

    scores, n_items = contrast.scores, contrast.scores.n_items
    if not contrast.open:
        return None
    n = min(len(side.items) for side in contrast.open)
    z, left = float(ndtri(0.5 + level / 2)), max(0.0, 1 / n - 1 / n_items)
    apart = sum(_variance(float(side.estimates[0]), scores) for side in contrast.open)
    span = scores.scale.high - scores.scale.low
    return Plain(
        items=n,
        paired=span * z * contrast.paired_error(n),
        unpaired=span * z * math.sqrt(apart * left),
    )


def _variance(score: float, scores: Scores) -> float:
    """Return the variance of a model's scores over the items, given its full score."""
    binary = score * (1 - score)
    if scores.is_binary:
        return binary
    full = scores.filled.mean(axis=1)
    return binary * float(scores.filled.var(axis=1).mean() / max((full * (1 - full)).mean(), 1e-12))


def mcnemar(first: FloatArray, second: FloatArray) -> McNemar:
    """Return McNemar's exact test of right and wrong answers to the same items.

    Examples
    --------
    >>> found = mcnemar(np.array([1.0, 1, 1, 1, 1, 0]), np.array([0.0, 0, 0, 0, 0, 0]))
    >>> found.only_a, found.only_b, found.p_value
    (5, 0, 0.0625)
    """
    from scipy.stats import binomtest

    only_a, only_b = int((first > second).sum()), int((second > first).sum())
    p = 1.0 if only_a + only_b == 0 else float(binomtest(only_a, only_a + only_b, 0.5).pvalue)
    return McNemar(only_a=only_a, only_b=only_b, p_value=p)


def items_needed(half: float, distance: float, n: int, n_items: int) -> int:
    """Return how many items make a half width as small as a distance.

    Half widths shrink with sqrt(1/n - 1/N).

    Examples
    --------
    >>> items_needed(0.06, 0.03, 50, 1000)
    174
    """
    if distance <= 0 or not math.isfinite(half):
        return n_items
    if half <= distance:
        return n
    each = 1 / n_items + (1 / n - 1 / n_items) * (distance / half) ** 2
    return min(n_items, math.ceil(1 / each - 1e-9))
