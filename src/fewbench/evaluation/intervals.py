"""Intervals, expected errors and warnings.

- Plain random sampling needs no past errors (`sampling`).
- Every other method's interval comes from its errors on held-out sources (`calibration`), in units
  of each target's spread.
- A target that answers better than nearly all sources may be beyond their range. The ends of the
  interval then move towards those from the method's errors on the strongest sources, learned from
  weaker ones, in proportion to the probability that the target is beyond.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from fewbench._threads import one_thread
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.item_curves import logit
from fewbench.evaluation.beyond import RELIABLE, place, reliability
from fewbench.evaluation.bounds import known_bounds
from fewbench.evaluation.calibration import (
    Calibration,
    cross_fits,
    frontier_fits,
    sample_error,
    sample_fit,
    typical_variance,
)
from fewbench.evaluation.packed import provenance_of
from fewbench.evaluation.past_errors import ADJACENT, KeptErrors, PastErrors
from fewbench.evaluation.sampling import (
    betting_interval,
    error_within,
    exact_interval,
    exact_sequence,
    standard_error,
)
from fewbench.executors import Pool
from fewbench.methods import find_method
from fewbench.methods.base import Method
from fewbench.methods.catalogue import STRONGER
from fewbench.scores import Scores
from fewbench.scores.packed import PackedScores

Kind = Literal["exact", "betting", "cross-fitted", "frontier", "bounds"]

DIVISIONS = 3
CHEAP = 250_000
"""Most cells for which a quick static method is cross-fitted on several divisions."""
PRIOR_BEYOND = 0.25
"""Prior probability that a target is beyond the sources."""
LEAST_CHANCE = 0.1
"""Below this chance to exceed the sources' 95 % quantile, a target is not beyond them."""
FEWEST_BEYOND = 4
TINY = 1e-9
EDGE = 1e-4
"""Chances are kept this far from 0 and 1 before their logits are taken."""
ALIKE = (
    "all source models score alike, so the method's errors on them say nothing of a model that "
    "differs: the interval shows only what the answers leave possible"
)
SAID_FROM = 0.3
"""Probability of being beyond the sources from which an estimate warns."""
RARE = 0.15
"""Warn only if at most this share of held-out sources is as likely to be beyond."""


@dataclass(frozen=True)
class Judgment:
    """Interval and expected error of an estimate, in [0, 1].

    Attributes
    ----------
    low, high : float
        The interval, within what the answers leave possible; it contains the estimate.
    kind : str
        exact: hypergeometric; betting: valid for any scores; cross-fitted: errors on held-out
        sources; frontier: errors on the strongest sources, learned from weaker ones; bounds: only
        what the answers leave possible.
    sources : int or None
        Number of independent sources or families behind the interval.
    expected_error : float or None
        Expected absolute error.
    beyond : float
        Probability that the target is beyond the sources: the weight of the frontier.
    is_beyond : bool
        Whether the estimate warns of it.
    warnings : tuple of str
    """

    low: float
    high: float
    kind: Kind
    sources: int | None
    expected_error: float | None
    beyond: float
    is_beyond: bool
    warnings: tuple[str, ...]


class ErrorModel:
    """A method's errors on a table of sources.

    Attributes
    ----------
    pool : Pool or None
        Where errors are measured: in this process by default.

    Parameters
    ----------
    method : Method
    scores : Scores
        The sources.
    budget, seed : int
        As for the evaluation itself.
    divisions : int, optional
        Number of divisions of the sources for the cross-fit (default: 3 for a static method that
        learns quickly on at most 250,000 cells, else 1).
    folder : Path, optional
        Where the errors are kept.
    limit : int, optional
        Judge the method after so many answers of the budget.
    together : sequence of int or None, optional
        Measure these limits at the same time, increasing, None last: a method that asks again and
        again is then run once, not once for each.
    kept : KeptErrors, optional
        Where another model of the same method keeps its errors, in place of `folder`.
    looks : sequence of int, optional
        Earlier numbers of answers at which the run could have ended. An interval then holds
        whenever its width ends the run.
    """

    def __init__(
        self,
        method: Method,
        scores: Scores,
        budget: int,
        seed: int,
        divisions: int | None = None,
        folder: Path | None = None,
        limit: int | None = None,
        together: Sequence[int | None] | None = None,
        kept: KeptErrors | None = None,
        looks: Sequence[int] | None = None,
    ) -> None:
        self.pool: Pool | None = None
        self._looks = looks
        self._method, self._scores, self._budget, self._seed = method, scores, budget, seed
        self._limit = limit
        if divisions is None:
            quick = method.asks_once and not method.costly
            divisions = DIVISIONS if quick and scores.n_models * scores.n_items <= CHEAP else 1
        self._divisions = divisions
        made_of = (scores.fingerprint, scores.average, method.describe(), budget, seed, divisions)
        self._together = (limit,) if together is None else tuple(together)
        self.kept = KeptErrors(folder, *made_of) if kept is None else kept
        if isinstance(scores, PackedScores):
            made = provenance_of(scores)
            if (made.settings, made.budget, made.seed) == (method.describe(), budget, seed):
                self.kept.add(scores.origin.errors)
        self._samples: dict[int, Calibration] = {}
        self._beyond: dict[str, PastErrors] = {}
        # With a macro average, the exact interval ignores tasks that were not drawn.
        self._plain = method.plain_sampling and scores.average == "micro"

    @cached_property
    def inside(self) -> Calibration:
        """The method's cross-fitted errors."""
        past = self.kept.get(_name("inside", self._limit))
        if past is None:
            with one_thread():
                found = cross_fits(
                    *(self._method, self._scores, self._budget, self._seed, self._together),
                    divisions=self._divisions,
                    pool=self.pool,
                )
            past = self._keep("inside", [one.past for one in found])
        return Calibration(past, self._scores.n_models - len(np.unique(past.models)))

    @cached_property
    def _inside_ever(self) -> Calibration:
        """`inside` with the largest error of each source at any look."""
        return Calibration(self._worst("inside", self.inside.past), self.inside.unused)

    @cached_property
    def _frontier_ever(self) -> "Frontier | None":
        if self.frontier is None or not self._looks:
            return self.frontier
        return Frontier(self._worst("frontier", self.frontier.past), self.inside.past)

    def _worst(self, kept_as: str, past: PastErrors) -> PastErrors:
        """Return each source's largest relative error up to now, of the looks that were taken.

        A band as wide as these errors holds at all looks together, so also where the run ends.
        """
        largest = past.relative
        taken = self.kept.names() if self._looks else set()  # one reading of the file for all looks
        for name in (_name(kept_as, look) for look in self._looks or ()):
            other = self.kept.get(name) if name in taken else None
            if other is not None and np.array_equal(other.models, past.models):
                largest = np.where(
                    np.abs(other.relative) > np.abs(largest), other.relative, largest
                )
        return replace(past, errors=largest * past.spreads)

    @cached_property
    def frontier(self) -> "Frontier | None":
        """The method's errors beyond weaker sources; None if there are too few sources."""
        past = self._beyond_errors("frontier", self._method)
        enough = len(np.unique(past.models)) >= FEWEST_BEYOND and len(np.unique(past.step)) > 1
        return Frontier(past, self.inside.past) if enough else None

    def _beyond_errors(self, kept_as: str, method: Method) -> PastErrors:
        if kept_as in self._beyond:
            return self._beyond[kept_as]
        past = self.kept.get(_name(kept_as, self._limit))
        if past is None:
            how = (method, self._scores, self._budget, self._seed, self._together)
            with one_thread():
                past = self._keep(kept_as, frontier_fits(*how, pool=self.pool))
        self._beyond[kept_as] = past
        return past

    def _keep(self, kept_as: str, pasts: Sequence[PastErrors]) -> PastErrors:
        """Keep what was measured together, and return what belongs to the limit."""
        for limit, past in zip(self._together, pasts, strict=True):
            self.kept.put(_name(kept_as, limit), past)
        return pasts[self._together.index(self._limit)]

    def warn(self, unit: float) -> list[str]:
        """Return warnings about the method on these sources; `unit` is the scale's span."""
        if self._method.plain_sampling:
            return []
        found = []
        error, random = self.inside.past.mean_error, self.inside.past.mean_random
        if error is not None and random is not None and error >= random and error > 0:
            found.append(
                f"on held-out source models, this method's mean error is {error * unit:.3g}; that "
                f"of random sampling is {random * unit:.3g}. Use random, or compare methods "
                "(fewbench compare)"
            )
        alpha = reliability(self._scores)
        if self._scores.n_models > 2 and alpha < RELIABLE:
            found.append(
                f"the source models hardly differ in ability (reliability {max(alpha, 0):.2f} of "
                "1), so they do not show how a better model answers. Use random if the target is "
                "better"
            )
        return found

    def judge(
        self,
        estimates: FloatArray,
        items: Sequence[IntArray],
        answers: Sequence[FloatArray],
        level: float,
        spreads: FloatArray | None = None,
    ) -> list[Judgment]:
        """Judge estimates of targets.

        Parameters
        ----------
        estimates : ndarray, shape (targets,)
            Within what the answers leave possible.
        items, answers : sequences of ndarray
            Each target's items, as positions, and scores in [0, 1].
        level : float
            Stated coverage.
        spreads : ndarray, shape (targets,), optional
            The method's own standard errors.
        """
        if self._plain:
            return [
                self._judge_sample(float(estimate), at, scores, level)
                for estimate, at, scores in zip(estimates, items, answers, strict=True)
            ]
        placed = None if self._method.plain_sampling else place(self._scores, items, answers)
        found = []
        for row, (estimate, at, scores) in enumerate(zip(estimates, items, answers, strict=True)):
            chance, distance = 0.0, 0.0  # a sample's mean does not use the sources
            if placed is not None:
                chance, distance = float(placed.chance[row]), float(placed.distance[row])
            spread = standard_error(float(estimate), len(at), self._scores.n_items)
            if spreads is not None:
                spread = float(spreads[row])
            found.append(
                self._judge_one(float(estimate), spread, at, scores, chance, distance, level)
            )
        return found

    def _judge_sample(
        self, estimate: float, items: IntArray, answers: FloatArray, level: float
    ) -> Judgment:
        n, n_items = len(items), self._scores.n_items
        kind: Kind = "exact"
        sources = None
        effect = 1.0
        if self._scores.is_binary and bool(np.isin(answers, (0.0, 1.0)).all()):
            interval = exact_interval if self._looks is None else exact_sequence
            low, high = interval(round(estimate * n), n, n_items, level)
        else:
            kind = "betting"
            any_time = self._looks is not None
            # In the order asked, or the same for any order of answers.
            sample = answers if any_time else answers[np.argsort(items)]
            low, high = betting_interval(sample, n_items, level, any_time=any_time)
            spread = sample_error(sample, n_items, self._typical_variance)
            half, units, warning = self._of_samples(n).half_width(level, spread)
            if not any_time and warning is None and 2 * half < high - low:
                kind, sources = "cross-fitted", units
                low, high = estimate - half, estimate + half
            binomial = standard_error(estimate, n, n_items)
            effect = (spread / binomial) ** 2 if binomial > 0 else 1.0
        low, high = self._bounded(estimate, low, high, items, answers)
        error = error_within(low, high, n, n_items, effect)
        return Judgment(low, high, kind, sources, error, 0.0, False, ())

    def _of_samples(self, n: int) -> Calibration:
        """Errors of random samples of n items of the sources' own scores."""
        if n not in self._samples:
            self._samples[n] = Calibration(sample_fit(self._scores, n, self._seed))
        return self._samples[n]

    @cached_property
    def _typical_variance(self) -> float:
        return typical_variance(self._scores)

    def _judge_one(
        self,
        estimate: float,
        spread: float,
        items: IntArray,
        answers: FloatArray,
        chance: float,
        distance: float,
        level: float,
    ) -> Judgment:
        half, sources, warning = self._inside_ever.half_width(level, spread)
        error = self.inside.past.typical(spread)
        kind: Kind = "cross-fitted" if np.isfinite(half) else "bounds"
        if spread > 0 and half < TINY:
            half, kind, error = np.inf, "bounds", None
            warning = ALIKE
        low, high = estimate - half, estimate + half
        weight = 0.0
        if chance >= LEAST_CHANCE:
            weight = chance if self.frontier is None else self.frontier.weight(chance)
        if weight > 0 and self.frontier is not None and self._frontier_ever is not None:
            past, ends = self.frontier.past, self._frontier_ever.ends(distance, level)
            below, above = (estimate + spread * end for end in ends)
            if np.isfinite(half):
                low, high = low + weight * (below - low), high + weight * (above - high)
            elif weight >= 0.5:
                low, high = below, above
            typical = past.typical(spread)
            if error is not None and typical is not None:
                error += weight * (typical - error)
            if weight >= 0.5:
                kind, sources = "frontier", self.frontier.units
        low, high = self._bounded(estimate, low, high, items, answers)
        if error is not None:  # at most what the answers leave possible
            least, most = known_bounds(self._scores.item_weights, items, answers)
            error = min(error, max(estimate - least, most - estimate))
        warnings = () if warning is None else (warning,)
        # Few targets within the range may be warned of; fewer still without a frontier.
        alike = float(self.inside.past.weights @ (self.inside.past.chance >= chance))
        rare = alike <= (RARE if self.frontier is not None else RARE / 3)
        is_beyond = weight >= SAID_FROM and rare
        return Judgment(low, high, kind, sources, error, weight, is_beyond, warnings)

    def _bounded(
        self, estimate: float, low: float, high: float, items: IntArray, answers: FloatArray
    ) -> tuple[float, float]:
        """Cut to what the answers leave possible, and include the estimate.

        The exact test may reject the sample mean itself, as it is no multiple of 1/N.
        """
        least, most = known_bounds(self._scores.item_weights, items, answers)
        return max(least, min(low, estimate)), min(most, max(high, estimate))

    def beyond_warning(self, name: str, unit: float) -> str:
        """Return the warning for a target beyond the sources; `unit` is the scale's span."""
        said = (
            "the target answers better than nearly all source models; its score may exceed theirs"
        )
        if self.frontier is None:
            return f"{said}. There are too few source models to measure the error of {name} there"
        past = self.frontier.past
        error, random = past.mean_error or 0.0, past.mean_random or 0.0
        said += (
            f". On your strongest source models, estimated from weaker ones, the mean error of "
            f"{name} is {error * unit:.3g}, that of random sampling {random * unit:.3g}"
        )
        bias = float(past.weights @ past.errors)
        if abs(bias) > 0.5 * error:
            said += f"; {name} {'underestimates' if bias > 0 else 'overestimates'} them"
        best, least = name, min(error, random)
        for other in STRONGER:
            method = find_method(other)
            if not method.asks_once:  # too slow
                continue
            found = self._beyond_errors(f"frontier of {other}", method).mean_error
            if found is not None and found < least:
                best, least = other, found
        if best != name:
            return f"{said}. Use {best}: its mean error is the least, {least * unit:.3g}"
        return f"{said}. Use random" if random < error else said


@dataclass(frozen=True, eq=False)
class Frontier:
    """A method's errors on the strongest sources, learned from weaker ones.

    Signed errors, in units of their spread, follow a line over the target's distance beyond the
    sources. Around the line they vary within and between divisions of the sources.

    Attributes
    ----------
    past, inside : PastErrors
        Errors beyond the weaker sources, and cross-fitted errors within the range of all.
    """

    past: PastErrors
    inside: PastErrors

    def ends(self, distance: float, level: float) -> tuple[float, float]:
        """Return the ends of the prediction interval of a relative signed error."""
        from scipy.special import stdtrit

        line, (within, between) = self._line, self._variances
        steps, units = len(np.unique(self.past.step)), self.units
        from_mean = distance - line.mean
        middle = line.level + line.slope * from_mean
        variance = within * (1 + 1 / units + from_mean**2 / (line.variance * units))
        freedom = units - 2.0
        if between > 0:  # Satterthwaite's degrees of freedom of the sum
            variance += between * (1 + 1 / steps)
            total = (within + between) ** 2
            freedom = total / (within**2 / (units - 2) + between**2 / (steps - 1))
        half = float(stdtrit(freedom, 0.5 + level / 2)) * float(np.sqrt(variance))
        return middle - half, middle + half

    @property
    def units(self) -> int:
        """Number of judged groups of sources; of judged sources, if groups are too few."""
        groups = self.past.n_groups
        return groups if groups >= FEWEST_BEYOND else len(np.unique(self.past.models))

    def weight(self, chance: float) -> float:
        """Return the probability that a target with this chance is beyond the sources."""
        level, slope = self._logistic
        return float(1 / (1 + np.exp(-(level + slope * logit(chance, EDGE)))))

    @cached_property
    def _line(self) -> "_Line":
        x, errors, weights = self.past.distance, self.past.relative, self.past.weights
        mean = float(weights @ x)
        variance = float(weights @ (x - mean) ** 2)
        # The slope is shrunk: there are few distances, and they are close together.
        slope = float(weights @ ((x - mean) * errors)) / (variance + 0.25)
        return _Line(float(weights @ errors), slope, mean, max(variance, 0.01))

    @cached_property
    def _variances(self) -> tuple[float, float]:
        """Variance of relative errors around the line, within divisions and between them."""
        line, weights, units = self._line, self.past.weights, self.units
        rest = self.past.relative - line.level - line.slope * (self.past.distance - line.mean)
        names, step = np.unique(self.past.step, return_inverse=True)
        if len(names) < 3:
            return float(weights @ rest**2) * units / (units - 1), 0.0
        means = np.bincount(step, weights * rest) / np.bincount(step, weights)
        within = float(weights @ (rest - means[step]) ** 2) * units / (units - 1)
        between = float(means.var(ddof=1))
        return within, max(0.0, between - within / units)

    @cached_property
    def _logistic(self) -> tuple[float, float]:
        """Level and slope of the logistic regression of frontier or inside on the log odds.

        The frontier consists of the sources just above those learned from, with `PRIOR_BEYOND` of
        the weight.
        """
        just = np.isin(self.past.step, np.unique(self.past.step)[:ADJACENT])
        inside, outside = logit(self.inside.chance, EDGE), logit(self.past.chance[just], EDGE)
        if not len(outside) or not len(inside):
            return float(logit(PRIOR_BEYOND)), 0.0
        x = np.concatenate([inside, outside])
        label = np.repeat([0.0, 1.0], [len(inside), len(outside)])
        share = np.where(label, PRIOR_BEYOND / len(outside), (1 - PRIOR_BEYOND) / len(inside))
        weights = share * 2 * len(outside)
        centre, scale = x.mean(), x.std() + 1e-9
        design = np.column_stack([np.ones_like(x), (x - centre) / scale])
        ridge = np.diag([1e-6, 0.01 * len(outside)])
        found = np.array([0.0, 1.0])
        for _ in range(50):
            chance = 1 / (1 + np.exp(-np.clip(design @ found, -30, 30)))
            slope = design.T @ (weights * (label - chance)) - ridge @ found
            curvature = (design.T * (weights * chance * (1 - chance))) @ design + ridge
            step = np.clip(np.linalg.solve(curvature, slope), -1, 1)
            found = found + step
            if np.abs(step).max() < 1e-8:
                break
        slope = max(float(found[1]), 0.0) / scale
        level = float(found[0]) if found[1] > 0 else float(logit(PRIOR_BEYOND))
        return level - slope * centre, slope


@dataclass(frozen=True)
class _Line:
    level: float
    slope: float
    mean: float
    variance: float


def _name(kept_as: str, limit: int | None) -> str:
    return kept_as if limit is None else f"{kept_as} after {limit}"
