"""Fluid benchmarking: the next item is the most informative one at the estimated ability.

Hofmann et al. 2025, "Fluid Language Model Benchmarking" (arXiv 2509.11106): a computerized
adaptive test. An item response model of the sources gives the probability of a right answer by
ability. After each answer a target's ability is estimated, and the next item is the one with the
highest Fisher information at that ability.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from fewbench.methods.base import Method, Prediction, Session
from fewbench.methods.needs import Need
from fewbench.methods.written import check_number, check_words, write
from fewbench.scores import Scores
from fewbench.support import FloatArray, IntArray
from fewbench_papers.algorithms.irt import binary
from fewbench_papers.algorithms.irt.abilities import (
    most_informative,
    most_likely_abilities,
    standard_errors,
)
from fewbench_papers.tinybenchmarks.item_response import source_model

_AT_ONCE = 16  # targets whose items are chosen together, so that they fit in the cache
CAUTION = 20.0
"""Number of answers at which the correction is half of the mean residual.

It suits mean residuals with mean 0 and standard deviation 0.1 over targets.
"""
BY_CHANCE = 2.0
"""Number of variances up to which chance explains a gap between random and all residuals."""


@dataclass(frozen=True)
class Fluid(Method):
    """Random items, then items of highest Fisher information at the target's ability.

    The estimated ability gives the expected score of each item. One ability may not describe a
    target fully; expected scores are then off, more so for stronger targets, and items chosen for
    their information show little of this. So half of the items are random, and each item that was
    not run is corrected by

        n / (n + 20) * r + max(0, 1 - 2 v / d^2) * d

    where r is the mean of answer minus expected score over the n answers, d is that mean over the
    random items minus r, and v is the variance of the mean over random items. The random items
    thus count where chance does not explain their difference.

    The paper has neither random items nor a correction. It ranks models by ability only:
    `fluid(random=0,estimate=expected)`, whose scores rank models that ran the same items as the
    ability does, unless many items have negative discrimination. Unlike the authors' program, the
    item response model is fitted by marginal maximum likelihood, discriminations may have either
    sign, and abilities are not cut to -4 to 4. The seed breaks ties between equally informative
    items.

    - `random`: Share of the budget for random items, from 0 to 1. They run first, all at once.
    - `step`: Number of informative items per step, the first at the sources' mean ability. With the
      paper's 1, a target runs once per informative item.
    - `estimate` ("corrected", "answers", "expected"): Answers where there are any and expected
      scores elsewhere, corrected or not; both are exact when all items are run. Or expected scores
      of all items.
    - `until`: Stop before the budget is spent, once the ability's standard error is at most this
      (the paper's dynamic stopping).

    Examples
    --------
    >>> Fluid(step=10).describe()
    'fluid(step=10)'
    """

    random: float = 0.5
    step: int = 1
    estimate: Literal["corrected", "answers", "expected"] = "corrected"
    until: float | None = None
    needs: ClassVar[tuple[Need, ...]] = (
        Need("sources", 2, "nothing distinguishes one item from another", required=True),
        Need("independent sources", 20, "few source models describe an item only roughly"),
    )

    @property
    def whole_budget(self) -> bool:
        """Whether each target runs the whole budget."""
        return self.until is None

    def start(
        self, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> "FluidSession":
        """Fit the item response model; MethodError if a setting is out of range."""
        check_words(self)
        check_number("random", self.random, 0, 1)
        check_number("step", self.step, 1)
        check_number("until", self.until, 0.001, 1)
        return FluidSession(self, scores, budget, seed, targets)

    def describe(self) -> str:
        """Return the method and its changed settings as the command line writes them."""
        return write("fluid", self)


class FluidSession(Session):
    """Asks each target the most informative items at its estimated ability.

    `order` has the positions of all items, shuffled: the first are the random items, and among
    equally informative items the first is chosen.
    """

    def __init__(
        self, method: Fluid, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> None:
        super().__init__(targets, scores.n_items)
        fitted = source_model(scores, 1)
        self._method, self._scores, self._budget = method, scores, budget
        self._n_random = round(method.random * budget)
        self.order = np.random.default_rng(seed).permutation(scores.n_items)
        self._place = np.argsort(self.order)
        self._cuts = fitted.cuts
        self._model = model = fitted.model
        self._notes = fitted.notes
        self._shuffled = replace(
            model,
            discrimination=model.discrimination[self.order],
            intercept=model.intercept[self.order],
        )

    def choose(self, targets: Sequence[str]) -> dict[str, IntArray]:
        """Return the most informative items at each target's estimated ability."""
        chosen: dict[str, IntArray] = {}
        for names in self._alike(targets):
            chosen |= self._choose(names)
        return {name: items for name, items in chosen.items() if len(items)}

    def abilities(self, targets: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Return abilities (the paper's ranking) and their standard errors, both (targets,)."""
        theta, errors = np.empty(len(targets)), np.empty(len(targets))
        places = {name: place for place, name in enumerate(targets)}
        for names in self._alike(targets):
            rows = [places[name] for name in names]
            theta[rows], errors[rows] = self._estimate(names)
        return theta, errors

    def predict(self, targets: Sequence[str], *, tasks: bool = True) -> Prediction:
        """Predict from every item's expected score at the target's ability."""
        scores, method = self._scores, self._method
        theta, _ = self.abilities(targets)
        items = self._model.expected(theta[:, None])
        off = np.zeros(len(targets))
        left = np.ones(items.shape)  # 1 where an item was not run
        if method.estimate != "expected":
            for row, name in enumerate(targets):
                at = self.record.answered(name)
                answers = self.record.scores(name)[at]
                if method.estimate == "corrected":
                    weights = scores.item_weights[at]
                    off[row] = _mean_off(
                        answers, items[row, at], weights, self._random_answers(name)
                    )
                items[row, at], left[row, at] = answers, 0.0
        full = items @ scores.item_weights + off * (left @ scores.item_weights)
        by_task = None
        if tasks:
            by_task = scores.task_means(items) + off[:, None] * scores.task_means(left)
            by_task = np.clip(by_task, 0.0, 1.0)
        return Prediction(np.clip(full, 0.0, 1.0), by_task, items, notes=self._notes)

    def _random_answers(self, target: str) -> int:
        """Return how many of the first answers are to random items."""
        rounds = self.record.rounds(target)
        if not self._n_random or not rounds:
            return 0
        return int(np.isfinite(self.record.scores(target)[rounds[0]]).sum())

    def _alike(self, targets: Sequence[str]) -> list[list[str]]:
        """Group at most `_AT_ONCE` targets with equally many asked and answered items."""
        by_count: dict[tuple[int, int], list[str]] = {}
        for name in targets:
            counts = len(self.record.asked(name)), len(self.record.answered(name))
            by_count.setdefault(counts, []).append(name)
        return [
            names[begin : begin + _AT_ONCE]
            for names in by_count.values()
            for begin in range(0, len(names), _AT_ONCE)
        ]

    def _estimate(self, targets: list[str]) -> tuple[FloatArray, FloatArray]:
        """Return abilities and standard errors of targets with equally many answers."""
        items = np.stack([self.record.answered(name) for name in targets])
        answers = np.stack(
            [self.record.scores(name)[self.record.answered(name)] for name in targets]
        )
        right = binary(answers, self._cuts[items])
        theta = most_likely_abilities(self._model, items, right)
        return theta, standard_errors(self._model, items, theta)

    def _choose(self, targets: list[str]) -> dict[str, IntArray]:
        """Choose for targets with equally many asked and answered items."""
        method, done = self._method, len(self.record.asked(targets[0]))
        if done < self._n_random:
            return {
                name: self.order[~np.isin(self.order, self.record.asked(name))][
                    : self._n_random - done
                ]
                for name in targets
            }
        n = min(method.step, self._budget - done)
        if n <= 0:
            return {}
        theta, errors = self._estimate(targets)
        run = np.zeros((len(targets), self._scores.n_items), dtype=bool)
        for row, name in enumerate(targets):
            run[row, self._place[self.record.asked(name)]] = True
        chosen = self.order[most_informative(self._shuffled, theta, run, n)]
        enough = method.until is not None and done > 0
        return {
            name: chosen[row]
            for row, name in enumerate(targets)
            if not (enough and errors[row] <= (method.until or 0.0))
        }


def _mean_off(
    answers: FloatArray, expected: FloatArray, weights: FloatArray, n_random: int
) -> float:
    """Return the correction of items that were not run; the first `n_random` answers are random."""
    if not len(answers):
        return 0.0
    residuals = answers - expected
    mean, count = _weighted(residuals, weights)
    off = mean * count / (count + CAUTION)
    if not n_random:
        return off
    of_random, count = _weighted(residuals[:n_random], weights[:n_random])
    gap = of_random - mean
    # A few answers that are all right vary by nothing, and are not sure for that.
    by_model = float((expected * (1.0 - expected))[:n_random].mean())
    variance = max(by_model, float(residuals[:n_random].var())) / count
    # Positive-part shrinkage: nothing of a gap that chance explains, all of a far larger one.
    return off + gap * max(0.0, 1.0 - BY_CHANCE * variance / max(gap**2, 1e-300))


def _weighted(values: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return a weighted mean and its effective number of equally weighted values."""
    total = weights.sum()
    return float(weights @ values / total), float(total**2 / (weights**2).sum())
