"""Plain paired sampling: what it would give with as many items, and McNemar's test."""

import math

import numpy as np
from pydantic import BaseModel, ConfigDict

from fewbench._blocks import by_rows
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
    items_paired, items_unpaired : int
        How many items each of these designs needs for an interval as narrow as the one that was
        found.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    items: int
    paired: float
    unpaired: float
    items_paired: int
    items_unpaired: int


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


def plain_sampling(contrast: Contrast, level: float, half: float) -> Plain | None:
    """Return what random sampling would give; None if nothing was run for this difference.

    `half` is the half width that was found, in [0, 1].
    """
    from scipy.special import ndtri

    scores, n_items = contrast.scores, contrast.scores.n_items
    if not contrast.open:
        return None
    n = min(len(side.items) for side in contrast.open)
    z, left = float(ndtri(0.5 + level / 2)), max(0.0, 1 / n - 1 / n_items)
    apart = sum(_variance(float(side.estimates[0]), scores) for side in contrast.open)
    span = scores.scale.high - scores.scale.low
    paired, unpaired = z * contrast.paired_error(n), z * math.sqrt(apart * left)
    return Plain(
        items=n,
        paired=span * paired,
        unpaired=span * unpaired,
        items_paired=items_of_width(paired, half, n, n_items),
        items_unpaired=items_of_width(unpaired, half, n, n_items),
    )


def _variance(score: float, scores: Scores) -> float:
    """Return the variance of a model's scores over the items, given its full score."""
    binary = score * (1 - score)
    if scores.is_binary:
        return binary
    full, variances = by_rows(
        scores.filled_cells, lambda part: np.stack([part.mean(axis=1), part.var(axis=1)], axis=1)
    ).T
    return binary * float(variances.mean() / max((full * (1 - full)).mean(), 1e-12))


def mcnemar(first: FloatArray, second: FloatArray) -> McNemar:
    """Return McNemar's exact test of right and wrong answers to the same items.

    Examples
    --------
    >>> import numpy as np
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
    return max(n, items_of_width(half, distance, n, n_items))


def items_of_width(half: float, wanted: float, n: int, n_items: int) -> int:
    """Return how many items give another half width, if n of them give this one.

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
