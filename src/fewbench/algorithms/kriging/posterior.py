"""One target's run: what its answers say, which model holds, and which items come next.

The models are averaged by the probabilities that the target is above or below the sources: its full
score above their 95% quantile, or below their 5% quantile, by the curves, and by which model
foresaw the answers better. The odds of "above" against "inside" are

    log odds = logit P(score > q95) + l_above - l_inside + 1

and those of "below" the same with right and wrong exchanged. l are the one-step-ahead Bernoulli log
scores (no answer is used twice: the Gaussian inside is the one fitted before each round).

No model learned from the sources promises anything about a target unlike them. After every round,
from the 10th answer on, the run therefore checks two things: whether the target's ability is more
than two standard deviations beyond nearly all sources, above or below, and whether its answers fit
the sources' curves (see `fewbench.algorithms.abilities`). If not, the rest of its items is a sample
with known probabilities, in proportion to the items' standard deviation at its ability. With fewer
than 20 independent sources all items are a sample, the first 10 with equal chances. The estimate is
then between the models' and the sample's own (see `KrigingRun.estimate`).
"""

from collections.abc import Sequence

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.item_curves import logit
from fewbench.algorithms.kriging.design import choose
from fewbench.algorithms.kriging.inside import Gaussian
from fewbench.algorithms.kriging.model import KrigingModel, keep
from fewbench.algorithms.kriging.sample import (
    PILOT,
    Draw,
    Estimated,
    SampledRun,
    next_drawn,
    sizes_of,
)
from fewbench.algorithms.sampling import NestedSample

LEAN, CERTAIN = 1.0, 0.01
"""What the odds of a model beyond the sources gain, and the least chance that a score beyond may
have. Other weights of chance and evidence, leans of -3 to 1 and other quantiles were tried on 10
tables: at 30 items, targets like the sources err .47 of random sampling, weaker .80, above .64."""
INSIDE_ONLY = 0.15
"""Below this weight items are chosen for the model inside the sources alone."""
FAR, MISFIT = 2.0, 0.05
"""Distance beyond the sources, and p-value of the answers' fit, from which the models are not
trusted: to draw the rest of the items costs little."""
SETTLED, SETTLED_LEFT = 40, 60
"""Answers from which a distance beyond the sources sends a target to the sample, or items that are
left. With 30 items the model's own choice errs less there: on five tables .77 of random sampling's
error in place of .90 for far stronger targets, .63 in place of .68 for the strongest quarter; with
100 items it errs more (.84, not .76)."""
CHOSEN = 1 / 3
"""Share of the items that are chosen once for all targets, and not drawn."""
LEAST_SHARE, SOURCES = 0.5, 10.0
"""Least share of the sample in the full score; the other is 10 / (10 + independent sources)."""
TRUST = 2.0
"""For tasks the models' standard errors count twice."""
HERMITE = (np.array([-(3**0.5), 0.0, 3**0.5]), np.array([1 / 6, 2 / 3, 1 / 6]))


class KrigingRun(SampledRun):
    """A target's answers so far.

    Parameters
    ----------
    model : KrigingModel
    """

    def __init__(self, model: KrigingModel) -> None:
        super().__init__(model)
        self.model: KrigingModel = model
        self._filter = model.beyond.start()
        self._inside: Gaussian | None = None
        self._log_score = 0.0
        self._outside: tuple[FloatArray, FloatArray] | None = None

    def hear(self, items: IntArray, answers: FloatArray) -> None:
        """Take one more round of answers; `items` are places among the candidates."""
        if not len(items):
            return
        super().hear(items, answers)
        latest = self.model.heard.get(self.rounds)
        if latest is None:
            before = len(self.items) - len(items)
            inside = self._near(before) if self._inside is None else self._inside
            foresaw = float(inside.one_step_ahead(self.items, self.answers)[before:].sum())
            heard = self.model.beyond.hear(self._filter, items, answers)
            latest = self._log_score + foresaw, heard
            keep(self.model.heard, self.rounds, latest)
        self._log_score, self._filter = latest
        self._outside = self._inside = None

    @property
    def inside(self) -> Gaussian:
        """The Gaussian of the sources that answer as the target does."""
        if self._inside is None:
            self._inside = self._near(len(self.items))
        return self._inside

    def _near(self, n: int) -> Gaussian:
        """Return the Gaussian after the first n answers."""
        of_sources = self.model.inside
        return of_sources.near(self.items[:n], self.answers[:n]) if n else of_sources.all_sources

    # -- the path ----------------------------------------------------------------------------

    def is_unlike(self, left: float) -> bool:
        """Whether the answers say that the sources cannot predict this target.

        With `left` items to go: none if all were chosen at once. Few answers from far beyond the
        sources do not end the models' part unless many items are left to draw.
        """
        theirs = self.model.inside.answers(self.items)
        how = theirs, self.items, self.answers
        abilities = self.model.abilities
        is_early = len(self.items) < SETTLED and left < SETTLED_LEFT
        if not is_early and abilities.beyond(*how, FAR):
            return True
        return abilities.misfits(*how, MISFIT)

    def designs(self) -> list[tuple[float, Sequence[Gaussian], IntArray]]:
        """Return the models by which the next items are chosen: weight, Gaussians, answered."""
        below, above = self._beyond() if len(self.items) else (0.0, 0.0)
        if below + above < INSIDE_ONLY:
            return [(1.0, [self.inside], self.items)]
        beyond = self.model.beyond
        return [
            (1 - below - above, [self.inside], self.items),
            (below, beyond.below, self.items),
            (above, beyond.above, self.items),
        ]

    # -- the estimate ------------------------------------------------------------------------

    def _predicted_beyond(self) -> tuple[FloatArray, FloatArray]:
        """Return what the model beyond the sources predicts of the answers so far."""
        if self._outside is None:
            share = self.model.weights[:, self.items]
            self._outside = self.model.beyond.predict(self._filter, self.items, self.answers, share)
        return self._outside

    def _beyond(self) -> tuple[float, float]:
        """Return the probabilities that the target is below and above the sources."""
        curves, score = self.model.beyond, self._filter.score
        means, variances = self._predicted_beyond()
        chance = np.exp(score - score.max())
        deviation = np.sqrt(np.maximum(variances[:, :1], 0))
        # Three nodes of Gauss-Hermite quadrature: exact for polynomials up to degree 5, and enough
        # for a share that is averaged over abilities.
        likely = means[:, :1] + deviation * HERMITE[0]
        (low, high), (low_score, high_score) = curves.edges, curves.edge_scores
        odds = []
        for is_further, is_beyond in (
            (curves.grid < low, likely < low_score),
            (curves.grid > high, likely > high_score),
        ):
            share = float(chance @ (is_beyond @ HERMITE[1]) / chance.sum())
            further = chance[is_further].sum() / is_further.sum()
            foresaw = float(np.log(further + 1e-300) + score.max())
            odds.append(logit(share, CERTAIN) + foresaw - self._log_score + LEAN)
        weights = np.exp(np.append(odds, 0.0) - max(*odds, 0.0))
        below, above, _ = weights / weights.sum()
        return float(below), float(above)

    def estimate(self) -> Estimated:
        """Return the wanted scores.

        If the items are a sample, the estimate lies between the models' estimate and the sample's
        own. The more they differ, beyond what chance explains, the less the models count (as in
        Stein's estimator).
        """
        inside, of_inside = self.inside.predict(self.items, self.answers)
        means, variances = self._predicted_beyond()
        weight = sum(self._beyond())
        chance = self._nodes()
        outside = chance @ means
        of_outside = np.maximum(chance @ (means**2 + variances) - outside**2, 0)
        variance = (1 - weight) * of_inside + weight * of_outside
        # The law of total variance: where the two models disagree, not knowing which one holds is
        # an error too.
        variance += weight * (1 - weight) * (outside - inside) ** 2
        score, error = (1 - weight) * inside + weight * outside, np.sqrt(variance)
        estimate = Estimated(score, error, weight)
        if self.counts_as_sample:
            estimate = self._with_sample(estimate)
        return self.within_bounds(estimate)

    def _nodes(self) -> FloatArray:
        chance = np.exp(self._filter.likelihood - self._filter.likelihood.max())
        return np.asarray(chance / chance.sum())

    def _with_sample(self, models: Estimated) -> Estimated:
        drawn, sample = self.sampled()
        usable = np.isfinite(drawn.errors)
        of_sample = np.where(usable, drawn.errors, 1.0) ** 2
        of_models = (TRUST * models.errors) ** 2
        share = of_models / np.maximum(of_models + of_sample, 1e-12)
        share[0] = max(LEAST_SHARE, SOURCES / (SOURCES + self.model.distinct))
        apart = (models.scores - drawn.scores) ** 2
        # Stein: a gap beyond its own variance is bias of the models, and the sample has none.
        share = np.maximum(share, 1 - of_sample / np.maximum(apart, 1e-12))
        if np.ptp(self.answers) == 0:  # all right or all wrong: nothing speaks for the models
            share[:] = 1.0
        return Estimated(
            np.where(usable, models.scores + share * (drawn.scores - models.scores), models.scores),
            np.where(usable, np.sqrt(of_sample), models.errors),
            models.beyond,
            np.where(usable, drawn.freedom, np.nan),
            sample,
        )


def settle(
    runs: Sequence[SampledRun], asked: IntArray, left: float, costs: FloatArray | None = None
) -> None:
    """Decide after a round whether the next items of these targets are a sample.

    Targets that run the same items share the sample.

    Parameters
    ----------
    runs : sequence of SampledRun
        Runs under one model of the sources.
    asked : ndarray of int
        Places of all items chosen so far.
    left : float
        Number of items that may still be chosen.
    costs : ndarray, shape (candidates,), optional
        What each item costs: the sample is the one that is most precise for its cost.
    """
    first = runs[0]
    model, n = first.model, len(asked)
    if first.draws:
        latest = first.draws[-1]
        pool = model.pool(len(latest.before))
        begins = (
            latest.sample is None  # drawn when the scores were others: it has no next item
            or (model.is_sampled and not model.is_flat and len(first.draws) == 1 and n >= PILOT)
            # Half of the candidates are drawn, and there are more by now.
            or (n - len(latest.before) > pool // 2 and model.pool(n) > pool)
        )
    else:
        begins = model.is_sampled
        if not begins and n >= max(PILOT, 2 * first.checked):  # after 10, 20, 40 ... answers
            first.checked = n
            begins = any(run.is_unlike(left) for run in runs)
    if not begins:
        return
    sizes = model.weights[0]
    if first.draws or not model.is_sampled:
        sizes = sizes_of(model, np.mean([run.noise for run in runs], axis=0), costs)
    order = model.order
    order = order[(model.pools[order] < model.pool(n)) & ~np.isin(order, asked)]
    if len(order):
        draw = Draw(asked, NestedSample(order, sizes))
        for run in runs:
            run.draws.append(draw)


def next_together(
    runs: Sequence[SampledRun], n: int, closed: IntArray, costs: FloatArray | None = None
) -> IntArray:
    """Choose n more items that all these targets run, as places among the candidates.

    They lower the sum of the targets' variances. That is the variance of the difference of two:
    given the sources, the answers of two targets are independent draws of the two processes. Both
    models' shares in the design are their weights. Where the items are a sample, they are its next.

    Parameters
    ----------
    runs : sequence of SampledRun
        Runs under one model of the sources.
    n : int
    closed : ndarray of int
        Items chosen so far, answered or not.
    costs : ndarray, shape (candidates,), optional
        Gains count per unit of cost.
    """
    draws = runs[0].draws
    if draws and draws[-1].sample is not None:
        return next_drawn(draws[-1].sample, n, closed)
    model, state = runs[0].model, (tuple(run.rounds for run in runs), closed.tobytes())
    assert isinstance(model, KrigingModel)  # of others all items are drawn
    # A choice of fewer items is the beginning of one of more.
    if costs is None and len(chosen := model.chosen.get(state, closed[:0])) >= n:
        return chosen[:n]
    models: dict[tuple[int, bytes], tuple[float, Sequence[Gaussian], IntArray]] = {}
    for run in (sampled for sampled in runs if isinstance(sampled, KrigingRun)):
        for weight, gaussians, items in run.designs():
            key = id(gaussians[0]), items.tobytes()  # equal ones need to be reckoned once
            before = models[key][0] if key in models else 0.0
            models[key] = (before + weight / len(runs), gaussians, items)
    chosen = choose(list(models.values()), n, closed=closed, costs=costs)
    if costs is None:
        keep(model.chosen, state, chosen)
    return chosen


def choose_static(
    model: KrigingModel, n: int, costs: FloatArray | None = None
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
            (0.25, model.beyond.below, nothing),
            (0.25, model.beyond.above, nothing),
        ]
        chosen = choose(halves, round(CHOSEN * n), closed=nothing, costs=costs)
    abilities = model.abilities
    likely = (abilities.grid >= abilities.sources.min() - FAR) & (
        abilities.grid <= abilities.sources.max() + FAR
    )
    chances = abilities.chances[likely]
    sizes = sizes_of(model, (chances * (1 - chances)).mean(axis=0), costs)
    order = model.order[~np.isin(model.order, chosen)]
    sample = NestedSample(order, sizes)
    drawn = sample.take(n - len(chosen))
    return (
        np.concatenate([chosen, drawn]),
        np.concatenate([np.full(len(chosen), np.nan), sample.chances(len(drawn))[drawn]]),
    )
