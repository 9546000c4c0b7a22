"""Targets whose items are a sample with known probabilities, assisted by the sources' curves.

The sample is nested: its first items have equal chances; those after the 10th answer have chances
in proportion to the items' standard deviation at the target's ability. The estimate is the
difference estimator (see `fewbench.algorithms.assisted`): no assumption about the target, and more
precise the better the curves predict its answers. Without sources all curves are the same, and the
estimate is the sample's weighted mean.
"""

from copy import copy
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.algorithms.abilities import Abilities
from fewbench.algorithms.assisted import Assisted, Phase, assisted
from fewbench.algorithms.item_curves import logistic
from fewbench.algorithms.rasch import fit_rasch
from fewbench.algorithms.sampling import NestedSample

FEW = 20
"""Distinct sources: with fewer, all items are a sample."""
PILOT = 10
"""Answers from which a run checks whether the sources can predict the target."""
ENOUGH = 0.4
"""Least share of the items that must be a sample for an estimate from it."""
FLOOR = 0.2
"""Part of an item's chance that does not depend on how uncertain its answer is."""


BLOCK = 16
"""Items that are neighbors in the order. Steps alone would make few different samples, so that an
interval could contain the scores of some models less often than it says."""


@dataclass(frozen=True, eq=False)
class SampleModel:
    """What the sources say of the items.

    Attributes
    ----------
    candidates : ndarray of int, shape (candidates,)
        Positions of the items that may be asked, sorted.
    weights : ndarray, shape (wanted, candidates)
        Of the wanted scores.
    abilities : Abilities
        Curves of the candidates.
    expected : ndarray, shape (nodes, wanted)
        Wanted scores on the grid of abilities.
    sizes : ndarray, shape (wanted,)
        Number of items of each wanted score.
    order : ndarray of int, shape (candidates,)
        The candidates in the order in which a sample is spread.
    blocks : ndarray of int, shape (candidates,)
        Neighbors in the order that each sample shuffles, so that it is spread and yet random.
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
    blocks: IntArray
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

    def shuffled(self, start: float) -> IntArray:
        """Return the order of one sample, told from others by its random start in [0, 1)."""
        rng = np.random.default_rng(int(start * 2**53))
        return self.order[np.lexsort((rng.random(len(self.order)), self.blocks))]

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
) -> SampleModel:
    """Fit curves to the cells that were run, by the Rasch model.

    Parameters
    ----------
    models, items, answers, n_models, task_of
        As for `fit_rasch`.
    weights : ndarray, shape (wanted, items)
        Weights of the wanted scores, each row of sum 1. Items are drawn for the first.
    """
    n_items = len(task_of)
    abilities = fit_rasch(models, items, answers, n_models, task_of)
    places: IntArray = np.arange(n_items)
    order = np.lexsort((places, task_of, -abilities.curves.intercept))
    blocks = places // BLOCK
    if not n_models:
        order = np.lexsort((places, task_of))
        firsts = np.searchsorted(task_of[order], task_of[order])
        blocks = task_of[order] * n_items + (places - firsts) // BLOCK
    dispersion = 1.0
    if len(answers) and not np.isin(answers, (0.0, 1.0)).all():
        curves = abilities.curves
        logits = abilities.sources[models] * curves.slope[items] + curves.intercept[items]
        expected = np.clip(logistic(logits), 0.02, 0.98)
        dispersion = float(((answers - expected) ** 2 / (expected * (1 - expected))).mean())
    sizes = np.count_nonzero(weights, axis=1).astype(np.float64)
    return SampleModel(
        places, weights, abilities, abilities.chances @ weights.T, sizes, order, blocks, places * 0,
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
    influence : ndarray, shape (answered,), optional
        What each answer of a sample adds to the error of the first score.
    is_plain : bool
        Whether the first score is the mean of a sample in which every item had the same chance.
    """

    scores: FloatArray
    errors: FloatArray
    beyond: float
    freedom: FloatArray | None = None
    influence: FloatArray | None = None
    is_plain: bool = False


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


class SampledRun:
    """A target's answers so far.

    Parameters
    ----------
    model : SampleModel
    start : float
        In [0, 1): random start of the target's sample.
    """

    def __init__(self, model: SampleModel, start: float = 0.0) -> None:
        self.model, self.start = model, start
        self.draws: list[Draw] = []
        self.checked = 0
        self.items = np.empty(0, dtype=np.intp)
        self.answers = np.empty(0)

    def hear(self, items: IntArray, answers: FloatArray) -> None:
        """Take one more round of answers; `items` are places among the candidates."""
        self.items = np.concatenate([self.items, items])
        self.answers = np.concatenate([self.answers, answers])

    @property
    def is_unlike(self) -> bool:
        """Whether the answers say that the sources cannot predict this target: it is not asked."""
        return False

    def copy(self) -> Self:
        """Return a run that can hear more without changing this one."""
        other = copy(self)
        other.draws = [*self.draws]
        return other

    def estimate(self) -> Estimated:
        """Return the wanted scores: of the sample, or by the curves if the items are none."""
        model = self.model
        own, nodes = model.weights[:, self.items], self.posterior
        known = own @ (self.answers - model.abilities.chances[:, self.items]).T
        every = np.asarray(model.expected + known.T)
        scores = nodes @ every
        rest = model.weights.copy()
        rest[:, self.items] = 0.0
        variance = nodes @ every**2 - scores**2 + rest**2 @ self.noise
        found = Estimated(scores, np.sqrt(np.maximum(variance, 0.0)), 0.0)
        if self.counts_as_sample:
            drawn = self.sampled()
            seen = np.isfinite(drawn.errors)
            found = Estimated(
                np.where(seen, drawn.scores, scores),
                np.where(seen, drawn.errors, found.errors),
                0.0,
                np.where(seen, drawn.freedom, np.nan),
                drawn.influence,
                model.is_flat and bool(np.ptp(model.weights[0]) == 0),
            )
        return self.within_bounds(found)

    def within_bounds(self, found: Estimated) -> Estimated:
        """Return scores that the answers leave possible; exact when all items were answered."""
        own = self.model.weights[:, self.items]
        least = own @ self.answers
        most = least + np.maximum(1 - own.sum(axis=1), 0)
        return replace(found, scores=np.clip(found.scores, least, most))

    @property
    def posterior(self) -> FloatArray:
        """Posterior weights of the grid of abilities."""
        return self.model.abilities.posterior(self.items, self.answers)

    @property
    def counts_as_sample(self) -> bool:
        """Whether enough of the items are a sample for an estimate from it."""
        if not self.draws:
            return False
        drawn = np.zeros(len(self.items), dtype=bool)
        for draw in self.draws:
            drawn |= draw.holds(self.items)
        return bool(drawn.mean() >= ENOUGH)

    def sampled(self) -> Assisted:
        """Return what the sample says by itself, assisted by the curves."""
        model, items, nodes = self.model, self.items, self.posterior
        predicted, expected = nodes @ model.abilities.chances, nodes @ model.expected
        noise, weights = self.noise, model.weights
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

    @property
    def noise(self) -> FloatArray:
        """Return the variance of each candidate's answer at the target's ability."""
        chances = self.model.abilities.chances
        return np.asarray(self.model.dispersion * (self.posterior @ (chances * (1 - chances))))


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
    found = sample.take(n)
    while len(more := sample.take(len(found) + n)) > len(found):
        if (~np.isin(found, closed)).sum() >= n:
            break
        found = more
    return np.asarray(found[~np.isin(found, closed)][:n])
