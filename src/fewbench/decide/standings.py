"""The order of several scores: ranks with ranges, ties, which may be the best, and P(best)."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.decide.allocation import Outlook, chances_of_top
from fewbench.decide.joint import Errors, surely_above
from fewbench.decide.joint_estimate import JointEstimate
from fewbench.decide.rank_result import Foremost, Place, Ranked
from fewbench.evaluation.interval import Interval
from fewbench.scores import Scale
from fewbench.uncertainty.bounds import EXACT


@dataclass(frozen=True, eq=False)
class Standings:
    """Scores of several models in [0, 1], from the best to the worst, and their differences.

    Parameters
    ----------
    names : list of str
    estimates : ndarray, shape (models,)
    intervals : list of (float, float) or None
        For each score by itself, or None if too little is known about a task.
    items_run : ndarray of int, shape (models,)
    errors, p_values : ndarray, shape (models, models)
        Standard errors of the differences, infinite if unknown, and two-sided p values, each by
        itself.
    is_open : ndarray of bool, shape (models,)
        Whether nothing is known about a part of the full score.
    level : float
    """

    names: list[str]
    estimates: FloatArray
    intervals: list[tuple[float, float] | None]
    items_run: IntArray
    errors: FloatArray
    p_values: FloatArray
    is_open: BoolArray
    level: float

    @classmethod
    def of(cls, joint: JointEstimate, level: float, column: int = 0) -> "Standings":
        """Return the standings by a score; models of equal scores are in the order of names."""
        estimates, names = joint.estimates(column), [side.name for side in joint.sides]
        rounded = np.round(estimates, EXACT)
        order = sorted(range(len(names)), key=lambda at: (-rounded[at], names[at]))
        errors, p_values = joint.errors(column)
        pairs = np.ix_(order, order)
        return cls(
            [names[at] for at in order],
            estimates[order],
            [joint.interval(at, level, column) for at in order],
            joint.items_run(column)[order],
            errors[pairs],
            p_values[pairs],
            np.array([joint.is_open(at) for at in order]),
            level,
        )

    @cached_property
    def _distribution(self) -> Errors:
        """The errors of all scores together."""
        return Errors.from_matrix(self.errors)

    @cached_property
    def surely_above(self) -> BoolArray:
        """Whether the row's model is better than the column's, all pairs together."""
        return surely_above(self.estimates, self._distribution, self.p_values, self.level)

    @cached_property
    def chances(self) -> FloatArray:
        """Probability of each model to be the best."""
        return chances_of_top(self.estimates, self.errors, 1, self._distribution)

    def chosen(self, scale: Scale, at: int = 0) -> Foremost:
        """Return what is expected of the first model, or this one, chosen for its score."""
        from scipy.special import ndtri

        ends = self.intervals[at]
        assert ends is not None  # a full score is never unknown
        widths = [high - low for low, high in filter(None, self.intervals)]
        own = np.array(widths) / (2 * ndtri(0.5 + self.level / 2))
        outlook = Outlook.of(self.estimates, self.errors, own=own, distribution=self._distribution)
        # What is open may be anything: that models are alike does not narrow it.
        outlook = replace(outlook, gains=np.where(self.is_open, 0.0, outlook.gains))
        score = float(self.estimates[at])
        found = outlook.scores[at], *outlook.interval(at, score, ends, self.level)
        return Foremost.of(self.names[at], found, scale)

    def places(self, scale: Scale) -> tuple[Place, ...]:
        """Return each model's place, with scores on the user's scale."""
        rounded = np.round(self.estimates, EXACT)
        ranks = 1 + (rounded[:, None] < rounded).sum(axis=1)
        above = self.surely_above
        return tuple(
            Place(
                target=name,
                score=float(scale.from_unit(self.estimates[at])),
                interval=ends and Interval.between(scale.from_unit(ends)),
                rank=int(ranks[at]),
                rank_low=1 + int(above[:, at].sum()),
                rank_high=len(self.names) - int(above[at].sum()),
                chance_best=float(self.chances[at]),
                may_be_best=not above[:, at].any(),
                items_run=int(self.items_run[at]),
            )
            for at, (name, ends) in enumerate(zip(self.names, self.intervals, strict=True))
        )

    def ranked(self, scale: Scale, top: int) -> tuple[Ranked, ...]:
        """Return each model's place, its ties, and how likely it is among the best `top`."""
        among_top = self.chances
        if top > 1:
            among_top = chances_of_top(self.estimates, self.errors, top, self._distribution)
        tied = ~(self.surely_above | self.surely_above.T)
        np.fill_diagonal(tied, val=False)
        return tuple(
            Ranked(
                **dict(place),
                chance_top=float(among_top[at]),
                tied_with=tuple(self.names[other] for other in np.flatnonzero(tied[at])),
            )
            for at, place in enumerate(self.places(scale))
        )
