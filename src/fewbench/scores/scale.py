"""The user's scale of scores, and conversion to [0, 1] and back."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fewbench._types import FloatArray
from fewbench.errors import ScoresError


@dataclass(frozen=True)
class Scale:
    """The range of scores, as stated by the user.

    Inside fewbench scores are in [0, 1], 1 being best. Estimates are reported on this scale.

    Parameters
    ----------
    low, high : float
        The smallest and the largest possible score.
    lower_is_better : bool
        Whether `low` is the best score, as for error rates.

    Raises
    ------
    ScoresError
        If the bounds are not finite or not in order.

    Examples
    --------
    >>> percent = Scale(0, 100)
    >>> float(percent.to_unit(25)), float(percent.from_unit(0.25))
    (0.25, 25.0)
    >>> float(Scale(0, 1, lower_is_better=True).to_unit(0.1))
    0.9
    """

    low: float = 0.0
    high: float = 1.0
    lower_is_better: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.high - self.low) and self.low < self.high):
            raise ScoresError(
                f"a score range needs two finite numbers in order, not {self.low}..{self.high}",
                hint="pass the smallest and the largest possible score, such as 0,100",
            )

    def to_unit(self, scores: ArrayLike) -> FloatArray:
        """Convert scores of any shape from this scale to [0, 1]; NaN stays NaN."""
        unit = (np.asarray(scores, dtype=np.float64) - self.low) / (self.high - self.low)
        return np.asarray(1.0 - unit if self.lower_is_better else unit)

    def from_unit(self, scores: ArrayLike) -> FloatArray:
        """Convert scores of any shape from [0, 1] to this scale."""
        unit = np.asarray(scores, dtype=np.float64)
        unit = 1.0 - unit if self.lower_is_better else unit
        return np.asarray(self.low + unit * (self.high - self.low))

    def interval_from_unit(self, low: float, high: float) -> tuple[float, float]:
        """Convert an interval to this scale, its ends in order."""
        ends = sorted(float(end) for end in self.from_unit([low, high]))
        return ends[0], ends[1]

    @property
    def is_unit(self) -> bool:
        """Whether this is [0, 1] with 1 as the best."""
        return self == Scale()
