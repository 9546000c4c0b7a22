"""How far a full score may be from its estimate: one rule for every command.

- Plain random sampling: exact for right and wrong answers, betting for others (`sampling`). From 60
  answers on, a sample that is spread over tasks has the narrower interval of its strata.
- Items that are a sample with known probabilities: Wilson's interval with the number of random
  items that would be as precise, and Student's t.
- Every other estimate: quantiles of the method's errors on held-out sources (`held_out`), in units
  that are larger the less the target answers like the sources (`resemblance`), drawn towards the
  width of as many random items and never above it.

Held-out errors do not apply to a target beyond the sources or unlike them. Its interval has at
least a share of the width for the same number of random items. Task intervals follow the same
rules, without the upper bound.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from statistics import NormalDist, fmean

import numpy as np

from fewbench._blocks import by_rows
from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.algorithms import ties
from fewbench.algorithms.assisted import SampleErrors, sample_errors
from fewbench.methods.base import Method
from fewbench.methods.sources import (
    NEARLY_COMPLETE,
    are_alike,
    independent_in_words,
    is_known,
    source_groups,
)
from fewbench.scores import Scores
from fewbench.uncertainty.as_random import AsRandom
from fewbench.uncertainty.bounds import known_bounds, task_bounds
from fewbench.uncertainty.held_out import (
    FEWEST_GROUPS,
    HeldOut,
    Quantiles,
    of_weighted,
    quantiles_of,
    units_of,
)
from fewbench.uncertainty.intervals import (
    FEWEST_TO_STOP,
    NORMAL,
    TINY,
    Kind,
    Scored,
    Uncertainty,
    are_even,
    around,
    at_looks,
    sampled_uncertainty,
    student,
    unknown,
    weighted_sum,
    wilson,
)
from fewbench.uncertainty.open_items import OpenItems, are_unseen
from fewbench.uncertainty.resemblance import Resemblance, resemblance_of
from fewbench.uncertainty.sampling import (
    betting_interval,
    error_within,
    exact_interval,
    within_strata,
)

ENOUGH = 60
"""Answers from which the interval of a sample counts what its spread over tasks gains."""
NORMAL_DISTRIBUTION = NormalDist()
AT_ENDS = 0.5
"""Share of a sample's scores at one end of the scale above which Student's t is not trusted."""
DRAWN_IN = 0.7
"""Share of the geometric mean of a method's own half width and random sampling's."""
BEYOND = 2 / 3
"""Least share of random sampling's width, times the probability that a target is beyond the
sources. With .75 targets beyond them pay 3% more width, with .6 the worst of nine tables is covered
.75 in place of .81 (far stronger targets, 30 items)."""
BEYOND_IN_TASKS = 0.8
"""The same for task intervals, of random sampling's width in the task: with two thirds, tasks that
the sources hardly solve are covered .66 where targets are beyond the sources."""
MISFITTING = (0.0, 0.02, 0.1), (1.0, 1.0, 0.8)
"""p-value of resemblance, and the least share (no least share above)."""
FEWEST_IN_TASK = 5
"""A task counts as one with at least so many random items for its least width: the sources say as
much of it. With 8, the worst task of five tables is covered .47 in place of .55."""
WORTH_SAYING = 0.05
"""Least share of random sampling's width that a warning names."""
UNLIKE = {
    "above": "the target does better than nearly all source models on these items",
    "below": "the target does worse than nearly all source models on these items",
    "misfit": "the target does not answer like the source models",
}
ANSWER_ALIKE = (
    "the source models answer more alike than unrelated models do, as checkpoints of one training "
    "run would: for models of other runs, the interval may be too narrow. If they are relatives, "
    "name their families when you import them (--models FILE with a column family)"
)
SCORE_ALIKE = (
    "all source models score alike, so the method's errors on them do not apply to a model that "
    "differs. The interval is that of random sampling"
)


@dataclass(frozen=True, eq=False)
class Judge:
    """Says how far a method's estimates may be off, on a table of sources.

    Parameters
    ----------
    method : Method
    scores : Scores
        The sources.
    budget : int
        As for the evaluation.
    errors : callable
        Returns the method's errors on held-out sources, for targets with this number of answers.
        They are measured when an interval first needs them: a random sample never does.
    half_width, level : float, optional
        The run stops when the interval at this level has this half width, in [0, 1].
    of_ran : Judge, optional
        Where items that no source ran are a random sample: what judges the others.
    """

    method: Method
    scores: Scores
    budget: int
    errors: Callable[[int], HeldOut]
    half_width: float | None = None
    level: float = 0.9
    of_ran: "Judge | None" = None

    def quantiles(self, answered: int, first: int = 0, last: int = 1) -> Quantiles | None:
        """Return the quantiles of errors with this number of answers, or None with too few sources.

        For the full score, or for these scores together: the full score is at 0, then come the
        tasks.
        """
        if not self.scores.n_models:
            return None
        errors = self.errors(answered)
        return quantiles_of(errors, first, last, self._look(errors, answered))

    def _look(self, errors: HeldOut, answered: int) -> int | None:
        """Return the look whose errors count, or None for all, of a method that asks in rounds."""
        return errors.at(answered) if self.method.asks_once else None

    def uncertainty(self, score: Scored) -> Uncertainty:
        """Return the uncertainty of a target's full score.

        For a run that stops at a half width, the level allows for the repeated looks (`at_looks`).
        """
        uncertainty = self._of_answers(score)
        if self.half_width is None or len(score.answers.items) < FEWEST_TO_STOP:
            return uncertainty
        at_end = at_looks(uncertainty)
        low, high = at_end.interval(self.level)
        return at_end if ties.at_least(self.half_width, (high - low) / 2) else uncertainty

    def _of_answers(self, score: Scored) -> Uncertainty:
        items, replies = score.answers.items, score.answers.scores[0]
        estimate = float(score.estimates[0])
        if not len(items):  # to what some source ran, beside answers to what none ran
            return unknown(estimate)
        bounds, open_ = known_bounds(self.scores.item_weights, items, replies), self._open(score)
        of_known = open_.estimate_of_known(estimate)
        known = self._of_known(score, of_known, open_.n_known, bounds)
        return open_.around(known, estimate)

    def _known(self, score: Scored) -> Uncertainty:
        """Return the uncertainty of a full score without open items."""
        estimate, items = float(score.estimates[0]), score.answers.items
        bounds = known_bounds(self.scores.item_weights, items, score.answers.scores[0])
        if not len(items):
            return unknown(estimate)
        return self._of_known(score, estimate, self.scores.n_items, bounds)

    def _open(self, score: Scored, weights: FloatArray | None = None) -> OpenItems:
        """Return how much of the full score, or of another mean over items, is open."""
        weights = self.scores.item_weights if weights is None else weights
        chances = None if score.sample is None else score.sample.chances
        return OpenItems(self.scores, score.answers, weights, chances, score.ran is not None)

    def _of_known(
        self, score: Scored, estimate: float, n_items: int, bounds: tuple[float, float]
    ) -> Uncertainty:
        """Return the uncertainty of the mean over n_items that answers or sources tell of."""
        items, replies = score.answers.items, score.answers.scores[0]
        if self._is_random(score) or score.is_plain:
            # Looks that may end a run were checked with the intervals of a simple random sample.
            strata = self.scores.task_of[items] if self._is_spread(score, replies) else None
            return self._of_random(estimate, replies, n_items, bounds, items=items, strata=strata)
        if score.ran is not None and self.of_ran is not None:
            of_ran = self.of_ran._known(score.ran)
            how = score, of_ran, estimate, self.scores.item_weights, bounds
            uncertainty = self._beside_unrun(*how) or of_ran
        elif (error := score.sample_error()) is not None:
            uncertainty = sampled_uncertainty(estimate, *error, bounds, score.sample)
        else:
            of_known = replace(score, estimates=np.append(estimate, score.estimates[1:]))
            uncertainty = self._held_out(of_known, bounds)
        return with_equal_answers(uncertainty, replies, n_items, self.level)

    def _of_random(
        self,
        estimate: float,
        answers: FloatArray,
        n_items: int,
        bounds: tuple[float, float],
        *,
        items: IntArray | None = None,
        strata: IntArray | None = None,
    ) -> Uncertainty:
        """Return the uncertainty of the mean of a simple random sample of n_items items.

        `items` are the positions of the answers, where the errors of two targets are compared;
        `strata` are those that the sample is spread over.
        """
        n = len(answers)
        left = max(1 / n - 1 / n_items, 0.0)
        deviations, ratio, freedom = answers - answers.mean(), 1.0, max(n - 1.0, 1.0)
        is_binary = self.scores.is_binary and bool(np.isin(answers, (0.0, 1.0)).all())
        # Two more answers with the variance of a typical source: equal answers do not give a width
        # of 0. Without sources nothing says how much scores between 0 and 1 vary but themselves.
        typical = self._typical_variance
        if is_spread_out := not is_binary and not self.scores.n_models and are_spread_out(answers):
            typical = float(answers.var(ddof=1))
        squares = float(deviations @ deviations) + 2 * typical
        spread = math.sqrt(squares / (n + 1) * left)
        if strata is not None:
            deviations, ratio, freedom = within_strata(answers, strata)
            spread *= ratio
        sample = None
        if items is not None:
            influence = np.full(self.scores.n_items, np.nan)
            influence[items] = deviations
            chances = np.full(self.scores.n_items, n / self.scores.n_items)
            sample = SampleErrors(influence, chances, 1 / max(squares * ratio**2, TINY))
        kind: Kind = "betting"
        if is_binary:
            factor = student(ratio, freedom)
            narrow = factor(self.level) < NORMAL_DISTRIBUTION.inv_cdf(0.5 + self.level / 2)
            kind = "sampled" if narrow else "exact"
            hits = round(float(answers.sum()))

            def ends(level: float) -> tuple[float, float]:
                low, high = exact_interval(hits, n, n_items, level)
                if not narrow:
                    return low, high
                share = min(1.0, factor(level) / NORMAL_DISTRIBUTION.inv_cdf(0.5 + level / 2))
                return estimate - share * (estimate - low), estimate + share * (high - estimate)

        elif not self.scores.n_models and not is_spread_out:

            def ends(level: float) -> tuple[float, float]:
                return betting_interval(np.sort(answers), n_items, level)  # for any order the same

        else:
            kind = "sampled"

            def ends(level: float) -> tuple[float, float]:
                return wilson(estimate, spread, freedom, level)

        half = student(spread, freedom)
        error = NORMAL * spread
        return Uncertainty(estimate, kind, half, ends, *bounds, error, sample=sample)

    def _is_random(self, score: Scored) -> bool:
        """Whether the estimate is the mean of a simple random sample of the full score's items."""
        is_even = score.sample is None or np.ptp(score.sample.chances[score.answers.items]) < TINY
        return self.method.plain_sampling and self.scores.counts_equally and bool(is_even)

    def _is_spread(self, score: Scored, answers: FloatArray) -> bool:
        """Whether the interval of these answers counts what their spread over tasks gains."""
        return score.is_plain and len(answers) >= ENOUGH and self.half_width is None

    @cached_property
    def _typical_variance(self) -> float:
        """Mean variance of a source's scores over the items."""
        scores = self.scores
        if not scores.n_models:
            return 0.25
        if scores.is_binary:
            full = scores.full_scores()
            return float((full * (1 - full)).mean())
        return float(by_rows(scores.filled_cells, lambda part: part.var(axis=1)).mean())

    def _held_out(self, score: Scored, bounds: tuple[float, float]) -> Uncertainty:
        estimate, n, (least, most) = float(score.estimates[0]), len(score.answers.items), bounds
        quantiles, unit = self.quantiles(n), float(units_of(score, self.scores)[0])
        as_random = partial(self.random.half, estimate, n)
        if quantiles is None or (unit > 0 and quantiles.mean < TINY):
            return Uncertainty(
                estimate, "random", as_random, around(estimate, as_random), least, most,
                NORMAL * self.random.error(estimate, n),
                warnings=(_too_few(self.scores) if quantiles is None else SCORE_ALIKE,),
            )  # fmt: skip
        resemblance = self._resemblance(score)
        share, unit = self._least_share(resemblance), unit * resemblance.widening
        half, error = _mean_half([quantiles], unit), quantiles.mean * unit
        plain = NORMAL * self.random.error(estimate, n)
        if self._tells_more(score):
            # Methods that cannot go beyond the sources, or ask once, are then covered too seldom:
            # .76 to .89 of targets like the sources (greedy-ridge, collaborative, four tables).
            if self.method.reach > 0 and not self.method.asks_once:
                half = _drawn_in(half, as_random)
            half = _at_most(half, as_random)
            error = min(error, plain)
        half, error = _at_least(half, share, as_random), max(error, share * plain)
        warnings = [] if resemblance.why is None else [_not_trusted(resemblance.why, share)]
        warnings += [ANSWER_ALIKE] if are_alike(self.scores) else []
        return Uncertainty(
            estimate, "held-out", half, around(estimate, half), least, most,
            min(error, max(estimate - least, most - estimate)), quantiles.groups,
            resemblance=resemblance, warnings=tuple(warnings),
        )  # fmt: skip

    def _beside_unrun(
        self, score: Scored, of_ran: Uncertainty | None, estimate: float, weights: FloatArray,
        bounds: tuple[float, float],
    ) -> Uncertainty | None:  # fmt: skip
        """Return the uncertainty of a mean over items that some source ran and that none ran.

        `of_ran` is that of the first part, and `weights`, shape (items,), of sum 1, are those of
        the items in the mean.
        """
        items, answers = score.answers.items, score.answers.scores[0]
        weights = np.where(are_unseen(self.scores, items, beside=True), 0.0, weights)
        weights = weights / max(weights.sum(), TINY)
        is_unrun = self._is_unrun & (weights > 0)
        share = float(weights[is_unrun].sum())
        if not is_unrun.any() or (of_ran is None and share < 1 - TINY):
            return of_ran
        first = 0.0 if of_ran is None else of_ran.estimate
        mean = min(max((estimate - (1 - share) * first) / share, 0.0), 1.0)
        items, answers = items[is_unrun[items]], answers[is_unrun[items]]
        n = int(is_unrun.sum())
        if not len(items):
            of_unrun = unknown(mean)
        elif np.ptp(weights[is_unrun]) < TINY:
            of_unrun = self._of_random(mean, answers, n, (0.0, 1.0))
        else:
            chances = np.full(n, len(items) / n)
            how = np.zeros((1, len(items))), weights[items], np.arange(len(items)), chances
            (error,), (freedom,), _ = sample_errors(answers[None], *how)
            of_unrun = sampled_uncertainty(mean, float(error), float(freedom), (0.0, 1.0))
        parts = [(share, of_unrun)] if of_ran is None else [(1 - share, of_ran), (share, of_unrun)]
        return weighted_sum(parts, estimate, bounds)

    @cached_property
    def _is_unrun(self) -> BoolArray:
        """Whether each item is none of those that `of_ran` judges, shape (items,)."""
        assert self.of_ran is not None
        return np.asarray(~self.scores.items.index.isin(self.of_ran.scores.items.index))

    def _parts_of_ran(
        self, score: Scored, ran: Scored, full: Uncertainty, shares: FloatArray
    ) -> dict[int, Uncertainty | None]:
        """Return what `_known_parts` does, by part, of the items of each that some source ran."""
        assert self.of_ran is not None
        scores, of_ran = self.scores, self.of_ran
        at = [scores.tasks.index(task) for task in of_ran.scores.tasks]
        ran_shares = scores.task_weights[~self._is_unrun].sum(axis=0)
        of_tasks = shares[:, at] * ran_shares[at]
        held = np.flatnonzero(of_tasks.any(axis=1))
        of_tasks = of_tasks[held] / of_tasks[held].sum(axis=1, keepdims=True)
        is_tasks = np.array_equal(of_tasks, np.eye(len(at)))
        in_parts = ran if is_tasks else ran.in_parts(of_tasks, of_ran.scores, full)
        found = of_ran._known_parts(ran, full, of_tasks, in_parts)
        return dict(zip(held.tolist(), found, strict=True))

    def _resemblance(self, score: Scored) -> Resemblance:
        return resemblance_of(self.scores, [score.answers], self.method.reach)[0]

    def _least_share(self, resemblance: Resemblance, beyond: float = BEYOND) -> float:
        """Return the least share of random sampling's width that an interval has."""
        if resemblance.why in ("above", "below") and not self.method.reach:
            return 1.0  # the method cannot go beyond the sources
        by_fit = 0.0
        if resemblance.why in (None, "misfit") and resemblance.p_value <= MISFITTING[0][-1]:
            by_fit = float(np.interp(resemblance.p_value, *MISFITTING))
        return max(by_fit, beyond * resemblance.beyond)

    def _tells_more(self, score: Scored) -> bool:
        """Whether the answers tell at least as much of this target as random ones would.

        Not by a method that errs more than random sampling, nor on items that tell the target less,
        such as those chosen for another one.
        """
        estimate, n = float(score.estimates[0]), len(score.answers.items)
        tells_less = score.spread is not None and score.spread > self.random.error(estimate, n)
        return not tells_less and not self.errors(n).is_worse_than_random

    @cached_property
    def random(self) -> AsRandom:
        """What the same number of random items would give."""
        return AsRandom(self.scores, self.budget)

    def share_if_spread(self, estimates: FloatArray, n: int, level: float) -> float:
        """Return how wide the interval of n random items is if they are spread over the tasks.

        As without source models, over the width for a simple random sample: 1 with fewer than 60
        items. By the variance between tasks (Cochran 1977, "Sampling Techniques", section 5.6).

        Parameters
        ----------
        estimates : ndarray, shape (1 + tasks,)
            The full score, then every task.
        n : int
        level : float
        """
        score, tasks, scores = float(estimates[0]), estimates[1:], self.scores
        total = score * (1 - score) * self.random.effect
        if n < ENOUGH or self.half_width is not None or len(tasks) < 2 or total < TINY:
            return 1.0
        of_tasks = scores.task_shares
        between = float(of_tasks @ (tasks - of_tasks @ tasks) ** 2)
        factor = student(math.sqrt(max(1 - between / total, 0)), n - min(len(tasks), n // 2) + 2.0)
        return min(1.0, factor(level) / NORMAL_DISTRIBUTION.inv_cdf(0.5 + level / 2))

    def task_uncertainties(self, score: Scored, full: Uncertainty) -> list[Uncertainty | None]:
        """Return the uncertainty of every task score, or None where it is unknown.

        `full` is the uncertainty of the full score.
        """
        return self._of_parts(score, full, np.eye(len(self.scores.tasks)), score)

    def group_uncertainties(
        self, score: Scored, full: Uncertainty, tasks: Sequence[Uncertainty | None]
    ) -> list[tuple[float, Uncertainty | None]]:
        """Return the score of every group of tasks and its uncertainty, None where it is unknown.

        A group of one task has the task's, and one that counts all items as the full score does has
        the full score's: `full` and `tasks` are their uncertainties.
        """
        scores = self.scores
        if not scores.groups:
            return []
        shares = np.array([group.weights for group in scores.groups])
        in_groups = score.in_parts(shares, scores, full)
        if are_unseen(scores, score.answers.items).any():  # in the middle, as tasks have them
            of_tasks = np.append(score.estimates[0], shares @ score.estimates[1:])
            in_groups = replace(in_groups, estimates=of_tasks)
        intervals = self._of_parts(score, full, shares, in_groups)
        found = [*zip(in_groups.estimates[1:], intervals, strict=True)]
        for at, row in enumerate(shares):
            if len(held := np.flatnonzero(row)) == 1:
                found[at] = score.estimates[1 + held[0]], tasks[held[0]]
            elif np.allclose(row, scores.task_shares, rtol=0, atol=TINY):
                found[at] = score.estimates[0], full
        return [(float(estimate), uncertainty) for estimate, uncertainty in found]

    def _of_parts(
        self, score: Scored, full: Uncertainty, shares: FloatArray, of_parts: Scored
    ) -> list[Uncertainty | None]:
        """Return the uncertainty of weighted means of task scores: of tasks, or of groups.

        `shares`, shape (parts, tasks), are the weights; `of_parts` has the parts in place of tasks.
        """
        estimates, of_all = of_parts.estimates[1:].tolist(), self._open(score)
        ran = score.ran if self.of_ran is not None else None
        if ran is None and not of_all.unseen and not of_all.lost:
            return self._known_parts(score, full, shares, of_parts)
        items, replies = score.answers.items, score.answers.scores[0]
        weights = [self.scores.task_weights @ row for row in shares]
        opens = [self._open(score, each) for each in weights]
        known = [one.estimate_of_known(each) for one, each in zip(opens, estimates, strict=True)]
        if ran is None:
            of_known = replace(of_parts, estimates=np.array([of_parts.estimates[0], *known]))
            sizes = np.array([one.n_known for one in opens])
            found = self._known_parts(score, full, shares, of_known, sizes)
        else:
            of_ran, found = self._parts_of_ran(score, ran, full, shares), []
            least, most = (shares @ ends for ends in task_bounds(self.scores, items, replies))
            for part, ends in enumerate(zip(least.tolist(), most.tolist(), strict=True)):
                how = known[part], weights[part], ends
                whole = self._beside_unrun(score, of_ran.get(part), *how)
                found.append(whole and reaching_end(whole, replies[weights[part][items] > 0]))
        return [
            unknown(each) if one.is_all and np.isfinite(each) else part and one.around(part, each)
            for one, part, each in zip(opens, found, estimates, strict=True)
        ]

    def _known_parts(
        self, score: Scored, full: Uncertainty, shares: FloatArray, of_parts: Scored,
        sizes: IntArray | None = None,
    ) -> list[Uncertainty | None]:  # fmt: skip
        """Return what `_of_parts` does, of the `sizes` items that answers or sources tell of."""
        if not len(score.answers.items):
            return [unknown(float(estimate)) for estimate in of_parts.estimates[1:]]
        items, replies = score.answers.items, score.answers.scores[0]
        scores, is_random = self.scores, self._is_random(score) or score.is_plain
        task_of, n = scores.task_of[items], len(items)
        holds = shares > 0
        if sizes is None:
            sizes = holds @ np.bincount(scores.task_of, minlength=len(scores.tasks))
        least, most = (shares @ ends for ends in task_bounds(scores, items, replies))
        is_even = are_even(shares, scores)
        quantiles = None
        if not is_random and not score.is_sampled and self.quantiles(n):
            errors = of_weighted(self.errors(n), shares)
            look = errors.at(n)
            quantiles = quantiles_of(errors, 1, 1 + len(shares), look)
            resemblance = full.resemblance or self._resemblance(score)
            of_tasks = units_of(score, scores)[1:] * resemblance.widening
            units = np.sqrt(shares**2 @ of_tasks**2)
            share = self._least_share(resemblance, BEYOND_IN_TASKS)
            as_random = partial(self.random.half, float(score.estimates[0]), n)
            plain = NORMAL * self.random.error(float(score.estimates[0]), n)
            # As many items as random sampling has in each part, or as the target ran.
            run = holds @ np.bincount(task_of, minlength=len(scores.tasks))
            as_many = np.maximum(run, n * sizes / scores.n_items)
            widths = np.sqrt(n / np.clip(as_many, min(FEWEST_IN_TASK, n), n))
        uncertainties: list[Uncertainty | None] = []
        for part, estimate in enumerate(of_parts.estimates[1:].tolist()):
            is_held = holds[part, task_of]
            answers, size = replies[is_held], int(sizes[part])
            ends = float(least[part]), float(most[part])
            uncertainties.append(None)
            if is_random and is_even[part]:
                is_spread = np.count_nonzero(holds[part]) > 1 and self._is_spread(score, answers)
                strata = task_of[is_held] if is_spread else None
                if len(answers):
                    uncertainties[-1] = self._of_random(
                        estimate, answers, size, ends, strata=strata
                    )
            elif is_random or score.is_sampled:
                if (error := of_parts.sample_error(1 + part)) is not None:
                    uncertainties[-1] = sampled_uncertainty(estimate, *error, ends)
            elif quantiles is not None:
                # A part's own errors count as much as those of all parts.
                both = quantiles, quantiles_of(errors, 1 + part, 2 + part, look) or quantiles
                half = _at_least(
                    _mean_half(both, float(units[part])),
                    share * float(widths[part]),
                    as_random,
                )
                expected = fmean(each.mean for each in both) * float(units[part])
                uncertainties[-1] = Uncertainty(
                    estimate, "held-out", half, around(estimate, half), *ends,
                    max(expected, share * float(widths[part]) * plain), quantiles.groups,
                )  # fmt: skip
            if (of_part := uncertainties[-1]) is not None:
                uncertainties[-1] = reaching_end(of_part, answers)
        return uncertainties


def are_spread_out(answers: FloatArray) -> bool:
    """Whether Student's t holds for the mean of a sample of scores between 0 and 1.

    Not of few answers, nor where most are the best or the worst: the rare other ones, which decide,
    may be missing.
    """
    at_ends = max((answers == end).mean() for end in (0.0, 1.0))
    return len(answers) >= FEWEST_TO_STOP and at_ends <= AT_ENDS and bool(np.ptp(answers) > 0)


def _mean_half(quantiles: Sequence[Quantiles], unit: float) -> Callable[[float], float]:
    return lambda level: fmean(each.at(level) for each in quantiles) * unit


def _drawn_in(
    half: Callable[[float], float], as_random: Callable[[float], float]
) -> Callable[[float], float]:
    """Return a half width that few held-out errors measured, drawn towards one that is known."""
    # The root of a half width that is 0 but for rounding would not be the same everywhere.
    return lambda level: DRAWN_IN * math.sqrt(max(half(level), TINY) * as_random(level))


def _at_most(
    half: Callable[[float], float], bound: Callable[[float], float]
) -> Callable[[float], float]:
    return lambda level: min(half(level), bound(level))


def _at_least(
    half: Callable[[float], float], share: float, as_random: Callable[[float], float]
) -> Callable[[float], float]:
    return lambda level: max(half(level), share * as_random(level))


def with_equal_answers(
    uncertainty: Uncertainty, answers: FloatArray, n_items: int, level: float
) -> Uncertainty:
    """Have the interval of a target that is all right or all wrong contain the exact one.

    The sources, or other answers, say how far the score may be off, but none is like it. The error
    to expect is at least random sampling's within the exact interval at this level.
    """
    if np.ptp(answers) > 0 or answers[0] not in (0.0, 1.0):
        return uncertainty
    n, hits = len(answers), round(float(answers.sum()))

    def ends(level: float) -> tuple[float, float]:
        low, high = uncertainty.ends(level)
        exact = exact_interval(hits, n, n_items, level)
        return min(low, exact[0]), max(high, exact[1])

    error = error_within(*exact_interval(hits, n, n_items, level), n, n_items)
    return replace(uncertainty, ends=ends, error=max(uncertainty.error or 0.0, error))


def reaching_end(uncertainty: Uncertainty, answers: FloatArray) -> Uncertainty:
    """Have the interval of a task whose answers are all the best, or the worst, reach that end.

    The other answers and the sources draw the estimate away from it, but nothing refutes it.
    """
    if len(answers) < FEWEST_IN_TASK or np.ptp(answers) > 0 or answers[0] not in (0.0, 1.0):
        return uncertainty
    end = float(answers[0])

    def ends(level: float) -> tuple[float, float]:
        low, high = uncertainty.ends(level)
        return min(low, end), max(high, end)

    return replace(uncertainty, ends=ends)


def _not_trusted(why: str, share: float) -> str:
    """Return a warning of a target whose interval is at least this share of random sampling's."""
    text = f"{UNLIKE[why]}, so the method's errors on them may not hold"
    if share < WORTH_SAYING:
        return text
    times = "" if share == 1 else f"{share:.2g} times "
    return f"{text}. The interval is at least {times}as wide as for random sampling"


def _too_few(sources: Scores) -> str:
    known = is_known(sources)
    groups = len(np.unique(source_groups(sources)[known]))
    why = "the method's error could not be measured on parts of the source models"
    if groups < 2 * FEWEST_GROUPS:
        few = independent_in_words(sources, groups)
        few += "" if known.all() else f" that ran at least {1 - NEARLY_COMPLETE:.0%} of the items"
        why = f"{few}: too few to measure the method's error"
    return f"{why}. The interval is that of random sampling: the method may be worse"
