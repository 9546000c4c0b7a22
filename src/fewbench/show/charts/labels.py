"""Where labels stand that must not touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def spread(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Return centers for labels of given sizes, moved as little as possible so that none touch.

    Neighbors that would touch are joined into blocks, and a block sits at the mean of what its
    members asked for (least squares), kept inside ``[low, high]`` when there is room.

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
