"""One target's run: what its answers say, which model holds, and which items come next.

The two models are averaged by the probability that the target is beyond the sources: its full
score above the sources' 95 % quantile, by the curves, sharpened by which model foresaw the answers
better:

    logit w = 2.5 logit P(score > q95) + 1/2 (l_beyond - l_inside) + 1

with l the one-step-ahead Bernoulli log scores (no answer is used twice: the Gaussian inside is the
one fitted before each round).

No model learned from the sources promises anything about a target unlike them. After every round,
from the 10th answer on, the run therefore checks two things: whether the target's ability is more
than two standard deviations beyond nearly all sources, above or below, and whether its answers fit
the sources' curves (see `fewbench.algorithms.abilities`). If not, the rest of its items is a sample
with known chances, in proportion to the items' standard deviation at its ability. With fewer than
20 distinct sources all items are a sample, the first 10 with equal chances. The estimate is then
between the models' and the sample's own (see `Run.estimate`).
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.algorithms.abilities import EDGES
from fewbench.algorithms.assisted import Assisted, Phase, assisted
from fewbench.algorithms.item_curves import logistic
from fewbench.algorithms.kriging.design import choose
from fewbench.algorithms.kriging.inside import Gaussian
from fewbench.algorithms.kriging.model import KrigingModel, pool_size
from fewbench.algorithms.sampling import NestedSample

SHARPNESS, EVIDENCE, LEAN = 2.5, 0.5, 1.0
INSIDE_ONLY = 0.15
"""Below this weight items are chosen for the model inside the sources alone."""
PILOT = 10
"""Answers from which a run checks whether the sources can predict the target."""
FAR, MISFIT = 2.0, 0.05
"""Distance beyond the sources, and p-value of the answers' fit, from which the models are not
trusted: to draw the rest of the items costs little."""
ENOUGH = 0.4
"""Least share of the items that must be a sample for an estimate from it."""
CHOSEN = 1 / 3
"""Share of the items that are chosen once for all targets, and not drawn."""
FLOOR = 0.2
"""Part of an item's chance that does not depend on how uncertain its answer is."""
LEAST_SHARE, SOURCES = 0.5, 10.0
"""Least share of the sample in the full score; the other is 10 / (10 + distinct sources)."""
TRUST, CHANCE, AGREED = 2.0, 1.5, 0.87
"""For tasks the models' standard errors count twice. Differences above 1.5 of the sample's standard
errors are not all chance. An estimate on which both agree errs .87 of the sample's error."""
HERMITE = (np.array([-(3**0.5), 0.0, 3**0.5]), np.array([1 / 6, 2 / 3, 1 / 6]))


@dataclass(frozen=True, eq=False)
class Estimated:
    """Wanted scores of one target.

    Attributes
    ----------
    scores, errors : ndarray, shape (wanted,)
        Estimates, in [0, 1], and standard errors.
    beyond : float
        Weight of the model beyond the sources.
    freedom : ndarray, shape (wanted,), optional
        Degrees of freedom, if the errors are those of a sample. NaN where the sample is too small,
        with the models' errors there.
    influence : ndarray, shape (answered,), optional
        What each answer of a sample adds to the error of the first score.
    """

    scores: FloatArray
    errors: FloatArray
    beyond: float
    freedom: FloatArray | None = None
    influence: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Draw:
    """A sample: which items were asked before, and the chances of those asked since.

    `sample` continues it; without one, `chances` are given and there is no next item.
    """

    before: IntArray
    sample: NestedSample | None
    chances: FloatArray | None = None

    def holds(self, items: IntArray) -> BoolArray:
        """Return which items were drawn; others may have been asked for another reason."""
        since = ~np.isin(items, self.before)
        if self.sample is None:
            assert self.chances is not None
            return np.asarray(since & np.isfinite(self.chances[items]))
        return np.asarray(since & np.isin(items, self.sample.take(int(since.sum()))))

    def chances_of(self, n: int) -> FloatArray:
        """Return the chance of each candidate to be among the first n."""
        if self.sample is not None:
            return self.sample.chances(n)
        assert self.chances is not None
        return self.chances


class Run:
    """A target's answers so far.

    Parameters
    ----------
    model : KrigingModel
    start : float
        In [0, 1): random start of the target's sample.
    """

    def __init__(self, model: KrigingModel, start: float = 0.0) -> None:
        self.model, self.start = model, start
        self.draws: list[Draw] = []
        self.checked = 0
        self._filter = model.beyond.start()
        self._inside: Gaussian = model.inside.all_sources
        self._log_score = 0.0
        self.items = np.empty(0, dtype=np.intp)
        self.answers = np.empty(0)

    def hear(self, items: IntArray, answers: FloatArray) -> None:
        """Take one more round of answers; `items` are places among the candidates."""
        if not len(items):
            return
        known = len(self.items)
        self.items = np.concatenate([self.items, items])
        self.answers = np.concatenate([self.answers, answers])
        self._log_score += float(
            self._inside.one_step_ahead(self.items, self.answers)[known:].sum()
        )
        self._filter = self.model.beyond.hear(self._filter, items, answers)
        vars(self).pop("_outside", None)
        self._inside = self.model.inside.near(self.items, self.answers)

    def copy(self) -> "Run":
        """Return a run that can hear more without changing this one."""
        other = copy(self)
        other.draws = [*self.draws]
        return other

    # -- the path ----------------------------------------------------------------------------

    @property
    def is_unlike(self) -> bool:
        """Whether the answers say that the sources cannot predict this target."""
        theirs = self.model.inside.answers(self.items)
        abilities = self.model.abilities
        return abilities.unlike(theirs, self.items, self.answers, FAR, MISFIT) is not None

    @property
    def _abilities(self) -> FloatArray:
        """Posterior weights of the grid of abilities."""
        return self.model.abilities.posterior(self.items, self.answers)

    def designs(self) -> list[tuple[float, Sequence[Gaussian], IntArray]]:
        """Return the models by which the next items are chosen: weight, Gaussians, answered."""
        weight = 0.0
        if len(self.items):
            means, variances = self._outside
            weight = self._beyond(means, variances)
        if weight < INSIDE_ONLY:
            return [(1.0, [self._inside], self.items)]
        return [
            (1 - weight, [self._inside], self.items),
            (weight, self.model.beyond.designs, self.items),
        ]

    # -- the estimate ------------------------------------------------------------------------

    @cached_property
    def _outside(self) -> tuple[FloatArray, FloatArray]:
        """What the model beyond the sources predicts of the answers heard so far."""
        return self.model.beyond.predict(self._filter, self.items, self.answers)

    def _beyond(self, means: FloatArray, variances: FloatArray) -> float:
        """Return the weight of the model beyond the sources, given what it predicts."""
        curves, score = self.model.beyond, self._filter.score
        chance = np.exp(score - score.max())
        deviation = np.sqrt(np.maximum(variances[:, 0], 0))
        above = means[:, :1] + deviation[:, None] * HERMITE[0] > curves.edge_score
        share = float(chance @ (above @ HERMITE[1]) / chance.sum())
        further = curves.grid > curves.edge
        foresaw = float(np.log(chance[further].sum() / further.sum() + 1e-300) + score.max())
        sure = min(max(share, 1e-4), 1 - 1e-4)
        logit = SHARPNESS * np.log(sure / (1 - sure)) + EVIDENCE * (foresaw - self._log_score)
        return float(logistic(logit + LEAN))

    def estimate(self) -> Estimated:
        """Return the wanted scores.

        Of items that are a sample, the estimate lies between the models' and the sample's own. The
        more they differ, beyond what chance explains, the less the models count (as in Stein's
        estimator).
        """
        inside, of_inside = self._inside.predict(self.items, self.answers)
        means, variances = self._outside
        weight = self._beyond(means, variances)
        chance = self._nodes()
        outside = chance @ means
        of_outside = np.maximum(chance @ (means**2 + variances) - outside**2, 0)
        variance = (1 - weight) * of_inside + weight * of_outside
        variance += weight * (1 - weight) * (outside - inside) ** 2
        # Never outside what the answers leave possible; exact when all items were answered.
        own = self.model.beyond.weights[:, self.items]
        least = own @ self.answers
        most = least + np.maximum(1 - own.sum(axis=1), 0)
        score, error = (1 - weight) * inside + weight * outside, np.sqrt(variance)
        found = Estimated(score, error, weight)
        if self._counts_as_sample:
            found = self._with_sample(found)
        return replace(found, scores=np.clip(found.scores, least, most))

    def _nodes(self) -> FloatArray:
        chance = np.exp(self._filter.likelihood - self._filter.likelihood.max())
        return np.asarray(chance / chance.sum())

    @property
    def _counts_as_sample(self) -> bool:
        if not self.draws:
            return False
        drawn = np.zeros(len(self.items), dtype=bool)
        for draw in self.draws:
            drawn |= draw.holds(self.items)
        return bool(drawn.mean() >= ENOUGH)

    def _with_sample(self, models: Estimated) -> Estimated:
        drawn = self._sampled()
        known = np.isfinite(drawn.errors)
        of_sample = np.where(known, drawn.errors, 1.0) ** 2
        of_models = (TRUST * models.errors) ** 2
        share = of_models / np.maximum(of_models + of_sample, 1e-12)
        share[0] = max(LEAST_SHARE, SOURCES / (SOURCES + self.model.distinct))
        apart = (models.scores - drawn.scores) ** 2
        share = np.maximum(share, 1 - CHANCE**2 * of_sample / np.maximum(apart, 1e-12))
        if np.ptp(self.answers) == 0:  # all right or all wrong: nothing speaks for the models
            share[:] = 1.0
        mixed = np.sqrt(of_sample) * (AGREED + (1 - AGREED) * share)
        return Estimated(
            np.where(known, models.scores + share * (drawn.scores - models.scores), models.scores),
            np.where(known, mixed, models.errors),
            models.beyond,
            np.where(known, drawn.freedom, np.nan),
            drawn.influence,
        )

    def _sampled(self) -> Assisted:
        """Return what the sample says by itself, assisted by the curves."""
        model, items = self.model, self.items
        predicted = self._abilities @ model.abilities.chances
        noise, weights = self._noise(), model.beyond.weights
        expected = self._abilities @ model.expected
        phases = []
        for at, draw in enumerate(self.draws):
            until = self.draws[at + 1].before if at + 1 < len(self.draws) else items
            is_drawn = draw.holds(items) & np.isin(items, until)
            places = np.flatnonzero(is_drawn)
            if not len(places):
                continue
            was_before = np.isin(items, draw.before) | (np.isin(items, until) & ~is_drawn)
            earlier = items[was_before]
            known = weights[:, earlier]
            chances = np.maximum(draw.chances_of(len(places))[items[places]], 1e-9)
            left = np.maximum(1 - known.sum(axis=1), 0.0)
            variance = 1.0
            if len(self.draws) > 1:
                rest = np.ones(len(noise), dtype=bool)
                rest[earlier] = False
                every = np.maximum(draw.chances_of(len(places))[rest], 1e-3)
                variance = float((weights[0, rest] ** 2 * noise[rest] / every).sum())
            phases.append(
                Phase(
                    known @ self.answers[was_before],
                    left,
                    expected - known @ predicted[earlier],
                    places,
                    weights[:, items[places]] / chances,
                    variance,
                )
            )
        return assisted(
            phases,
            self.answers,
            predicted[items],
            noise[items],
            float(predicted.var()),
            model.sizes,
        )

    def _noise(self) -> FloatArray:
        """Return the variance of each candidate's answer at the target's ability."""
        chances = self.model.abilities.chances
        return np.asarray(self.model.dispersion * (self._abilities @ (chances * (1 - chances))))


def settle(runs: Sequence[Run], asked: IntArray, costs: FloatArray | None = None) -> None:
    """Decide after a round whether the next items of these targets are a sample.

    Targets that run the same items share the sample.

    Parameters
    ----------
    runs : sequence of Run
        Of one model of the sources.
    asked : ndarray of int
        Places of all items that were asked.
    costs : ndarray, shape (candidates,), optional
        What each item costs: the sample is the one that is most precise for its cost.
    """
    first = runs[0]
    model, n = first.model, len(asked)
    if first.draws:
        latest = first.draws[-1]
        begins = (model.is_sampled and len(first.draws) == 1 and n >= PILOT) or (
            n - len(latest.before) > _pool(model, len(latest.before)) // 2
        )
    else:
        begins = model.is_sampled
        if not begins and n >= max(PILOT, 2 * first.checked):  # after 10, 20, 40 ... answers
            first.checked = n
            begins = any(run.is_unlike for run in runs)
    if not begins:
        return
    sizes = model.beyond.weights[0]
    if first.draws or not model.is_sampled:
        sizes = _sizes(model, np.mean([run._noise() for run in runs], axis=0), costs)
    order = model.order[model.pools[model.order] < _pool(model, n)]
    order = order[~np.isin(order, asked)]
    if len(order):
        start = (first.start + len(first.draws) / 3) % 1
        draw = Draw(asked, NestedSample(order, sizes, start))
        for run in runs:
            run.draws.append(draw)


def _pool(model: KrigingModel, asked: int) -> int:
    return min(pool_size(asked, model.n_items), len(model.candidates))


def next_together(
    runs: Sequence[Run], n: int, closed: IntArray, costs: FloatArray | None = None
) -> IntArray:
    """Choose n more items that all these targets run, as places among the candidates.

    They lower the sum of the targets' variances. That is the variance of the difference of two:
    given the sources, the answers of two targets are independent draws of the two processes. Both
    models' shares in the design are their weights. Where the items are a sample, they are its next.

    Parameters
    ----------
    runs : sequence of Run
        Of one model of the sources.
    n : int
    closed : ndarray of int
        Items that were asked, answered or not.
    costs : ndarray, shape (candidates,), optional
        Gains count per unit of cost.
    """
    draws = runs[0].draws
    if draws and draws[-1].sample is not None:
        return _drawn(draws[-1].sample, n, closed)
    models: dict[tuple[int, bytes], tuple[float, Sequence[Gaussian], IntArray]] = {}
    for run in runs:
        for weight, of, items in run.designs():
            key = id(of[0]), items.tobytes()  # equal ones need to be reckoned once
            known = models[key][0] if key in models else 0.0
            models[key] = (known + weight / len(runs), of, items)
    return choose(list(models.values()), n, closed=closed, costs=costs)


def _drawn(sample: NestedSample, n: int, closed: IntArray) -> IntArray:
    """Return the next n items of a sample that are not closed."""
    found = sample.take(n)
    while len(more := sample.take(len(found) + n)) > len(found):
        if (~np.isin(found, closed)).sum() >= n:
            break
        found = more
    return np.asarray(found[~np.isin(found, closed)][:n])


def choose_static(
    model: KrigingModel, n: int, costs: FloatArray | None = None, start: float = 0.0
) -> tuple[IntArray, FloatArray]:
    """Choose n items for any target, and return them with their chances.

    The first third is chosen, half of the gain for the model inside the sources and half for the
    one beyond; their chances are NaN. The rest is a sample, in proportion to the items' standard
    deviation at the abilities that targets may have. With few sources all items are a sample.
    """
    nothing = np.empty(0, dtype=np.intp)
    chosen = nothing
    if not model.is_sampled:
        halves = [
            (0.5, [model.inside.all_sources], nothing),
            (0.5, model.beyond.designs, nothing),
        ]
        chosen = choose(halves, round(CHOSEN * n), closed=nothing, costs=costs)
    abilities = model.abilities
    likely = (abilities.grid >= np.quantile(abilities.sources, EDGES[0])) & (
        abilities.grid <= abilities.sources.max() + FAR
    )
    chances = abilities.chances[likely]
    sizes = _sizes(model, (chances * (1 - chances)).mean(axis=0), costs)
    order = model.order[~np.isin(model.order, chosen)]
    sample = NestedSample(order, sizes, start)
    drawn = sample.take(n - len(chosen))
    return (
        np.concatenate([chosen, drawn]),
        np.concatenate([np.full(len(chosen), np.nan), sample.chances(len(drawn))[drawn]]),
    )


def _sizes(model: KrigingModel, noise: FloatArray, costs: FloatArray | None) -> FloatArray:
    """Return the sizes that a sample is drawn in proportion to, given the answers' variances.

    Most precise for its cost is weight times standard deviation over the root of the cost.
    """
    weights = model.beyond.weights[0]
    best = weights * np.sqrt(noise)
    if costs is not None:
        best = best / np.sqrt(costs)
    return np.asarray((1 - FLOOR) * best / best.mean() + FLOOR * weights / weights.mean())
