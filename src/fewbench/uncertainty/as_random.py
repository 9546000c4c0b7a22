"""What random sampling would give: the yardstick of every method's errors and intervals."""

import math
from dataclasses import dataclass
from functools import cached_property

from fewbench.scores import Scores
from fewbench.uncertainty.intervals import student
from fewbench.uncertainty.sampling import interval_at, sampling_effect, standard_error


@dataclass(frozen=True, eq=False)
class AsRandom:
    """Plain random sampling on a table of sources.

    Parameters
    ----------
    scores : Scores
        The sources.
    budget : int
        As for the evaluation: the number of items at which scores are compared with right and wrong
        ones.
    """

    scores: Scores
    budget: int

    @cached_property
    def effect(self) -> float:
        """Variance over that of scores of 0 and 1 (see `sampling_effect`)."""
        return sampling_effect(self.scores, self.budget)

    def error(self, score: float, n: int) -> float:
        """Return the standard error of n random items."""
        return standard_error(score, n, self.scores.n_items) * math.sqrt(self.effect)

    def interval(self, score: float, n: int, level: float) -> tuple[float, float]:
        """Return the interval of n random items around a score."""
        return interval_at(score, n, self.scores.n_items, level, self.effect)

    def half(self, score: float, n: int, level: float) -> float:
        """Return the half width for n random items: by Student's t or exact, the larger one."""
        low, high = self.interval(score, n, level)
        return max(student(self.error(score, n), max(n - 1.0, 1.0))(level), (high - low) / 2)
