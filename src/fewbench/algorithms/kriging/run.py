"""One target's run: what its answers say, which model holds, and which items come next.

The two models are averaged by the probability that the target is beyond the sources: its full
score above the sources' 95 % quantile, by the curves, sharpened by which model foresaw the answers
better:

    logit w = 2.5 logit P(score > q95) + 1/2 (l_beyond - l_inside) + 1

with l the one-step-ahead Bernoulli log scores (no answer is used twice: the Gaussian inside is the
one fitted before each round).

Fewer than 20 distinct sources say too little of either. Items are then a systematic sample by
difficulty, and the estimate is pulled to the sample's mean, by n / (n + 5 S) with n answers and S
distinct sources.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.item_curves import logistic
from fewbench.algorithms.kriging.design import SystematicDraws, choose
from fewbench.algorithms.kriging.inside import Gaussian
from fewbench.algorithms.kriging.model import KrigingModel, part

SHARPNESS, EVIDENCE, LEAN = 2.5, 0.5, 1.0
INSIDE_ONLY = 0.15
"""Below this weight items are chosen for the model inside the sources alone."""
SAMPLED_FROM = 20
DRAWN_FROM, DRAWN_SHARE = 40, 0.6
FAR_ABOVE = 0.25, 0.15
"""From how far above the sources' 95 % quantile items are drawn, and how soon all of them are."""
DENSITY_FLOOR = 0.0125
SOURCE_WORTH = 5.0
"""With few sources, each counts as so many answers against the sample's mean."""
HERMITE = (np.array([-(3**0.5), 0.0, 3**0.5]), np.array([1 / 6, 2 / 3, 1 / 6]))


@dataclass(frozen=True, eq=False)
class Estimated:
    """Wanted scores of one target.

    Attributes
    ----------
    scores, errors : ndarray, shape (wanted,)
        Posterior means, in [0, 1], and standard deviations.
    beyond : float
        Weight of the model beyond the sources.
    """

    scores: FloatArray
    errors: FloatArray
    beyond: float


class Run:
    """A target's answers so far.

    Parameters
    ----------
    model : KrigingModel
    start : float
        In [0, 1): random start of the target's systematic sample.
    """

    def __init__(self, model: KrigingModel, start: float = 0.0) -> None:
        self.model = model
        self._draws = SystematicDraws(model.difficulty, start)
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
        self._inside = self.model.inside.near(self.items, self.answers)

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
        """Return the wanted scores by both models."""
        inside, of_inside = self._inside.predict(self.items, self.answers)
        means, variances = self.model.beyond.predict(self._filter, self.items, self.answers)
        weight = self._beyond(means, variances)
        chance = self._abilities()
        outside = chance @ means
        of_outside = np.maximum(chance @ (means**2 + variances) - outside**2, 0)
        variance = (1 - weight) * of_inside + weight * of_outside
        variance += weight * (1 - weight) * (outside - inside) ** 2
        # Never outside what the answers leave possible; exact when all items were answered.
        own = self.model.beyond.weights[:, self.items]
        least = own @ self.answers
        most = least + np.maximum(1 - own.sum(axis=1), 0)
        score, error = (1 - weight) * inside + weight * outside, np.sqrt(variance)
        if self.model.is_sampled and len(self.items):
            score, error = self._to_mean(score, error)
        return Estimated(np.clip(score, least, most), error, weight)

    def _to_mean(self, score: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Pull estimates and standard errors to those of the sample's weighted means."""
        weights = self.model.beyond.weights
        drawn = weights[:, self.items] / np.maximum(weights[0, self.items], 1e-300)
        total = drawn.sum(axis=1)
        shares = drawn / np.where(total > 0, total, 1.0)[:, None]
        mean = shares @ self.answers
        n = len(self.items)
        pull = np.where(total > 0, n / (n + SOURCE_WORTH * self.model.distinct), 0.0)
        spread = np.sqrt((shares**2).sum(axis=1) * np.maximum(mean * (1 - mean), 0.25 / n))
        return (1 - pull) * score + pull * mean, (1 - pull) * error + pull * spread

    def next(
        self, n: int, closed: IntArray | None = None, costs: FloatArray | None = None
    ) -> IntArray:
        """Choose n more items for this target, as `next_together` does for one."""
        return next_together([self], n, self.items if closed is None else closed, costs)

    def _design(self) -> "_Design":
        """Return what the target's items are chosen for."""
        curves, weight = self.model.beyond, 0.0
        # With rather few sources, what they do not tell of is drawn too.
        share, density = self.model.sampled_share, curves.weights[0]
        share *= len(self.items) >= SAMPLED_FROM
        models: list[tuple[float, Sequence[Gaussian], IntArray]] = [
            (1.0, [self._inside], self.items)
        ]
        if len(self.items):
            means, variances = curves.predict(self._filter, self.items, self.answers)
            weight = self._beyond(means, variances)
        if weight >= INSIDE_ONLY:
            models = [
                (1 - weight, [self._inside], self.items),
                (weight, curves.designs, self.items),
            ]
            chance = self._abilities()
            spread = chance @ (curves.chances * (1 - curves.chances))
            density = density * np.sqrt(spread + DENSITY_FLOOR)
            above = float(chance @ means[:, 0]) - curves.edge_score
            share = max(share, weight * part((above - FAR_ABOVE[0]) / FAR_ABOVE[1]))
            if len(self.items) >= DRAWN_FROM:
                far = float(chance @ curves.grid) - curves.edge
                share = max(share, weight * DRAWN_SHARE * part(far))
        return _Design(models, share, density)

    def _abilities(self) -> FloatArray:
        chance = np.exp(self._filter.likelihood - self._filter.likelihood.max())
        return np.asarray(chance / chance.sum())


@dataclass(frozen=True, eq=False)
class _Design:
    """Models to choose items by, and the share and density of those that are drawn."""

    models: list[tuple[float, Sequence[Gaussian], IntArray]]
    share: float
    density: FloatArray


def next_together(
    runs: Sequence[Run], n: int, closed: IntArray, costs: FloatArray | None = None
) -> IntArray:
    """Choose n more items that all these targets run, as places among the candidates.

    They lower the sum of the targets' variances. That is the variance of the difference of two:
    given the sources, the answers of two targets are independent draws of the two processes.

    Both models' shares in the design are their weights. Beyond the sources curves may be off
    in ways that they do not know of, and more so the more answers there are: from 40 answers
    on part of the items are a systematic sample, in proportion to the answers' standard
    deviation. A target that scores far above the sources gets more of it, and at once. The
    fewer sources there are below 45, the more of the items after the first 20 are such a
    sample, and all with fewer than 20.

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
    first = runs[0]
    if first.model.is_sampled:  # costs do not count: the sample would be another
        return first._draws.take(n, closed, first.model.beyond.weights[0])
    designs = [run._design() for run in runs]
    models: dict[tuple[int, bytes], tuple[float, Sequence[Gaussian], IntArray]] = {}
    for weight, of, items in (model for one in designs for model in one.models):
        key = id(of[0]), items.tobytes()  # equal ones need to be reckoned once
        known = models[key][0] if key in models else 0.0
        models[key] = (known + weight / len(runs), of, items)
    share = max(one.share for one in designs)
    density = designs[0].density
    if len(runs) > 1:
        density = np.mean([one.density / one.density.sum() for one in designs], axis=0)
    drawn = (share, first._draws, density) if share else None
    return choose(list(models.values()), n, closed=closed, costs=costs, drawn=drawn)


def choose_static(
    model: KrigingModel, n: int, costs: FloatArray | None = None, start: float = 0.0
) -> IntArray:
    """Choose n items for any target: half of the gain is the model's beyond the sources.

    With few sources they are a systematic sample, with a random `start` in [0, 1).
    """
    nothing = np.empty(0, dtype=np.intp)
    if model.is_sampled:
        draws = SystematicDraws(model.difficulty, start)
        return draws.take(n, nothing, model.beyond.weights[0])
    halves = [
        (0.5, [model.inside.all_sources], nothing),
        (0.5, model.beyond.designs, nothing),
    ]
    return choose(halves, n, closed=nothing, costs=costs)
