"""How far a full score may be from its estimate: one rule for every command.

- Plain random sampling: exact for right and wrong answers, betting for others (`sampling`).
- Items that are a sample with known probabilities: Wilson's interval with the number of random
  items that would be as precise, and Student's t.
- Every other estimate: quantiles of the method's errors on held-out sources (`errors`).

Held-out errors say nothing of a target unlike the sources. Its ability may be far beyond theirs,
above or below, or its answers may not fit (`fewbench.algorithms.abilities`). The interval is then
at least as wide as that of as many random items, and the estimate warns. Between, where a target
may be somewhat beyond the sources, it is at least 3/4 as wide times the probability of that. Task
intervals widen as much as the full score's.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from fewbench._blocks import by_rows
from fewbench._names import counted
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.abilities import Abilities, fit_abilities
from fewbench.evaluation.bounds import known_bounds, task_bounds
from fewbench.evaluation.errors import (
    HeldOut,
    equal_weights,
    is_known,
    looks_of,
    measure,
    units_of,
)
from fewbench.evaluation.quantiles import Quantiles
from fewbench.evaluation.sampling import (
    betting_interval,
    exact_interval,
    exact_sequence,
    interval_at,
    sampling_effect,
    standard_error,
)
from fewbench.evaluation.uncertainty import (
    NORMAL,
    TINY,
    Kind,
    Scored,
    Uncertainty,
    around,
    inward,
    sampled_uncertainty,
    student,
    wilson,
)
from fewbench.executors import Pool
from fewbench.methods.base import Answers, Method
from fewbench.methods.sources import source_groups
from fewbench.scores import Sources

FEWEST_GROUPS = 3
MISFIT = 0.02
"""p-value of the answers' fit from which an estimate warns."""
BEYOND = 0.75
"""Share of random sampling's width that the interval of a target beyond the sources has at least:
on eight tables the errors of such targets were .5 to .75 of random sampling's."""
UNLIKE = {
    "above": "the target scores far above nearly all source models",
    "below": "the target scores far below nearly all source models",
    "misfit": "the target does not answer like the source models",
}


@dataclass(eq=False)
class Judge:
    """Says how far a method's estimates may be off, on a table of sources.

    Parameters
    ----------
    method : Method
    scores : Scores
        The sources.
    budget, seed : int
        As for the evaluation.
    folder : Path, optional
        Where measured errors are kept.
    half_width, level : float, optional
        The run stops when the interval at this level has this half width, in [0, 1].
    held : HeldOut, optional
        Errors that are known already.
    """

    method: Method
    scores: Sources
    budget: int
    seed: int
    folder: Path | None = None
    half_width: float | None = None
    level: float = 0.9
    held: HeldOut | None = None
    pool: Pool | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self._quantiles: dict[tuple[int, bool], Quantiles | None] = {}
        self._abilities: dict[bytes, Abilities] = {}
        self._shares: dict[tuple[bytes, bytes], tuple[float, str | None]] = {}

    # -- errors on held-out sources ------------------------------------------------------------

    def errors(self, answered: int | None = None) -> HeldOut:
        """Return the method's errors; of a part of the answers, at the looks up to the budget."""
        if self.held is not None:
            return self.held
        every = looks_of(self.budget)
        looks = every
        if self.method.asks_once and self.half_width is None:
            few = len(every) > 1 and answered is not None and answered < every[-1]
            looks = every[:-1] if few else every[-1:]
        how = (self.method, self.scores.table(), self.budget, self.seed, looks)
        return measure(*how, folder=self.folder, pool=self.pool)

    def quantiles(self, answered: int, *, tasks: bool = False) -> Quantiles | None:
        """Return the quantiles of errors with this number of answers; None with too few sources."""
        held = self.errors(answered)
        at = held.at(answered)
        key = (int(held.looks[at]), tasks)
        if key not in self._quantiles:
            relative = held.relative[:, at, 1:] if tasks else held.relative[:, at, :1]
            groups = np.repeat(held.groups, relative.shape[1])
            known = np.isfinite(relative.ravel())
            found = Quantiles(relative.ravel()[known], groups[known]) if known.any() else None
            enough = found is not None and found.groups >= FEWEST_GROUPS
            self._quantiles[key] = found if enough else None
        return self._quantiles[key]

    @cached_property
    def _stop_ratio(self) -> float:
        """How much wider intervals are for the rule to stop at a half width.

        The least q, with all larger ones, for which held-out sources that stop at the first look
        with q units <= half width miss at most 1 - level; over the quantile of one look.
        """
        held, last = self.errors(), self.quantiles(self.budget)
        if self.half_width is None or last is None or len(held.looks) < 2:
            return 1.0
        known = (held.units[:, :, 0] >= 0).all(axis=1)
        units, relative = held.units[known, :, 0], np.abs(held.relative[known, :, 0])
        weights = equal_weights(held.groups[known])
        candidates = np.unique(relative)
        rows = np.arange(len(units))
        misses = np.empty(len(candidates))
        for at, q in enumerate(candidates):
            narrow = q * units <= self.half_width
            narrow[:, -1] = True
            misses[at] = weights @ (relative[rows, narrow.argmax(axis=1)] > q + TINY)
        too_many = np.flatnonzero(misses > 1 - self.level + TINY)
        first = int(too_many[-1]) + 1 if len(too_many) else 0
        if first >= len(candidates):
            first = len(candidates) - 1
        plain = last.plain(self.level)
        return max(1.0, float(candidates[first]) / plain) if plain > 0 else 1.0

    # -- one target ----------------------------------------------------------------------------

    def of(self, one: Scored, *, stopping: bool = False) -> Uncertainty:
        """Return the uncertainty of a target's full score.

        With `stopping`, for a run that the width of the interval may end.
        """
        items, own = one.answers.items, one.answers.scores[0]
        least, most = known_bounds(self.scores.item_weights, items, own)
        estimate = float(one.estimates[0])
        if self._is_random or (one.is_plain and not stopping):
            return self._of_random(
                estimate, own, self.scores.n_items, (least, most), any_time=stopping, items=items
            )
        if (sample := one.sample()) is not None:
            spread, freedom = sample
            if stopping:
                spread *= inward(estimate, wilson(estimate, spread, freedom, self.level))
            return sampled_uncertainty(estimate, spread, freedom, (least, most), one.influence)
        return self._held_out(one, least, most, stopping)

    def _of_random(
        self,
        estimate: float,
        answers: FloatArray,
        n_items: int,
        bounds: tuple[float, float],
        *,
        any_time: bool = False,
        items: IntArray | None = None,
    ) -> Uncertainty:
        """Return the uncertainty of the mean of a simple random sample of n_items items.

        `answers` are in the order in which they were drawn; `items` are their positions, where the
        errors of two targets are compared.
        """
        n = len(answers)
        left = max(1 / n - 1 / n_items, 0.0)
        deviations = answers - answers.mean()
        variance = (float(deviations @ deviations) + 2 * self._typical_variance) / (n + 1)
        spread, freedom = math.sqrt(variance * left), max(n - 1.0, 1.0)
        influence = None
        if items is not None:
            influence = np.zeros(self.scores.n_items)
            influence[items] = deviations
        kind: Kind = "betting"
        if self.scores.is_binary and bool(np.isin(answers, (0.0, 1.0)).all()):
            kind = "exact"
            exact = exact_sequence if any_time else exact_interval
            hits = round(float(answers.sum()))

            def ends(level: float) -> tuple[float, float]:
                return exact(hits, n, n_items, level)

        elif any_time or not self.scores.n_models:
            # In the order drawn, or the same for any order of answers.
            sample = answers if any_time else np.sort(answers)

            def ends(level: float) -> tuple[float, float]:
                return betting_interval(sample, n_items, level, any_time=any_time)

        else:  # how much scores vary is known from the sources
            kind = "sampled"

            def ends(level: float) -> tuple[float, float]:
                return wilson(estimate, spread, freedom, level)

        half = student(spread, freedom)
        error = NORMAL * spread
        return Uncertainty(estimate, kind, half, ends, *bounds, error, influence=influence)

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
        return float(by_rows(scores.table().filled_cells, lambda part: part.var(axis=1)).mean())

    def _held_out(self, one: Scored, least: float, most: float, stopping: bool) -> Uncertainty:
        items, estimate = one.answers.items, float(one.estimates[0])
        n = len(items)
        units = units_of(one.estimates, items, self.scores, one.spread, one.task_spread)
        unit = float(units[0])
        found = self.quantiles(n)
        plain = self._plain_error(estimate, n)
        if found is None or (unit > 0 and found.mean < TINY):
            as_random = self._as_random(estimate, n)
            return Uncertainty(
                estimate, "random", as_random, around(estimate, as_random), least, most,
                NORMAL * plain, warnings=(self._too_few(found),),
            )  # fmt: skip
        share, why = self._random_share(one.answers)
        wider = self._wider(share, estimate, n, found, unit)
        ratio = self._stop_ratio if stopping else 1.0

        def half(level: float) -> float:
            return found.at(level) * unit * max(ratio, wider(level))

        warnings = () if why is None else (self._not_trusted(why),)
        error = max(found.mean * unit, share * NORMAL * plain)
        error = min(error, max(estimate - least, most - estimate))
        return Uncertainty(
            estimate, "held-out", half, around(estimate, half), least, most, error,
            found.groups, None, warnings,
        )  # fmt: skip

    def _plain_error(self, estimate: float, n: int) -> float:
        """Return random sampling's standard error."""
        error = standard_error(estimate, n, self.scores.n_items)
        return error * math.sqrt(sampling_effect(self.scores, self.budget))

    def _random_share(self, answers: Answers) -> tuple[float, str | None]:
        """Return the least share of random sampling's width, and why it is whole, or None.

        Kept, for the full score and the tasks both ask.
        """
        key = np.asarray(answers.items).tobytes(), answers.scores[0].tobytes()
        if key not in self._shares:
            why = self.unlike(answers)
            share = BEYOND * self._beyond(answers) if why is None else 1.0
            self._shares[key] = share, why
        return self._shares[key]

    def _wider(
        self, share: float, estimate: float, n: int, found: Quantiles, unit: float
    ) -> Callable[[float], float]:
        """Return by how much intervals from held-out errors widen to this share of random's."""
        least = self._as_random(estimate, n)
        return lambda level: max(1.0, share * least(level) / max(found.at(level) * unit, TINY))

    def _as_random(self, estimate: float, n: int) -> Callable[[float], float]:
        """Return the half width of as many random items by level, at least that of `random_at`."""
        normal = student(self._plain_error(estimate, n), max(n - 1.0, 1.0))

        def half(level: float) -> float:
            low, high = self.random_at(estimate, n, level)
            return max(normal(level), (high - low) / 2)

        return half

    def _too_few(self, found: Quantiles | None) -> str:
        if found is None:
            groups = len(np.unique(source_groups(self.scores)[is_known(self.scores.table())]))
            why = "the method's error could not be measured on parts of the source models"
            if groups < 2 * FEWEST_GROUPS:
                few = counted(groups, "independent source model")
                why = f"{few}: too few to measure the method's error"
            return f"{why}. The interval is that of as many random items: the method may be worse"
        return (
            "all source models score alike, so the method's errors on them say nothing of a model "
            "that differs. The interval is that of as many random items"
        )

    def _not_trusted(self, why: str) -> str:
        return (
            f"{UNLIKE[why]}, so the method's errors on them may not hold. The interval is at least "
            "as wide as that of as many random items"
        )

    def unlike(self, answers: Answers) -> str | None:
        """Return why a target is unlike the sources (see `Abilities.unlike`), or None."""
        if self.scores.n_models < 2:
            return None
        items, own = np.asarray(answers.items), answers.scores[0]
        theirs = self.scores.columns(items, filled=True)
        places: IntArray = np.arange(len(items))
        abilities = self._abilities_by(items)
        return abilities.unlike(theirs, places, own, self.method.reach, MISFIT)

    def _beyond(self, answers: Answers) -> float:
        """Return the probability that a target is above or below nearly all sources."""
        abilities = self._abilities_by(np.asarray(answers.items))
        places: IntArray = np.arange(len(answers.items))
        return abilities.chance_beyond(abilities.posterior(places, answers.scores[0]))

    def _abilities_by(self, items: IntArray) -> Abilities:
        """Return abilities by the answers to these items."""
        key = items.tobytes()
        if key not in self._abilities:
            full = self.scores.full_scores()
            theirs = self.scores.columns(items, filled=True)
            self._abilities[key] = fit_abilities(theirs, full, self.scores.n_items)
        return self._abilities[key]

    # -- tasks ---------------------------------------------------------------------------------

    def of_tasks(self, one: Scored) -> list[Uncertainty | None]:
        """Return the uncertainty of every task score; None where nothing is known of it."""
        items, own = one.answers.items, one.answers.scores[0]
        scores, is_random = self.scores, self._is_random or one.is_plain
        task_of = scores.task_of[items]
        sizes = np.bincount(scores.task_of, minlength=len(scores.tasks))
        least, most = task_bounds(scores, items, own)
        units = units_of(one.estimates, items, scores, one.spread, one.task_spread)
        found = None
        if not is_random and not one.is_sampled and (full := self.quantiles(len(items))):
            found = self.quantiles(len(items), tasks=True)
            share, _ = self._random_share(one.answers)
            wider = self._wider(share, float(one.estimates[0]), len(items), full, units[0])
        made: list[Uncertainty | None] = []
        for task, estimate in enumerate(one.estimates[1:].tolist()):
            answers, size = own[task_of == task], int(sizes[task])
            n, bounds = len(answers), (float(least[task]), float(most[task]))
            made.append(None)
            if is_random:
                if n:
                    made[-1] = self._of_random(estimate, answers, size, bounds)
            elif one.is_sampled:
                if (sample := one.sample(1 + task)) is not None:
                    made[-1] = sampled_uncertainty(estimate, *sample, bounds)
            elif found is not None:
                half = _times(found.at, wider, float(units[1 + task]))
                made[-1] = Uncertainty(
                    estimate, "held-out", half, around(estimate, half), *bounds,
                    found.mean * float(units[1 + task]), found.groups,
                )  # fmt: skip
        return made

    # -- random sampling -----------------------------------------------------------------------

    def random_at(self, score: float, n: int, level: float) -> tuple[float, float]:
        """Return the interval of n random items around a score."""
        effect = sampling_effect(self.scores, self.budget)
        any_time = self.half_width is not None
        return interval_at(score, n, self.scores.n_items, level, effect, any_time=any_time)


def _times(
    half: Callable[[float], float], wider: Callable[[float], float], unit: float
) -> Callable[[float], float]:
    return lambda level: half(level) * wider(level) * unit
