"""The interval of a difference if one or both models may be beyond the sources.

Its ends are those of pairs of sources of which one or both were beyond weaker sources.
"""

import math
from functools import cached_property

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.decide.sides import Side
from fewbench.evaluation.intervals import LEAST_CHANCE, Frontier
from fewbench.evaluation.past_errors import PastErrors, equal_weights

LIKELY = 0.5
"""Probability of being beyond sources that show nothing of errors there, from which no interval is
given: verdicts would be wrong too often."""


class Beyond:
    """Cases in which one or both sides are beyond the sources.

    Parameters
    ----------
    one, other : Side
    unmeasured : list of str
        Extended by the names of sides that are beyond sources that show nothing of errors there.
    """

    def __init__(self, one: Side, other: Side, unmeasured: list[str]) -> None:
        self.one, self.other, self.unmeasured = one, other, unmeasured
        self.open = [side for side in (one, other) if not side.is_known]

    @cached_property
    def places(self) -> dict[Side, tuple[float, float, Frontier]]:
        """Probability to be beyond the sources, distance and frontier, where there is one."""
        found: dict[Side, tuple[float, float, Frontier]] = {}
        for side in self.open:
            evaluation = side.evaluation
            if evaluation is None or evaluation.method.plain_sampling:
                continue
            chance, distance = side.placed
            if chance < LEAST_CHANCE:
                continue
            frontier = evaluation.error_model.frontier
            if frontier is None:
                if chance >= LIKELY:
                    self.unmeasured.append(side.name)
            elif (weight := frontier.weight(chance)) > 0:
                found[side] = (weight, distance, frontier)
        return found

    def cases(
        self, level: float, middle: float, unit: float
    ) -> list[tuple[float, tuple[float, float]]]:
        """Return weights, and ends of the difference, of the cases with a side beyond.

        `middle` is the difference, and `unit` its unit without the slack of an earlier look: the
        ends are stretched by it later.
        """
        cases = []
        weight = {side: self.places.get(side, (0.0,))[0] for side in self.open}
        if len(self.open) == 1:
            (side,) = self.open
            if weight[side] > 0:
                _, distance, frontier = self.places[side]
                spread = float(side.spreads[0])
                below, above = (spread * end for end in frontier.ends(distance, level))
                if side is self.other:
                    below, above = -above, -below
                cases.append((weight[side], (middle + below, middle + above)))
            return cases
        # The two are compared because they are close: if one is beyond, likely both are.
        a, b = weight[self.one], weight[self.other]
        if (both := min(a, b)) > 0:
            half = unit * _pairs_beyond(self.places[self.one][2].past, level)
            # Errors follow the distance beyond the sources; the further side's may be larger.
            first, second = (self._trend(side, level) for side in (self.one, self.other))
            below, above = min(first - second, 0.0) - half, max(first - second, 0.0) + half
            cases.append((both, (middle + below, middle + above)))
        for side, only in ((self.one, a - both), (self.other, b - both)):
            if only > 0:
                below, above = self._one_beyond(side, level)
                if side is self.other:
                    below, above = -above, -below
                cases.append((only, (middle + below, middle + above)))
        return cases

    def _trend(self, side: Side, level: float) -> float:
        """Return the error that the frontier expects at a side's distance beyond the sources."""
        _, distance, frontier = self.places[side]
        return float(side.spreads[0]) * sum(frontier.ends(distance, level)) / 2

    def _one_beyond(self, side: Side, level: float) -> tuple[float, float]:
        """Ends of the error of a side beyond the sources minus that of one inside.

        The two were not measured together: their half widths are added as independent errors.
        """
        other = self.other if side is self.one else self.one
        _, distance, frontier = self.places[side]
        low, high = (float(side.spreads[0]) * end for end in frontier.ends(distance, level))
        inside = _conformal(np.abs(frontier.inside.relative), frontier.inside.groups, level)
        half = math.hypot((high - low) / 2, inside * float(other.spreads[0]))
        return (low + high) / 2 - half, (low + high) / 2 + half


def _pairs_beyond(past: PastErrors, level: float) -> float:
    """Return the conformal quantile of differences of sources that were all beyond weaker ones.

    Over all pairs, near or not: the further beyond, the more errors differ.
    """
    fits = np.equal.outer(past.step, past.step) & ~np.equal.outer(past.groups, past.groups)
    i, j = np.nonzero(np.triu(fits))
    unit = np.hypot(past.spreads[i], past.spreads[j])
    apart = np.abs(past.errors[i] - past.errors[j])
    return _conformal(
        np.divide(apart, unit, np.zeros(len(i)), where=unit > 0), past.groups[i], level
    )


def _conformal(sizes: FloatArray, groups: IntArray, level: float) -> float:
    """Return the quantile at a level, groups weighted equally; the largest size at most."""
    if not len(sizes):
        return math.inf
    n_groups = len(np.unique(groups))
    order = np.argsort(sizes, kind="stable")
    reached = np.cumsum(equal_weights(groups)[order]) >= level * (1 + 1 / n_groups) - 1e-12
    return float(sizes[order][reached.argmax()] if reached.any() else sizes.max())
