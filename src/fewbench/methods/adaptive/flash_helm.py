"""Flash-HELM: few random items for all, more for those that rank high on them.

Perlitz et al. 2024, "Efficient Benchmarking (of Language Models)" (arXiv 2308.11696): where only
the top of a ranking has to be resolved, models are placed coarsely first, and only those placed
in a better tier are run on as many more items as that tier is worth.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from fewbench._types import IntArray
from fewbench.algorithms.sampling import expected_counts
from fewbench.methods.base import Answers, Method, Prediction, Session, joined
from fewbench.methods.needs import Need
from fewbench.methods.prediction.completed import TaskLines, task_lines
from fewbench.methods.prediction.mean import FittedMean
from fewbench.methods.written import check_number, check_words, write
from fewbench.scores import Scores


@dataclass(frozen=True)
class FlashHelm(Method):
    """Random items in tiers: the budget for the top tier, a part of it for every other.

    Everyone is run on the lowest tier's items. Whoever then ranks within the next tier, among the
    sources and itself, is run on the rest of that tier's items and ranked again, and so on. The
    score is the mean of all answers. The mean number of items run is below the budget, which no
    target exceeds. With a budget of all items the estimate is exact for those who reach the top
    tier, and for them alone.

    Parameters
    ----------
    tiers : int
        Number of tiers. Each holds the models down to a share of the ranking; the shares fall
        from all to `top` by equal factors.
    ratio : float
        How many times the items of a tier are those of the one below.
    least : int
        No tier has fewer items than this, or than the budget if that is less.
    top : float
        Share of the ranking, in percent, that is the top tier: at least one model.
    stratified : bool
        Draw items of every task by its share of the full score, as the paper samples every
        scenario; or from all items alike.
    ranked_by : {"full", "same"}
        Rank a target's mean among the sources' full scores, or among their means on the same
        items.
    """

    tiers: int = 5
    ratio: float = 2.0
    least: int = 10
    top: float = 10.0
    stratified: bool = True
    ranked_by: Literal["full", "same"] = "full"
    needs: ClassVar = (Need("distinct sources", 10, "few sources make a coarse ranking"),)
    whole_budget: ClassVar[bool] = False

    def start(
        self, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> "FlashHelmSession":
        """Draw the order of the items; MethodError if a setting is out of range."""
        check_words(self)
        check_number("tiers", self.tiers, 1, 100)
        check_number("ratio", self.ratio, 1)
        check_number("least", self.least, 1)
        check_number("top", self.top, 0.001, 100)
        return FlashHelmSession(self, scores, budget, seed, targets)

    def sizes(self, budget: int) -> list[int]:
        """Return how many items each tier is run on, the lowest first.

        Examples
        --------
        >>> FlashHelm().sizes(100)
        [10, 13, 25, 50, 100]
        """
        least, falling = min(self.least, budget), range(self.tiers - 1, -1, -1)
        return [max(least, int(np.ceil(budget * self.ratio**-k - 1e-9))) for k in falling]

    def lowest_ranks(self, n_models: int) -> list[int]:
        """Return the lowest rank that is within each tier, the lowest tier first.

        Examples
        --------
        >>> FlashHelm().lowest_ranks(100)
        [100, 57, 32, 18, 10]
        """
        steps = max(self.tiers - 1, 1)
        shares = [(self.top / 100.0) ** (k / steps) for k in range(self.tiers)]
        return [max(1, int(np.ceil(share * n_models - 1e-9))) for share in shares]

    def describe(self) -> str:
        """Return the method and its settings as the command line writes them."""
        return write("flash-helm", self)


class FlashHelmSession(Session):
    """Asks for the next tier's items while a target ranks within it.

    Attributes
    ----------
    order : ndarray of int
        Positions of all items in the order in which every target is run on them.
    """

    def __init__(
        self, method: FlashHelm, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> None:
        super().__init__(targets, scores.n_items)
        rng = np.random.default_rng(seed)
        self._scores, self._method = scores, method
        self.order = _by_task(scores, rng) if method.stratified else rng.permutation(scores.n_items)
        self._sizes = method.sizes(budget)
        self._lowest = method.lowest_ranks(scores.n_models + 1)

    def choose(self, targets: Sequence[str]) -> dict[str, IntArray]:
        """Return the items that targets lack of those of their tier."""
        chosen = {}
        for target in targets:
            done = len(self.record.asked(target))
            wanted = self._sizes[self._tier(target, done)]
            if wanted > done:
                left = self.order[~np.isin(self.order, self.record.asked(target))]
                chosen[target] = left[: wanted - done]
        return chosen

    def _tier(self, target: str, done: int) -> int:
        """Return the tier of a target that was asked the first items of the order.

        While its answers rank within the next tier it moves up, until that tier has more items.
        """
        tier = 0
        while done >= self._sizes[tier] and tier + 1 < len(self._sizes):
            asked = self.record.asked(target)[: self._sizes[tier]]
            answered = asked[np.isfinite(self.record.scores(target)[asked])]
            if (
                not len(answered)
                or self._rank(target, answered, len(asked)) > self._lowest[tier + 1]
            ):
                break
            tier += 1
        return tier

    def _rank(self, target: str, items: IntArray, n_asked: int) -> int:
        """Place among the sources; of equals the target is the first."""
        mean = self._mean(items, n_asked)
        others = self._scores.full_scores()
        if self._method.ranked_by == "same":
            same = Answers(items, self._scores.filled[:, items])
            others = mean.predict(same, tasks=False).scores
        own = mean.predict(self.record.answers(target, items), tasks=False).scores[0]
        return 1 + int((others > own + 1e-9).sum())

    def _mean(self, items: IntArray, n: int) -> FittedMean:
        """The mean over items, of n asked, in which tasks weigh as in the full score."""
        scores = self._scores
        task_of, weights = scores.task_of[items], scores.item_weights[items]
        if self._method.stratified and n < scores.n_items:
            masses = np.bincount(scores.task_of, weights=scores.item_weights)
            # Decided by n alone: to weigh by which tasks happened to be drawn would be biased.
            if n - len(masses) >= 1.0 / max(float(masses.min()), 1e-12):
                counts = np.bincount(task_of, minlength=len(masses))
                weights = (masses / np.maximum(counts, 1))[task_of]
            else:  # by how many of its task were to be expected
                expected = expected_counts(n, masses, np.bincount(scores.task_of))
                weights = (masses / np.maximum(expected, 1e-12))[task_of]
        return FittedMean(len(scores.tasks), task_of, weights, self._lines)

    @cached_property
    def _lines(self) -> TaskLines:
        return task_lines(self._scores)

    def predict(self, targets: Sequence[str], *, tasks: bool = True) -> Prediction:
        """Predict by the means of the answers, of targets that answered the same together."""
        alike: dict[tuple[bytes, int], list[int]] = {}
        for row, target in enumerate(targets):
            key = self.record.answered(target).tobytes(), len(self.record.asked(target))
            alike.setdefault(key, []).append(row)
        parts = []
        for (_, n_asked), rows in alike.items():
            items = self.record.answered(targets[rows[0]])
            told = np.stack([self.record.scores(targets[row])[items] for row in rows])
            parts.append(self._mean(items, n_asked).predict(Answers(items, told), tasks=tasks))
        return joined(parts, list(alike.values()))


def _by_task(scores: Scores, rng: np.random.Generator) -> IntArray:
    """Random order of all items of which every beginning has each task by its share.

    Within a task items are in random order, at equal steps from a random start, the steps as
    small as the task's share is large. Of the first n items, n above the number of tasks + 1 over
    the smallest share, every task has some.
    """
    place = np.empty(scores.n_items)
    masses = np.bincount(scores.task_of, weights=scores.item_weights)
    for task, mass in enumerate(masses):
        items = rng.permutation(np.flatnonzero(scores.task_of == task))
        place[items] = (np.arange(len(items)) + rng.random()) / max(mass, 1e-12)
    return np.argsort(place, kind="stable")
