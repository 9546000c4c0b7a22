"""Targets whose items are a sample with known probabilities, assisted by the sources' curves.

The sample is nested, in an order that all targets share. Its first items have equal chances; those
after the 10th answer have chances in proportion to the items' standard deviation at the target's
ability. The estimate is the difference estimator (see `fewbench.algorithms.assisted`): no
assumption about the target, and more precise the better the curves predict its answers. Without
sources all curves are the same, and the estimate is the sample's weighted mean.
"""

from copy import copy
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.algorithms.abilities import Abilities
from fewbench.algorithms.assisted import Assisted, Phase, SampleErrors, assisted
from fewbench.algorithms.item_curves import logistic
from fewbench.algorithms.rasch import fit_rasch
from fewbench.algorithms.sampling import NestedSample, whole_chances

FEW = 20
"""Independent sources: with fewer, all items are a sample."""
PILOT = 10
"""Answers from which a run checks whether the sources can predict the target."""
ENOUGH = 0.4
"""Least share of the items that must be a sample for an estimate from it."""
FLOOR = 0.2
"""Part of an item's chance that does not depend on how uncertain its answer is."""


@dataclass(frozen=True, eq=False)
class SampleModel:
    """The sources' scores and item statistics.

    Attributes
    ----------
    candidates : ndarray of int, shape (candidates,)
        Positions of the items that may be chosen, sorted.
    weights : ndarray, shape (wanted, candidates)
        Weights of the wanted scores.
    abilities : Abilities
        Curves of the candidates.
    expected : ndarray, shape (nodes, wanted)
        Wanted scores on the grid of abilities.
    sizes : ndarray, shape (wanted,)
        Number of items of each wanted score.
    order : ndarray of int, shape (candidates,)
        The candidates in the order in which a sample takes them (`permanent_order`).
    pools : ndarray of int, shape (candidates,)
        Rank of each candidate: the first 1,000 are the candidates of a smaller budget, and so on.
    dispersion : float
        Variance of the scores about the curves, as a share of that of right and wrong answers.
    distinct : int
        Number of sources by which items are chosen, near copies counted once.
    n_items : int
        Number of items of the benchmark.
    """

    candidates: IntArray
    weights: FloatArray
    abilities: Abilities
    expected: FloatArray
    sizes: FloatArray
    order: IntArray
    pools: IntArray
    dispersion: float
    distinct: int
    n_items: int

    @property
    def is_sampled(self) -> bool:
        """Whether all items are a sample, for lack of sources."""
        return self.distinct < FEW

    @property
    def is_flat(self) -> bool:
        """Whether there are no sources, so that all items have the same curve."""
        return not len(self.abilities.sources)

    def pool(self, asked: int) -> int:
        """Return how many candidates there are after a number of items."""
        return len(self.candidates)


def fit_sample(
    models: IntArray,
    items: IntArray,
    answers: FloatArray,
    n_models: int,
    task_of: IntArray,
    weights: FloatArray,
    order: IntArray,
) -> SampleModel:
    """Fit curves to the cells that were run, by the Rasch model.

    Parameters
    ----------
    models, items, answers, n_models, task_of
        As for `fit_rasch`.
    weights : ndarray, shape (wanted, items)
        Weights of the wanted scores, each row of sum 1. Items are drawn for the first.
    order : ndarray of int, shape (items,)
        The order in which a sample takes the items.
    """
    n_items = len(task_of)
    abilities = fit_rasch(models, items, answers, n_models, task_of)
    places: IntArray = np.arange(n_items)
    dispersion = 1.0
    if len(answers) and not np.isin(answers, (0.0, 1.0)).all():
        curves = abilities.curves
        logits = abilities.sources[models] * curves.slope[items] + curves.intercept[items]
        expected = np.clip(logistic(logits), 0.02, 0.98)
        dispersion = float(((answers - expected) ** 2 / (expected * (1 - expected))).mean())
    sizes = np.count_nonzero(weights, axis=1).astype(np.float64)
    return SampleModel(
        places, weights, abilities, abilities.chances @ weights.T, sizes, order, places * 0,
        dispersion, 0, n_items,
    )  # fmt: skip


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
        Degrees of freedom of the errors of a sample. NaN where the sample is too small,
        with the models' errors there.
    sample : SampleErrors, optional
        Where the error of the first score comes from; by candidates.
    is_plain : bool
        Whether the first score is the mean of a sample in which every item had the same chance.
    """

    scores: FloatArray
    errors: FloatArray
    beyond: float
    freedom: FloatArray | None = None
    sample: SampleErrors | None = None
    is_plain: bool = False


@dataclass(frozen=True, eq=False)
class Draw:
    """A sample: the items chosen before it, and the probabilities of those drawn since.

    `sample` continues it. Without one, `chances` are given, NaN for items that were chosen or not
    asked, and there is no next item.
    """

    before: IntArray
    sample: NestedSample | None
    chances: FloatArray | None = None

    def holds(self, asked: IntArray) -> BoolArray:
        """Return which items were drawn, given all requested ones, answered or not.

        They are the longest beginning of the sample of which all were requested; the others were
        requested for another reason.
        """
        since = ~np.isin(asked, self.before)
        if self.sample is None:
            assert self.chances is not None
            return np.asarray(since & np.isfinite(self.chances[asked]))
        beginning = self.sample.take(int(since.sum()))
        n = int(np.argmin(np.append(np.isin(beginning, asked), False)))
        return np.asarray(since & np.isin(asked, beginning[:n]))

    def chances_of(self, n: int) -> FloatArray:
        """Return each candidate's chance to be among the first n, if not chosen before."""
        if self.sample is not None:
            return self.sample.chances(n)
        assert self.chances is not None
        return whole_chances(self.chances, n)


class SampledRun:
    """A target's answers so far.

    Parameters
    ----------
    model : SampleModel
    """

    def __init__(self, model: SampleModel) -> None:
        self.model = model
        self.draws: list[Draw] = []
        self.checked = 0
        self.items = np.empty(0, dtype=np.intp)
        self.answers = np.empty(0)
        self.lost = np.empty(0, dtype=np.intp)  # requested before answered ones, without answer
        self.rounds: tuple[bytes, ...] = ()  # equal for targets that gave equal answers

    def hear(self, items: IntArray, answers: FloatArray) -> None:
        """Take one more round of answers; `items` are places among the candidates."""
        self.items = np.concatenate([self.items, items])
        self.answers = np.concatenate([self.answers, answers])
        self.rounds = (*self.rounds, items.tobytes() + answers.tobytes())

    def is_unlike(self, left: float) -> bool:
        """Whether the answers show that the sources cannot predict this target: ignored here."""
        return False

    def copy(self) -> Self:
        """Return a run that can hear more without changing this one."""
        other = copy(self)
        other.draws = [*self.draws]
        return other

    def estimate(self) -> Estimated:
        """Return the wanted scores: of the sample, or by the curves if the items are none."""
        model = self.model
        weights, nodes = model.weights[:, self.items], self.posterior
        answered = weights @ (self.answers - model.abilities.chances[:, self.items]).T
        every = np.asarray(model.expected + answered.T)
        scores = nodes @ every
        rest = model.weights.copy()
        rest[:, self.items] = 0.0
        variance = nodes @ every**2 - scores**2 + rest**2 @ self.noise
        estimate = Estimated(scores, np.sqrt(np.maximum(variance, 0.0)), 0.0)
        if self.counts_as_sample:
            drawn, sample = self.sampled()
            seen = np.isfinite(drawn.errors)
            # Without sources nothing but its own answers says how hard a task is.
            by_sample = seen | (model.is_flat & (weights > 0).any(axis=1))
            estimate = Estimated(
                np.where(by_sample, drawn.scores, scores),
                np.where(seen, drawn.errors, estimate.errors),
                0.0,
                np.where(seen, drawn.freedom, np.nan),
                sample,
                model.is_flat and bool(np.ptp(model.weights[0]) == 0) and bool(self._drawn.all()),
            )
        return self.within_bounds(estimate)

    def within_bounds(self, found: Estimated) -> Estimated:
        """Return scores that the answers leave possible; exact when all items were answered."""
        weights = self.model.weights[:, self.items]
        least = weights @ self.answers
        most = least + np.maximum(1 - weights.sum(axis=1), 0)
        return replace(found, scores=np.clip(found.scores, least, most))

    @property
    def posterior(self) -> FloatArray:
        """Posterior weights of the grid of abilities."""
        return self.model.abilities.posterior(self.items, self.answers)

    @property
    def counts_as_sample(self) -> bool:
        """Whether enough of the items are a sample for an estimate from it."""
        return bool(self.draws and self._drawn.mean() >= ENOUGH)

    @property
    def _asked(self) -> IntArray:
        return np.concatenate([self.items, self.lost])

    @property
    def _drawn(self) -> BoolArray:
        """Whether each answered item was drawn, shape (n,)."""
        asked = self._asked
        drawn = np.any([draw.holds(asked) for draw in self.draws], axis=0)
        return np.asarray(drawn[: len(self.items)])

    def sampled(self) -> tuple[Assisted, SampleErrors]:
        """Return what the sample says by itself, assisted by the curves."""
        model, items, nodes = self.model, self.items, self.posterior
        predicted, expected = nodes @ model.abilities.chances, nodes @ model.expected
        noise, weights = self.noise, model.weights
        phases, missed, asked = [], np.ones(len(noise)), self._asked
        for at, draw in enumerate(self.draws):
            until = self.draws[at + 1].before if at + 1 < len(self.draws) else asked
            was_asked = draw.holds(asked) & np.isin(asked, until)
            is_drawn = was_asked[: len(items)]
            places = np.flatnonzero(is_drawn)
            if not len(places):
                continue
            was_before = np.isin(items, draw.before) | (np.isin(items, until) & ~is_drawn)
            earlier = items[was_before]
            of_earlier = weights[:, earlier]
            # An item that was drawn is answered as often as the others of its phase.
            n_asked = int(was_asked.sum())
            chances = np.maximum(draw.chances_of(n_asked) * len(places) / n_asked, 1e-9)
            missed *= 1 - chances
            left = np.maximum(1 - of_earlier.sum(axis=1), 0.0)
            variance = 1.0
            if len(self.draws) > 1:
                rest = np.ones(len(noise), dtype=bool)
                rest[earlier] = False
                of_rest = weights[0, rest] ** 2 * noise[rest] / np.maximum(chances[rest], 1e-3)
                variance = float(of_rest.sum())
            phases.append(
                Phase(
                    of_earlier @ self.answers[was_before],
                    left,
                    expected - of_earlier @ predicted[earlier],
                    places,
                    weights[:, items[places]] / chances[items[places]],
                    variance,
                )
            )
        missed[self.draws[0].before] = 1.0  # chosen, not drawn
        estimated = assisted(
            phases,
            self.answers,
            predicted[items],
            noise[items],
            float(predicted.var()),
            model.sizes,
        )
        influence = np.full(len(noise), np.nan)
        influence[items] = estimated.influence
        return estimated, SampleErrors(influence, 1 - missed, estimated.item_share)

    @property
    def noise(self) -> FloatArray:
        """Return the variance of each candidate's answer at the target's ability."""
        chances = self.model.abilities.chances
        # Right or wrong answers have it whole, also where the sources' scores are means of runs.
        is_binary = bool(np.isin(self.answers, (0.0, 1.0)).all())
        dispersion = 1.0 if is_binary else self.model.dispersion
        return np.asarray(dispersion * (self.posterior @ (chances * (1 - chances))))


def sizes_of(model: SampleModel, noise: FloatArray, costs: FloatArray | None) -> FloatArray:
    """Return the sizes that a sample is drawn in proportion to, given the answers' variances.

    Most precise for its cost is weight times standard deviation over the root of the cost.
    """
    weights = model.weights[0]
    best = weights * np.sqrt(noise)
    if costs is not None:
        best = best / np.sqrt(costs)
    return np.asarray((1 - FLOOR) * best / best.mean() + FLOOR * weights / weights.mean())


def next_drawn(sample: NestedSample, n: int, closed: IntArray) -> IntArray:
    """Return the next n items of a sample that are not closed."""
    taken = sample.take(n)
    while len(more := sample.take(len(taken) + n)) > len(taken):
        if (~np.isin(taken, closed)).sum() >= n:
            break
        taken = more
    return np.asarray(taken[~np.isin(taken, closed)][:n])
