"""The difference of two full scores: its interval, and the probability of its sign.

The unit of a difference is sqrt(a² + b²), with a and b the two estimates' own standard errors. The
interval is that unit times the conformal quantile of the same ratio over pairs of held-out sources
(`residuals`), so it contains how far errors move together. For a target that may be beyond the
sources, the ends move towards those of pairs of which one or both were beyond weaker sources. Of
two that ran the same items, chosen for their difference, these pairs ran the same items, too; and
the interval is then at least as wide as that of paired random sampling.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fewbench._names import counted
from fewbench._types import FloatArray
from fewbench.decide.beyond import LIKELY, Beyond
from fewbench.decide.disagreement import disagreement, paired_error
from fewbench.decide.held_out import measure
from fewbench.decide.residuals import (
    HeldOut,
    Residuals,
    looks,
    of_models,
    of_pairs,
    over_sampling,
    slack,
)
from fewbench.decide.sides import Side
from fewbench.evaluation.intervals import (
    ALIKE,
    LEAST_CHANCE,
    SAID_FROM,
    TINY,
)
from fewbench.evaluation.opening import FEWEST
from fewbench.evaluation.sampling import betting_interval, check_level
from fewbench.scores import Scores

ROUNDING = 1e-12
"""Differences below this are of sums in another order: the scores are equal."""
OFTEN, BEYOND = 1.09, 0.35
"""A sequential interval is wider by the factor if one looks after every answer: of normal errors,
10 % of wrong verdicts at the looks would be 15 %. Beyond the budget it is wider by the answers'
ratio to the power: looks at each doubling then add 1 %."""
STEP = 0.8
"""The method is judged at the budget, or at the budget times a power of this."""


@dataclass(frozen=True, eq=False)
class Judged:
    """An interval of a difference in [-1, 1], how it was made, and what it rests on.

    `kind` is known (no error), betting, cross-fitted, frontier or bounds.
    """

    low: float
    high: float
    kind: str
    units: int | None
    warnings: tuple[str, ...] = ()


class Contrast:
    """Difference of two sides, first minus second, in [-1, 1] with 1 being best.

    Parameters
    ----------
    one, other : Side
    scores : Scores
        The sources of both.
    sequential : bool
        Whether the interval must hold at all looks together, so that one may stop at any of them.
    often : bool
        Whether one may look after every answer, not only once at each look.
    held : dict, optional
        Errors that were measured for other contrasts; shared and extended.
    """

    def __init__(
        self,
        one: Side,
        other: Side,
        scores: Scores,
        sequential: bool,
        held: dict[tuple[object, ...], HeldOut] | None = None,
        often: bool = False,
    ) -> None:
        self.one, self.other, self.scores = one, other, scores
        self._measured = {} if held is None else held
        self._unmeasured: list[str] = []  # beyond the sources, who show nothing of errors there
        self._beyond = Beyond(one, other, self._unmeasured)
        self.sequential, self._often = sequential, often
        apart = one.estimates - other.estimates
        self.differences = np.where(np.abs(apart) < ROUNDING, 0.0, apart)
        self.units: FloatArray = np.hypot(
            np.where(one.is_known, 0.0, one.spreads), np.where(other.is_known, 0.0, other.spreads)
        )
        self.open = [side for side in (one, other) if not side.is_known]
        if sequential:
            self.units = self.units * self._slack

    @property
    def difference(self) -> float:
        """The difference of the full scores."""
        return float(self.differences[0])

    @cached_property
    def common(self) -> tuple[FloatArray, FloatArray]:
        """Both sides' scores on the items that both answered, in order of the items."""
        items = np.intersect1d(self.one.items, self.other.items)
        found = []
        for side in (self.one, self.other):
            order = np.argsort(side.items)
            found.append(side.answers[order][np.searchsorted(side.items[order], items)])
        return found[0], found[1]

    @cached_property
    def is_paired_sample(self) -> bool:
        """Whether both were run on the same simple random sample and scored by its mean."""
        if not self.open or self.scores.average != "micro":
            return False
        plain = all(side.evaluation.method.plain_sampling for side in self.open if side.evaluation)
        n = len(self.common[0])
        return plain and n > 1 and all(len(side.items) == n for side in self.open)

    @cached_property
    def is_together(self) -> bool:
        """Whether both ran the same items, chosen for their difference."""
        evaluation = self.one.evaluation
        return (
            len(self.open) == 2
            and evaluation is not None
            and evaluation is self.other.evaluation
            and evaluation.method.together > 1
        )

    @property
    def keeps_pairs(self) -> bool:
        """Whether both ran the same items, as paired sampling does."""
        return self.is_together or self.is_paired_sample

    def paired_error(self, n: int) -> float:
        """Return the standard error that n random items would give, run by both."""
        return paired_error(self._disagreement, self.difference, n, self.scores.n_items)

    @cached_property
    def _disagreement(self) -> float:
        items = np.intersect1d(self.one.items, self.other.items)
        estimates = float(self.one.estimates[0]), float(self.other.estimates[0])
        return disagreement(items, *self.common, estimates, self.scores)

    @cached_property
    def looks(self) -> tuple[int, ...]:
        """Numbers of answers that a sequential decision is calibrated at, of the longer side."""
        budgets = [side.evaluation.provenance.budget for side in self.open if side.evaluation]
        return looks(max(budgets)) if budgets and self.sequential else ()

    @cached_property
    def residuals(self) -> Residuals:
        """Errors on held-out sources, in units of their spread."""
        return self._residuals([self._held(side) for side in self.open])

    def _residuals(self, held: list[HeldOut]) -> Residuals:
        inside = {id(one): one.only(beyond=False).eased() for one in held}
        if len(held) == 1:
            return of_models(inside[id(held[0])])
        return of_pairs(inside[id(held[0])], inside[id(held[1])], self.difference)

    def _stretch(self, level: float) -> float:
        """How much wider an interval must be for all looks together than for the last one."""
        if not self.sequential:
            return 1.0
        last = {id(one): one.last() for one in map(self._held, self.open)}
        once = self._residuals([last[id(self._held(side))] for side in self.open])
        (together, _, _), (alone, _, _) = self.residuals.quantile(level), once.quantile(level)
        return self._slack * together / alone if 0 < alone <= together < math.inf else 1.0

    @cached_property
    def _slack(self) -> float:
        """How much wider the interval is at this look than at the last one."""
        found = 1.0
        for side in self.open:
            if side.evaluation is not None:
                every = looks(side.evaluation.provenance.budget)
                reached = sum(n <= len(side.items) for n in every)
                found = max(found, float(slack(len(every))[max(0, reached - 1)]))
        return found * self._unplanned

    @cached_property
    def _unplanned(self) -> float:
        """How much wider the interval is for looks that were not planned."""
        over = [
            len(side.items) / side.evaluation.provenance.budget
            for side in self._over_budget
            if side.evaluation
        ]
        return (OFTEN if self._often else 1.0) * float(max([1.0, *over]) ** BEYOND)

    @property
    def _over_budget(self) -> list[Side]:
        """Targets with more answers than the looks were planned for."""
        return [
            side
            for side in self.open
            if side.evaluation is not None
            and self.sequential
            and len(side.items) > side.evaluation.provenance.budget
        ]

    def _at(self, side: Side) -> tuple[int, ...]:
        assert side.evaluation is not None
        budget = side.evaluation.provenance.budget
        if self.sequential:
            return looks(budget)
        n = len(side.items)
        if n >= STEP * budget:
            return (budget,)
        return (max(1, int(budget * STEP ** math.ceil(math.log(n / budget, STEP) - 1e-9))),)

    def _held(self, side: Side) -> HeldOut:
        evaluation = side.evaluation
        assert evaluation is not None
        made, method = evaluation.provenance, evaluation.method
        at = self._at(side)
        key = (method.describe(), made.budget, made.seed, at)
        if key not in self._measured:
            how = (method, self.scores, made.budget, made.seed, at)
            self._measured[key] = measure(*how, folder=evaluation.folder)
        return self._measured[key]

    # -- intervals ---------------------------------------------------------------------------

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest difference that the answers leave possible."""
        return self.one.least - self.other.most, self.one.most - self.other.least

    def interval(self, level: float) -> Judged:
        """Return the interval of the difference of the full scores; it contains the difference."""
        check_level(level)
        middle = self.difference
        if not self.open:
            return Judged(middle, middle, "known", None)
        first = min(self.open, key=lambda side: len(side.items))
        opening = min(FEWEST, *self.looks) if self.looks else 0
        if len(first.items) < opening:
            has = f"{first.name} has {counted(len(first.items), 'answer')}"
            return Judged(*self.bounds, "bounds", None, (f"{has}; the first look is at {opening}",))
        found = self._interval(level)
        # One rule, whatever the widths are: the narrower of two holds less often than either.
        if self.is_paired_sample and found.kind == "bounds":
            found = Judged(*self._betting(level), "betting", None)
        least, most = self.bounds
        return Judged(
            max(least, min(found.low, middle)),
            min(most, max(found.high, middle)),
            *(found.kind, found.units, found.warnings),
        )

    def _interval(self, level: float) -> Judged:
        quantile, units, warning = self.residuals.quantile(level)
        unit = float(self.units[0])
        if unit > 0 and quantile < TINY:
            return Judged(-1.0, 1.0, "bounds", None, (ALIKE,))
        said = () if warning is None else (warning,)
        if not math.isfinite(quantile):
            return Judged(-1.0, 1.0, "bounds", units, said)
        low, high = self.difference - quantile * unit, self.difference + quantile * unit
        kind = "cross-fitted"
        if self.is_together:
            share, half = self._together_beyond(level)
            if self._unmeasured:
                return Judged(-1.0, 1.0, "bounds", units, said)
            half = (1 - share) * quantile * unit + share * half
            kind = "frontier" if share >= 0.5 else kind
            return Judged(self.difference - half, self.difference + half, kind, units, said)
        cases = self._beyond.cases(
            level, self.difference, unit / (self._slack if self.sequential else 1.0)
        )
        if self._unmeasured:
            return Judged(-1.0, 1.0, "bounds", units, said)
        share = sum(weight for weight, _ in cases)
        if share > 0:
            stretch = self._stretch(level)
            below, above = (
                sum(
                    weight * (self.difference + stretch * (ends[at] - self.difference))
                    for weight, ends in cases
                )
                for at in (0, 1)
            )
            low, high = (1 - share) * low + below, (1 - share) * high + above
            kind = "frontier" if share >= 0.5 else kind
        return Judged(low, high, kind, units, said)

    def _together_beyond(self, level: float) -> tuple[float, float]:
        """Return the probability that one of two that ran the same items is beyond the sources,
        and the half width there.

        It is that of paired random sampling, and wider where the method errs more than sampling on
        pairs of the strongest sources, learned from weaker ones. It is never narrower: far beyond,
        the sources say little of how the method errs.
        """
        from scipy.stats import t

        chances = {side.name: side.placed[0] for side in self.open}
        share = max(chances.values())
        if share < LEAST_CHANCE:
            return 0.0, 0.0
        n, at = len(self.common[0]), self._at(self.one)
        distance = sum(side.placed[1] for side in self.open) / 2
        held = self._held(self.one).only(beyond=True)
        ratio = over_sampling(held, at, distance, self.scores)
        if math.isnan(ratio):
            if share >= LIKELY:
                self._unmeasured += [name for name, one in chances.items() if one >= LIKELY]
            return 0.0, 0.0
        each = 1 - (1 - level) / max(1, len(self.looks))
        half = float(t.ppf(0.5 + each / 2, max(n - 1, 1))) * self.paired_error(n)
        return share, max(1.0, ratio) * half * (self._unplanned if self.sequential else 1.0)

    def _betting(self, level: float) -> tuple[float, float]:
        """Interval from the paired differences of a random sample, valid for any scores.

        If it must hold at all looks, it holds after every answer, in the order of the questions.
        """
        apart = self.common[0] - self.common[1]
        side = self.open[0]
        assert side.evaluation is not None
        asked = side.evaluation.record.asked(side.name)
        drawn = np.searchsorted(np.sort(side.items), asked[np.isin(asked, side.items)])
        low, high = betting_interval(
            (apart[drawn] + 1) / 2, self.scores.n_items, level, any_time=self.sequential
        )
        return 2 * low - 1, 2 * high - 1

    def warnings(self, level: float) -> tuple[str, ...]:
        """Return reasons to doubt the interval."""
        found = [*self.one.notes, *self.other.notes, *self.interval(level).warnings]
        places = {} if self.is_together else self._beyond.places
        found += [
            f"{side.name} has {counted(len(side.items), 'answer')}, more than the budget. The "
            "interval is wider there, but looking often makes more verdicts wrong than stated: "
            "start with a larger budget if you want to look again"
            for side in self._over_budget
        ]
        found += [
            f"{side.name} answers better than nearly all source models. The interval uses the "
            "errors on the strongest source models, estimated from weaker ones"
            for side, (weight, _, _) in places.items()
            if weight >= SAID_FROM
        ]
        if self.is_together:
            found += [
                f"{side.name} answers better than nearly all source models. The interval is at "
                "least as wide as that of paired random sampling"
                for side in self.open
                if side.placed[0] >= SAID_FROM and side.name not in self._unmeasured
            ]
        found += [
            f"{name} answers better than nearly all source models, and these do not show how the "
            "method errs there. The interval shows only what the answers leave possible: use "
            "--method random"
            for name in self._unmeasured
        ]
        if len(self.open) == 2 and not len(self.common[0]):
            found.append(
                "the two have no item in common. Items that both run make the difference more "
                "precise: start both as targets of one evaluation"
            )
        return tuple(dict.fromkeys(found))

    # -- probabilities -----------------------------------------------------------------------

    def chance_above(self, level: float) -> float:
        """Return the probability that the difference is above 0.

        Of a normal distribution around the difference, whose quantile is the end of the interval
        that lies towards 0. So it is beyond (1 + level) / 2 if and only if the interval excludes 0.
        """
        from scipy.special import ndtr, ndtri

        middle = self.difference
        if abs(middle) < 1e-12:
            return 0.5
        found = self.interval(level)
        half = middle - found.low if middle > 0 else found.high - middle
        if half <= 0:
            return float(middle > 0)
        return float(ndtr(float(ndtri(0.5 + level / 2)) * middle / half))

    def task_tests(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return half widths and p values of the task differences, each shape (tasks,).

        By Student's t, with the root mean square of the residuals as their scale and the number of
        independent units as degrees of freedom: many tasks need p values smaller than the number
        of source models can show.
        """
        from scipy.stats import t

        n_tasks = len(self.scores.tasks)
        apart, units = self.differences[1:], self.units[1:]
        if not self.open:
            return np.zeros(n_tasks), np.where(np.abs(apart) > 1e-12, 0.0, 1.0)
        rests = self.residuals
        if rests.groups < 2 or self.interval(level).kind == "bounds":
            return np.full(n_tasks, np.inf), np.ones(n_tasks)
        error = rests.scales()[1:] * units * self._widened(level)
        half = t.ppf(0.5 + level / 2, rests.groups) * error
        ratio = np.divide(np.abs(apart), error, out=np.full(n_tasks, np.inf), where=error > 0)
        return np.asarray(half), np.where(apart == 0, 1.0, 2 * t.sf(ratio, rests.groups))

    def standard_error(self, level: float) -> float:
        """Return the standard error of the difference of the full scores; inf if unknown."""
        if not self.open:
            return 0.0
        if self.residuals.groups < 2 or self.interval(level).kind == "bounds":
            return math.inf
        return float(self.residuals.scales()[0]) * float(self.units[0]) * self._widened(level)

    def _widened(self, level: float) -> float:
        """How much wider the interval is for a target that may be beyond the sources."""
        found, (quantile, _, _) = self._interval(level), self.residuals.quantile(level)
        half = quantile * float(self.units[0])
        if found.kind == "bounds" or not 0 < half < math.inf:
            return 1.0
        return max(1.0, (found.high - found.low) / (2 * half))
