"""Where a target stands among the source models, by its answers to any items.

A model has one ability. The abilities of the sources are the standardized logits of their full
scores, and every item has a characteristic curve. A grid of abilities with a flat prior reaches
beyond the sources at both ends. Two questions decide whether predictions learned from the sources
can hold for a target:

- *Range*: how far the target's ability is beyond nearly all sources, above or below; for a method
  that cannot go beyond them, where the target ranks among the sources on the same items.
- *Person fit*: whether the answers are as likely as those of the sources. The statistic is the
  standardized log-likelihood l_z of Drasgow, Levine & Williams 1985 (British Journal of
  Mathematical and Statistical Psychology 38), ranked among the sources' own on the same items.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fewbench._blocks import Matrix, is_large
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.item_curves import (
    ItemCurves,
    fit_curves,
    logistic,
    logit,
    score_logits,
)

NODES = 71
REACH = 4.0
"""How far the grid reaches below the weakest and above the strongest source."""
EDGES = 0.05, 0.95
"""Quantiles of the sources' abilities from which distances are measured."""
SURE = 0.02
"""Chances stay this far from 0 and 1 where they are scored."""
SAME = 1e-9
LEAST_REST = 0.2
EXTREME, LIKELY = 0.1, 0.8
"""A method that cannot go beyond the sources is not trusted from this rank among them, from either
end, nor from this probability of an ability beyond 95% of them. On eight real tables with four such
methods, 50 items and 90% intervals, targets stronger than all sources were missed without a warning
in .02 to .07 of cases."""
NEIGHBORS, COMPARED = 3, 500


@dataclass(frozen=True, eq=False)
class Abilities:
    """Item curves on a grid of abilities.

    Attributes
    ----------
    sources : ndarray, shape (sources,)
        Abilities of the sources; all 0 if they score the same.
    curves : ItemCurves
    grid : ndarray, shape (nodes,)
    chances : ndarray, shape (nodes, items)
        Chance of a right answer, averaged over the uncertainty of the curves.
    """

    sources: FloatArray
    curves: ItemCurves
    grid: FloatArray
    chances: FloatArray

    def take(self, items: IntArray) -> "Abilities":
        """Return the curves of some items."""
        chances = self.chances[:, items]
        return Abilities(self.sources, self.curves.take(items), self.grid, chances)

    def at_sources(self, items: IntArray | slice) -> FloatArray:
        """Return the fitted curves at the sources' abilities, shape (sources, items); read-only."""
        if is_large(self.sources.size * self.curves.slope.size):
            return self.curves.take(items).at(self.sources)
        if isinstance(items, slice):
            return self._at_sources[:, items]
        return self._at_sources.take(items, axis=1)

    @cached_property
    def _at_sources(self) -> FloatArray:
        chances = self.curves.at(self.sources)
        chances.flags.writeable = False
        return chances

    @property
    def tell_apart(self) -> bool:
        """Whether the sources differ in ability, so that a target can be placed among them."""
        return bool(self.sources.std() > SAME)

    def posterior(self, items: IntArray, answers: FloatArray) -> FloatArray:
        """Return the weights of the nodes given answers in [0, 1], shape (..., nodes).

        `answers` has shape (..., n), in the order of `items`.
        """
        chances = self.chances[:, items]
        likelihood = answers @ np.log(chances).T + (1 - answers) @ np.log1p(-chances).T
        weights = np.exp(likelihood - likelihood.max(axis=-1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))

    def distance(self, weights: FloatArray) -> float:
        """Return how far a target is above 95% or below 5% of the sources.

        In standard deviations of the sources, from the posterior mean; positive above, negative
        below, 0 between.

        >>> from fewbench.testing import simulate
        >>> scores = simulate(40, 60)
        >>> abilities = fit_abilities(scores.filled, scores.full_scores(), 60)
        >>> items = np.arange(30)
        >>> [bool(abilities.distance(abilities.posterior(items, np.full(30, x))) * s > 1)
        ...     for x, s in ((1.0, 1), (0.0, -1))]
        [True, True]
        """
        if not self.tell_apart:
            return 0.0
        mean = float(weights @ self.grid)
        low, high = np.quantile(self.sources, EDGES)
        return max(mean - float(high), 0.0) + min(mean - float(low), 0.0)

    def chance_beyond(self, weights: FloatArray) -> float:
        """Return the probability that a target is above 95% or below 5% of the sources."""
        if not self.tell_apart:
            return 0.0
        low, high = np.quantile(self.sources, EDGES)
        return float(weights[(self.grid < low) | (self.grid > high)].sum())

    def fit_p_values(self, theirs: FloatArray, items: IntArray, answers: FloatArray) -> FloatArray:
        """Return the share of models, sources and a target, whose answers fit no better.

        For a target like the sources it is at most p with probability p, nearly: each source is
        judged by curves without its own answer (in one step).

        Parameters
        ----------
        theirs : ndarray, shape (sources, n)
            The sources' answers to the items.
        items : ndarray of int, shape (n,)
        answers : ndarray, shape (targets, n)

        Returns
        -------
        ndarray, shape (targets,)
        """
        if not self.tell_apart:
            return np.ones(len(answers))
        every, n_sources = np.vstack([theirs, answers]), len(theirs)
        chances = self.posterior(items, every) @ self.chances[:, items]
        logits = logit(chances)
        # A source helped to fit the curves, a target did not: without its own pull it fits no
        # better than one.
        logits[:n_sources] -= self._own_pull(theirs, items)
        chances = np.clip(logistic(logits), SURE, 1 - SURE)
        # l_z of Drasgow, Levine & Williams (1985): the log-likelihood less its mean is the sum of
        # (answer - chance) times logit.
        weights = logit(chances)
        surprise = ((every - chances) * weights).sum(axis=1)
        variance = (chances * (1 - chances) * weights**2).sum(axis=1)
        fit = surprise / np.sqrt(variance + SAME)
        return _ranks_from_below(fit[:n_sources], fit[n_sources:] + SAME)

    def ranks(
        self, theirs: FloatArray, items: IntArray, answers: FloatArray
    ) -> tuple[float, float]:
        """Return the share of models that do as well as a target or better, and as badly or worse.

        Among the sources and the target itself, by the share of right answers or by ability,
        whichever is more extreme. Parameters as for `fit_p_values`.
        """
        every = np.vstack([theirs, answers])
        each = np.column_stack([every.mean(axis=1), self.posterior(items, every) @ self.grid])
        better = (each >= each[-1] - SAME).sum(axis=0).min()
        worse = (each <= each[-1] + SAME).sum(axis=0).min()
        return float(better / len(every)), float(worse / len(every))

    def beyond(
        self, theirs: FloatArray, items: IntArray, answers: FloatArray, reach: float
    ) -> str | None:
        """Return where a target is beyond the sources: "above", "below" or None.

        By more than `reach` standard deviations of the sources' abilities; where that is 0, by rank
        and probability (see `EXTREME`). The other parameters are those of `fit_p_values`.
        """
        if reach > 0:
            distance = self.distance(self.posterior(items, answers))
            if abs(distance) >= reach:
                return "above" if distance > 0 else "below"
        elif self.tell_apart:
            better, worse = self.ranks(theirs, items, answers)
            weights, edges = self.posterior(items, answers), np.quantile(self.sources, EDGES)
            below, above = weights[self.grid < edges[0]].sum(), weights[self.grid > edges[1]].sum()
            extreme = max(EXTREME, 1 / (1 + len(theirs)))
            if better <= extreme or above >= LIKELY:
                return "above"
            if worse <= extreme or below >= LIKELY:
                return "below"
        return None

    def misfits(
        self, theirs: FloatArray, items: IntArray, answers: FloatArray, misfit: float
    ) -> bool:
        """Return whether the answers' fit or novelty has a p-value of at most `misfit`."""
        fits = float(self.fit_p_values(theirs, items, answers[None])[0])
        return fits <= misfit or float(novelty_p_values(theirs, answers[None])[0]) <= misfit

    def _own_pull(self, theirs: FloatArray, items: IntArray) -> FloatArray:
        """Return how far each source's answer pulled the logit of its own chance."""
        curves, at = self.curves.take(items), self.sources[:, None]
        of_b, both, of_a = curves.covariance
        leverage = of_b + 2 * at * both + at**2 * of_a
        chances = curves.at(self.sources)
        rest = np.maximum(1 - leverage * chances * (1 - chances), LEAST_REST)
        return np.asarray(leverage * (theirs - chances) / rest)


def novelty_p_values(theirs: FloatArray, answers: FloatArray) -> FloatArray:
    """Return the share of models whose nearest other models answer no more alike than a target's.

    The mean disagreement with the three nearest sources, ranked among that of the sources
    themselves (at most 500 of them).

    Parameters
    ----------
    theirs : ndarray, shape (sources, n)
    answers : ndarray, shape (targets, n)

    Returns
    -------
    ndarray, shape (targets,)

    Examples
    --------
    >>> rows = np.tile([[1.0, 1, 0, 0], [0, 0, 1, 1]], (20, 1))
    >>> novelty_p_values(rows, np.array([rows[0], rows[0] * 0])).round(2).tolist()
    [1.0, 0.02]
    """
    if len(theirs) <= NEIGHBORS:
        return np.ones(len(answers))
    some = theirs[:: -(-len(theirs) // COMPARED)]
    every, n_sources = np.vstack([some, answers]), len(some)
    apart = every @ (1 - some.T) + (1 - every) @ some.T
    apart[np.arange(n_sources), np.arange(n_sources)] = np.inf
    nearest = np.partition(apart, NEIGHBORS - 1, axis=1)[:, :NEIGHBORS].sum(axis=1)
    return _ranks_from_below(-nearest[:n_sources], SAME - nearest[n_sources:])


def _ranks_from_below(theirs: FloatArray, own: FloatArray) -> FloatArray:
    """Return each target's rank from below among the sources and itself, as a share."""
    below = np.searchsorted(np.sort(theirs), own, side="right")
    return np.asarray((1.0 + below) / (1 + len(theirs)))


def fit_abilities(answers: Matrix, full: FloatArray, n_items: int) -> Abilities:
    """Fit curves to the sources' answers.

    Parameters
    ----------
    answers : Matrix, shape (sources, items)
        In [0, 1], without gaps; all items of the benchmark, or some.
    full : ndarray, shape (sources,)
        Full scores in [0, 1].
    n_items : int
        Number of items of the benchmark.
    """
    logits = score_logits(full, n_items)
    sources = np.zeros(len(logits))
    if logits.std() > SAME:
        sources = (logits - logits.mean()) / logits.std()
    curves = fit_curves(answers, sources)
    grid = np.linspace(sources.min() - REACH, sources.max() + REACH, NODES)
    return Abilities(sources, curves, grid, curves.expected(grid))
