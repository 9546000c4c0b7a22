"""Intervals on the user's scale."""

from collections.abc import Iterable
from typing import Self

from pydantic import BaseModel, ConfigDict


class Interval(BaseModel):
    """A range on the user's scale."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    low: float
    high: float

    @classmethod
    def between(cls, ends: Iterable[float]) -> Self:
        """Return the interval between two ends in any order."""
        low, high = sorted(map(float, ends))
        return cls(low=low, high=high)


class RankInterval(BaseModel):
    """The ranks at the ends of a score's interval; 1 is best."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    best: int
    worst: int


class RandomSampling(BaseModel):
    """Plain random sampling of as many items.

    Attributes
    ----------
    half_width, expected_error
        Half the width of its interval, at the level and the score of the estimate, and its mean
        absolute error there.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    half_width: float
    expected_error: float
