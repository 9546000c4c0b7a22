"""The order of several scores: ranks with ranges, ties, which may be the best, and P(best)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.algorithms.best_of_many import Beliefs
from fewbench.decide.allocation import beliefs_of, chances_of_top
from fewbench.decide.joint_estimate import JointEstimate
from fewbench.decide.rank_result import Foremost, Place, Ranked
from fewbench.decide.simultaneous import surely_above
from fewbench.evaluation.interval import Interval
from fewbench.scores import Scale
from fewbench.uncertainty.bounds import EXACT

MOST = 100
"""Models around a place whose scores are drawn together: others are surely above or below it."""


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
    def surely_above(self) -> BoolArray:
        """Whether the row's model is better than the column's, all pairs together."""
        return surely_above(self.estimates, self.errors, self.p_values, self.level)

    @cached_property
    def chances(self) -> FloatArray:
        """Probability of each model to be the best."""
        return self.chances_of_top(1)

    def chances_of_top(self, top: int) -> FloatArray:
        """Return the probability of each model to be among the best `top`."""
        if len(self.names) == 2:
            # One difference does not tell how far models lie apart: the answer is that of `versus`.
            better = 1 - self.p_values[0, 1] / 2
            return np.array([better, 1 - better])
        near = self._near(top - 1)
        chances = np.zeros(len(self.names))
        chances[: near.start] = 1.0
        chances[near] = chances_of_top(self._beliefs(near), top - near.start)
        return chances

    def _near(self, at: int) -> slice:
        """Return the places about one."""
        start = max(min(at - MOST // 2, len(self.names) - MOST), 0)
        return slice(start, start + MOST)

    def _beliefs(self, near: slice) -> Beliefs:
        if near.start not in self._believed:
            about = self.estimates[near], self.errors[near, near]
            found = beliefs_of(*about, self._own[near], self.items_run[near])
            self._believed[near.start] = found
        return self._believed[near.start]

    @cached_property
    def _believed(self) -> dict[int, Beliefs]:
        return {}

    @cached_property
    def _own(self) -> FloatArray:
        """Standard errors of the scores themselves."""
        from scipy.special import ndtri

        widths = [1.0 if ends is None else ends[1] - ends[0] for ends in self.intervals]
        return np.asarray(np.array(widths) / (2 * ndtri(0.5 + self.level / 2)))

    def chosen(self, scale: Scale, at: int = 0) -> Foremost:
        """Return what is expected of the first model, or this one, chosen for its score."""
        ends, near = self.intervals[at], self._near(at)
        assert ends is not None  # a full score is never unknown
        beliefs, place, score = self._beliefs(near), at - near.start, float(self.estimates[at])
        expected, narrower = float(beliefs.scores[place]), 1.0
        # What is open may be anything: that models are alike does not narrow it.
        if not self.is_open[at] and self._own[at] > 0:
            narrower = min(float(beliefs.errors[place] / self._own[at]), 1.0)
        low = expected - narrower * max(score - ends[0], 0.0)
        high = expected + narrower * max(ends[1] - score, 0.0)
        return Foremost.of(self.names[at], (expected, max(low, 0.0), min(high, 1.0)), scale)

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
        among_top = self.chances if top == 1 else self.chances_of_top(top)
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
