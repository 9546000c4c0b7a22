"""Flash-HELM: few random items for all models, more for models that rank high on them.

Perlitz et al. 2024, "Efficient Benchmarking (of Language Models)" (arXiv 2308.11696): if only the
top of a ranking must be resolved, all models are ranked coarsely first. Models in a better tier
run as many more items as the tier requires.

We found no program and worked from summaries of the paper and HELM's documentation. The five tiers,
the random examples of each scenario and the mean come from there; the equal factors of rank and
items between tiers are ours, and so are the tiers' sizes (HELM's have 10 to 1,000 items of each
scenario). On GSM8K, at the same mean number of items (101), the error on the best tenth of the
models was 2.2 pp, half that of random sampling. A model that is unlucky at first keeps its low
mean: on MATH and MuSR, scores are 3.5 pp too low on average at a budget of 100.
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
    """Random items in tiers: the whole budget for the top tier, part of it for the others.

    Each target runs the items of the lowest tier. A target that ranks within the next tier, among
    the sources, runs the rest of that tier's items and is ranked again, and so on. The score is
    the mean of all answers. No target exceeds the budget; the mean number of items is below it.
    With a budget of all items, only estimates of targets in the top tier are exact.

    - `tiers`: Number of tiers. Each tier is a top share of the ranking; shares fall from all models
      to `top` by equal factors.
    - `ratio`: Items of a tier divided by items of the tier below.
    - `least`: Least items of a tier, unless the budget is lower.
    - `top`: Share of the ranking in the top tier, in percent; at least one model.
    - `stratified`: Draw items of each task by its share of the full score, as the paper samples
      each scenario; otherwise draw from all items alike.
    - `ranked_by` ("full", "same"): Rank a target's mean among the sources' full scores, or among
      their means on the same items.
    """

    tiers: int = 5
    ratio: float = 2.0
    least: int = 10
    top: float = 10.0
    stratified: bool = True
    ranked_by: Literal["full", "same"] = "full"
    needs: ClassVar = (Need("independent sources", 10, "few sources make a coarse ranking"),)
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
        """Return the number of items of each tier, lowest tier first.

        >>> FlashHelm().sizes(100)
        [10, 13, 25, 50, 100]
        """
        least, falling = min(self.least, budget), range(self.tiers - 1, -1, -1)
        return [max(least, int(np.ceil(budget * self.ratio**-k - 1e-9))) for k in falling]

    def lowest_ranks(self, n_models: int) -> list[int]:
        """Return the lowest rank within each tier, lowest tier first.

        >>> FlashHelm().lowest_ranks(100)
        [100, 57, 32, 18, 10]
        """
        steps = max(self.tiers - 1, 1)
        shares = [(self.top / 100.0) ** (k / steps) for k in range(self.tiers)]
        return [max(1, int(np.ceil(share * n_models - 1e-9))) for share in shares]

    def describe(self) -> str:
        """Return the method and its changed settings as the command line writes them."""
        return write("flash-helm", self)


class FlashHelmSession(Session):
    """Asks the next tier's items while a target ranks within it.

    `order` has the positions of all items in the order in which each target runs them.
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
        """Return the remaining items of each target's tier."""
        chosen = {}
        for target in targets:
            done = len(self.record.asked(target))
            wanted = self._sizes[self._tier(target, done)]
            if wanted > done:
                left = self.order[~np.isin(self.order, self.record.asked(target))]
                chosen[target] = left[: wanted - done]
        return chosen

    def _tier(self, target: str, done: int) -> int:
        """Return a target's tier: it rises while its answers rank within the next tier."""
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
        """Return the rank among the sources; the target comes first among equals."""
        mean = self._mean(items, n_asked)
        others = self._scores.full_scores()
        if self._method.ranked_by == "same":
            same = Answers(items, self._scores.filled_cells[:, items])
            others = mean.predict(same, tasks=False).scores
        own = mean.predict(self.record.answers(target, items), tasks=False).scores[0]
        return 1 + int((others > own + 1e-9).sum())

    def _mean(self, items: IntArray, n: int) -> FittedMean:
        """Return the mean over items, of n asked, in which tasks weigh as in the full score."""
        scores = self._scores
        task_of, weights = scores.task_of[items], scores.item_weights[items]
        if self._method.stratified and n < scores.n_items:
            masses = np.bincount(scores.task_of, weights=scores.item_weights)
            # Decided by n alone: weights that depend on the drawn tasks would be biased.
            if n - len(masses) >= 1.0 / max(float(masses.min()), 1e-12):
                counts = np.bincount(task_of, minlength=len(masses))
                weights = (masses / np.maximum(counts, 1))[task_of]
            else:  # by the expected number of the task's items
                expected = expected_counts(n, masses, np.bincount(scores.task_of))
                weights = (masses / np.maximum(expected, 1e-12))[task_of]
        return FittedMean(len(scores.tasks), task_of, weights, self._lines)

    @cached_property
    def _lines(self) -> TaskLines:
        return task_lines(self._scores)

    def predict(self, targets: Sequence[str], *, tasks: bool = True) -> Prediction:
        """Predict by the means of the answers, together for targets with the same items."""
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
    """Return a random order of all items in which each prefix has each task by its share.

    Items of a task are in random order, at equal steps from a random start; a larger share means
    smaller steps. The first n items include each task if n exceeds the number of tasks plus 1 over
    the smallest share.
    """
    place = np.empty(scores.n_items)
    masses = np.bincount(scores.task_of, weights=scores.item_weights)
    for task, mass in enumerate(masses):
        items = rng.permutation(np.flatnonzero(scores.task_of == task))
        place[items] = (np.arange(len(items)) + rng.random()) / max(mass, 1e-12)
    return np.argsort(place, kind="stable")
