"""Numbers to positions: linear and logarithmic scales, round ticks, label spacing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """A map from a data range to a range of drawing units.

    Parameters
    ----------
    low, high : float
        The data range.  With ``log`` both must be positive.
    start, stop : float
        Where `low` and `high` are drawn; ``start > stop`` draws upwards.
    log : bool
        Space the values by their ratio instead of their difference.
    """

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Where `value` is drawn."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        # A range of one value (a single budget, say) is drawn in the middle.
        share = 0.5 if high == low else (value - low) / (high - low)
        return self.start + share * (self.stop - self.start)

    def clamp(self, value: float) -> float:
        """Position of `value`, moved to the nearer end when it lies outside the range."""
        low, high = sorted((self.low, self.high))
        return self(min(max(value, low), high))


def nice_step(span: float, count: int) -> float:
    """The smallest of 1, 2, 2.5, 5 x 10^k that cuts `span` into at most `count` steps.

    >>> nice_step(9.3, 5)
    2.0
    """
    if not span > 0:
        return 1.0
    raw = span / max(count, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    # The tolerance keeps 0.30000000000000004 from being taken for more than 0.3.
    return next(m * power for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * power >= raw * (1 - 1e-9))


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round values inside ``[low, high]``, about `count` of them.

    >>> nice_ticks(0, 9.3)
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    step = nice_step(high - low, count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 10) + 0.0 for i in range(first, last + 1)]


def nice_range(low: float, high: float, count: int = 5) -> tuple[float, float]:
    """`low` and `high` moved outwards to round values.

    >>> nice_range(0.12, 0.93)
    (0.0, 1.0)
    """
    step = nice_step(high - low, count)
    start, stop = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return round(start * step, 10) + 0.0, round(max(stop, start + 1) * step, 10) + 0.0


def spread(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Centres for labels of given sizes, moved as little as possible so that none touch.

    Neighbours that would touch are joined into blocks, and a block sits at the mean of
    what its members asked for (least squares), kept inside ``[low, high]`` when there is room.

    >>> spread([10, 11, 50], [12, 12, 12], low=0, high=100)
    [6.0, 18.0, 50.0]
    """
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], i))
    blocks: list[_Block] = []
    for i in order:
        # A label asks for its upper edge, less what the members above it take up.
        blocks.append(_Block(wanted[i] - sizes[i] / 2, [i], sizes[i]))
        while len(blocks) > 1 and blocks[-2].bottom(low, high) > blocks[-1].top(low, high):
            below, above = blocks.pop(), blocks[-1]
            above.asked += below.asked - len(below.members) * above.size
            above.members += below.members
            above.size += below.size
    placed = [0.0] * len(order)
    for block in blocks:
        edge = block.top(low, high)
        for i in block.members:
            placed[i] = edge + sizes[i] / 2
            edge += sizes[i]
    return placed


@dataclass
class _Block:
    """Labels that touch: the sum of the upper edges asked for, who they are, their height."""

    asked: float
    members: list[int]
    size: float

    def top(self, low: float, high: float) -> float:
        return max(min(self.asked / len(self.members), high - self.size), low)

    def bottom(self, low: float, high: float) -> float:
        return self.top(low, high) + self.size
