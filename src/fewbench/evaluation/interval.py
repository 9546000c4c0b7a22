"""Intervals on the user's scale."""

from collections.abc import Iterable
from typing import Self

from fewbench._json import Frozen


class Interval(Frozen):
    """A range on the user's scale."""

    low: float
    high: float

    @classmethod
    def between(cls, ends: Iterable[float]) -> Self:
        """Return the interval between two ends in any order."""
        low, high = sorted(map(float, ends))
        return cls(low=low, high=high)


class RankInterval(Frozen):
    """The ranks at the ends of a score's interval; 1 is best."""

    best: int
    worst: int


class GroupScore(Frozen):
    """The estimated score of a group of tasks.

    Attributes
    ----------
    score, interval
        None where too little is known.
    items_run
        Number of items run of its tasks.
    rank
        Rank among the sources and the target, or None if unknown.
    parts
        The names of the tasks and groups directly in it.
    """

    score: float | None
    interval: Interval | None
    items_run: int
    rank: int | None = None
    parts: tuple[str, ...]


class RandomSampling(Frozen):
    """Random sampling of as many items without source models, from 60 on spread over the tasks.

    Attributes
    ----------
    half_width, expected_error
        Half the width of its interval, at the level and the score of the estimate, and its mean
        absolute error there.
    """

    half_width: float
    expected_error: float
