"""How far a full score may be from its estimate: one rule for every command.

- Plain random sampling: exact for right and wrong answers, betting for others (`sampling`). From 60
  answers on, a sample that is spread over tasks has the narrower interval of its strata.
- Items that are a sample with known probabilities: Wilson's interval with the number of random
  items that would be as precise, and Student's t.
- Every other estimate: quantiles of the method's errors on held-out sources (`held_out`).

Held-out errors say nothing of a target unlike the sources. Its ability may be far beyond theirs,
above or below, or its answers may not fit (`fewbench.algorithms.abilities`). The interval is then
at least as wide as that of as many random items, and the estimate warns. Of a target above the
sources it is at least 3/4 as wide if the method can predict above them. Between, where a target may
be somewhat beyond the sources, it is at least 3/4 as wide times the probability of that, and where
its answers fit the sources badly, 1/2 to all of it. Where a target may be beyond the sources, task
intervals have the same share of random sampling's width for the task. Where its answers fit badly,
they widen as much as the full score's.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist, fmean

import numpy as np

from fewbench._blocks import by_rows
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms import ties
from fewbench.algorithms.abilities import fit_abilities, novelty_p_value
from fewbench.algorithms.assisted import SampleErrors
from fewbench.methods.base import Answers, Method
from fewbench.methods.sources import (
    are_alike,
    independent_in_words,
    is_known,
    source_groups,
)
from fewbench.scores import Scores
from fewbench.uncertainty.bounds import known_bounds, task_bounds
from fewbench.uncertainty.held_out import FEWEST_GROUPS, HeldOut, Quantiles, quantiles_of, units_of
from fewbench.uncertainty.intervals import (
    FEWEST,
    NORMAL,
    TINY,
    Kind,
    Scored,
    Uncertainty,
    around,
    at_looks,
    sampled_uncertainty,
    student,
    wilson,
)
from fewbench.uncertainty.sampling import (
    betting_interval,
    error_within,
    exact_interval,
    interval_at,
    sampling_effect,
    standard_error,
    within_strata,
)

ENOUGH = 60
"""Answers from which the interval of a sample counts what its spread over tasks gains."""
NORMAL_DISTRIBUTION = NormalDist()
MISFIT = 0.02
"""p-value of the answers' fit from which an estimate warns."""
BEYOND = 0.75
"""Share of random sampling's width that the interval of a target beyond the sources has at least:
on eight tables the errors of such targets were .5 to .75 of random sampling's. It holds for those
far above the sources, too: with 30 items they are .98 to 1.00 covered at the whole width, and as
well at this."""
LEAST_BY_FIT = (0.0, 0.1, 0.3), (1.0, 0.75, 0.5)
"""Share of random sampling's width that an interval has at least where answers fit the sources this
badly, by the geometric mean of the p-values of fit and novelty; none above. On eight tables and
three draws it lifts the coverage of targets unlike all sources, which held-out sources are not, at
up to 2% of the Winkler score of those like the sources (docs/intervals.md)."""
FEWEST_IN_TASK = 5
"""A task counts as one with at least so many random items for its least width: the sources say as
much of it. With 8, the worst task of five tables is covered .47 in place of .55."""
UNLIKE = {
    "above": "the target does better than nearly all source models on these items",
    "below": "the target does worse than nearly all source models on these items",
    "misfit": "the target does not answer like the source models",
}
ANSWER_ALIKE = (
    "the source models answer more alike than unrelated models do, as checkpoints of one training "
    "run would: for a model of another run, the interval may be too narrow. If they are relatives, "
    "name their families when you import them (--models FILE with a column family)"
)
SCORE_ALIKE = (
    "all source models score alike, so the method's errors on them say nothing of a model that "
    "differs. The interval is that of as many random items"
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
    """

    method: Method
    scores: Scores
    budget: int
    errors: Callable[[int], HeldOut]
    half_width: float | None = None
    level: float = 0.9

    def quantiles(self, answered: int, first: int = 0, last: int = 1) -> Quantiles | None:
        """Return the quantiles of errors with this number of answers; None with too few sources.

        Of the full score, or of these scores together: the full score is at 0, then come the tasks.
        """
        errors = self.errors(answered)
        return quantiles_of(errors, errors.at(answered), first, last)

    def of(self, score: Scored) -> Uncertainty:
        """Return the uncertainty of a target's full score.

        Of a run that the width of its interval ends, at the level of such looks (`at_looks`).
        """
        uncertainty = self._of_answers(score)
        if self.half_width is None or len(score.answers.items) < FEWEST:
            return uncertainty
        at_end = at_looks(uncertainty)
        low, high = at_end.interval(self.level)
        return at_end if ties.at_least(self.half_width, (high - low) / 2) else uncertainty

    def _of_answers(self, score: Scored) -> Uncertainty:
        items, replies = score.answers.items, score.answers.scores[0]
        bounds = known_bounds(self.scores.item_weights, items, replies)
        estimate = float(score.estimates[0])
        if self._is_random or score.is_plain:
            # Looks that may end a run were checked with the intervals of a simple random sample.
            is_spread = score.is_plain and len(replies) >= ENOUGH and self.half_width is None
            strata = self.scores.task_of[items] if is_spread else None
            return self._of_random(
                estimate, replies, self.scores.n_items, bounds, items=items, strata=strata
            )
        if (error := score.sample_error()) is not None:
            uncertainty = sampled_uncertainty(estimate, *error, bounds, score.sample)
        else:
            uncertainty = self._held_out(score, bounds)
        return with_equal_answers(uncertainty, replies, self.scores.n_items, self.level)

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
        # Two more answers with the variance of a typical source: equal answers do not give a width
        # of 0.
        squares = float(deviations @ deviations) + 2 * self._typical_variance
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
        if self.scores.is_binary and bool(np.isin(answers, (0.0, 1.0)).all()):
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

        elif not self.scores.n_models:

            def ends(level: float) -> tuple[float, float]:
                return betting_interval(np.sort(answers), n_items, level)  # for any order the same

        else:  # how much scores vary is known from the sources
            kind = "sampled"

            def ends(level: float) -> tuple[float, float]:
                return wilson(estimate, spread, freedom, level)

        half = student(spread, freedom)
        error = NORMAL * spread
        return Uncertainty(estimate, kind, half, ends, *bounds, error, sample=sample)

    @property
    def _is_random(self) -> bool:
        """Whether the estimate is the mean of a simple random sample of the full score's items."""
        return self.method.plain_sampling and self.scores.counts_equally

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
        unit = float(units_of(score, self.scores)[0])
        quantiles = self.quantiles(n)
        plain, as_random = NORMAL * self._plain_error(estimate, n), self._as_random(estimate, n)
        beyond, by_fit, why = 0.0, 0.0, None
        if quantiles is not None:
            beyond, by_fit, why = self._random_shares(score.answers)
        shares = beyond, by_fit
        if quantiles is None or (unit > 0 and quantiles.mean < TINY):
            return Uncertainty(
                estimate, "random", as_random, around(estimate, as_random), least, most, plain,
                random_shares=shares,
                warnings=(_too_few(self.scores) if quantiles is None else SCORE_ALIKE,),
            )  # fmt: skip
        wider = _widened_to(by_fit, as_random, quantiles, unit)
        half = _held_out_half([quantiles], unit, wider, beyond, as_random)
        # A target beyond the sources errs more; of one that fits them badly the error to expect
        # grows as much as the interval.
        error = max(quantiles.mean * wider(self.level) * unit, beyond * plain)
        warnings = [] if why is None else [_not_trusted(why, max(shares))]
        warnings += [ANSWER_ALIKE] if are_alike(self.scores) else []
        return Uncertainty(
            estimate, "held-out", half, around(estimate, half), least, most,
            min(error, max(estimate - least, most - estimate)), quantiles.groups,
            random_shares=shares, warnings=tuple(warnings),
        )  # fmt: skip

    def _plain_error(self, estimate: float, n: int) -> float:
        """Return random sampling's standard error."""
        error = standard_error(estimate, n, self.scores.n_items)
        return error * math.sqrt(sampling_effect(self.scores, self.budget))

    def _random_shares(self, answers: Answers) -> tuple[float, float, str | None]:
        """Return the least shares of random sampling's width, and why the sources may not hold.

        As the target may be beyond the sources, and as its answers fit; whole where it is unlike
        them, but for one above them whose score the method can foretell.
        """
        items, replies = np.asarray(answers.items), answers.scores[0]
        theirs, places = self.scores.columns(items, filled=True), np.arange(len(items))
        abilities = fit_abilities(theirs, self.scores.full_scores(), self.scores.n_items)
        why = abilities.beyond(theirs, places, replies, self.method.reach)
        if why is not None:
            foretold = why == "above" and self.method.reach > 0
            return (BEYOND, 0.0, why) if foretold else (1.0, 1.0, why)
        fit = abilities.fit_p_value(theirs, places, replies)
        novelty = novelty_p_value(theirs, replies)
        if min(fit, novelty) <= MISFIT:
            return 1.0, 1.0, "misfit"
        chance = abilities.chance_beyond(abilities.posterior(places, replies))
        return BEYOND * chance, least_by_fit(fit, novelty), None

    def _as_random(self, estimate: float, n: int) -> Callable[[float], float]:
        """Return the half width of as many random items by level, at least that of `random_at`."""
        normal = student(self._plain_error(estimate, n), max(n - 1.0, 1.0))

        def half(level: float) -> float:
            low, high = self.random_at(estimate, n, level)
            return max(normal(level), (high - low) / 2)

        return half

    def random_at(self, score: float, n: int, level: float) -> tuple[float, float]:
        """Return the interval of n random items around a score."""
        effect = sampling_effect(self.scores, self.budget)
        return interval_at(score, n, self.scores.n_items, level, effect)

    def of_tasks(self, score: Scored, full: Uncertainty) -> list[Uncertainty | None]:
        """Return the uncertainty of every task score; None where nothing is known of it.

        `full` is the uncertainty of the full score.
        """
        items, replies = score.answers.items, score.answers.scores[0]
        scores, is_random = self.scores, self._is_random or score.is_plain
        task_of, n = scores.task_of[items], len(items)
        sizes = np.bincount(scores.task_of, minlength=len(scores.tasks))
        least, most = task_bounds(scores, items, replies)
        units = units_of(score, scores)
        beyond, by_fit = full.random_shares
        of_tasks = None
        if not is_random and not score.is_sampled and (of_full := self.quantiles(n)):
            of_tasks = self.quantiles(n, 1, 1 + len(sizes))
            plain = NORMAL * self._plain_error(float(score.estimates[0]), n)
            as_random = self._as_random(float(score.estimates[0]), n)
            wider = _widened_to(by_fit, as_random, of_full, float(units[0]))
            # As many items as random sampling has in each task, or as the target ran.
            run = np.bincount(task_of, minlength=len(sizes))
            as_many = np.maximum(run, n * sizes / scores.n_items)
            widths = np.sqrt(n / np.clip(as_many, min(FEWEST_IN_TASK, n), n))
        uncertainties: list[Uncertainty | None] = []
        for task, estimate in enumerate(score.estimates[1:].tolist()):
            answers, size = replies[task_of == task], int(sizes[task])
            ends = float(least[task]), float(most[task])
            uncertainties.append(None)
            if is_random:
                if len(answers):
                    uncertainties[-1] = self._of_random(estimate, answers, size, ends)
            elif score.is_sampled:
                if (error := score.sample_error(1 + task)) is not None:
                    uncertainties[-1] = sampled_uncertainty(estimate, *error, ends)
            elif of_tasks is not None:
                # A task's own errors count as much as those of all tasks.
                quantiles = of_tasks, self.quantiles(n, 1 + task, 2 + task) or of_tasks
                unit, share = float(units[1 + task]), beyond * float(widths[task])
                half = _held_out_half(quantiles, unit, wider, share, as_random)
                expected = fmean(each.mean for each in quantiles) * wider(self.level) * unit
                uncertainties[-1] = Uncertainty(
                    estimate, "held-out", half, around(estimate, half), *ends,
                    max(expected, share * plain), of_tasks.groups,
                )  # fmt: skip
            if (of_task := uncertainties[-1]) is not None:
                uncertainties[-1] = reaching_end(of_task, answers)
        return uncertainties


def _widened_to(
    share: float, as_random: Callable[[float], float], quantiles: Quantiles, unit: float
) -> Callable[[float], float]:
    """Return by how much intervals from held-out errors widen to this share of random's."""
    return lambda level: max(1.0, share * as_random(level) / max(quantiles.at(level) * unit, TINY))


def _held_out_half(
    quantiles: Sequence[Quantiles],
    unit: float,
    wider: Callable[[float], float],
    share: float,
    as_random: Callable[[float], float],
) -> Callable[[float], float]:
    """Return the half width by level: by the mean quantile, and at least this share of random's."""

    def half(level: float) -> float:
        quantile = fmean(each.at(level) for each in quantiles)
        return max(quantile * wider(level) * unit, share * as_random(level))

    return half


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
    times = "" if share == 1 else f"{share:g} times "
    return (
        f"{UNLIKE[why]}, so the method's errors on them may not hold. The interval is at least "
        f"{times}as wide as that of as many random items"
    )


def _too_few(sources: Scores) -> str:
    groups = len(np.unique(source_groups(sources)[is_known(sources)]))
    why = "the method's error could not be measured on parts of the source models"
    if groups < 2 * FEWEST_GROUPS:
        few = independent_in_words(sources, groups)
        why = f"{few}: too few to measure the method's error"
    return f"{why}. The interval is that of as many random items: the method may be worse"


def least_by_fit(fit: float, novelty: float) -> float:
    """Return the least share of random sampling's width by the p-values of fit and novelty.

    >>> least_by_fit(0.1, 0.1), least_by_fit(0.5, 0.5)
    (0.75, 0.0)
    """
    likeness, (worst, shares) = math.sqrt(fit * novelty), LEAST_BY_FIT
    return float(np.interp(likeness, worst, shares)) if likeness <= worst[-1] else 0.0
