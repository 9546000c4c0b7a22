"""UCB-E-LRF: a bandit that runs the most promising target on its most uncertain items.

Zhou et al. 2025, "On Speeding Up Language Model Evaluation" (ICLR, arXiv 2407.06172), which
two-stage collaborative filtering compares with in Table 5. Low-rank factorizations say what a
target would score on items that were not run, and how sure that is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fewbench._seeds import child_seed
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.completion.factorization import Ensemble, fit_ensemble
from fewbench.methods.base import Method, Prediction, Session
from fewbench.methods.needs import Need
from fewbench.methods.written import check_number, write
from fewbench.scores import Scores


@dataclass(frozen=True)
class Ucbe(Method):
    """Random items first, then batches for the target with the highest upper confidence bound.

    A target's bound is its mean score over all items: its answers, and elsewhere what the
    factorizations expect plus `exploration` times their standard deviation. The target with the
    highest bound runs its next items, those with the largest standard deviation. All targets
    together run `share` of their budgets, and none more than the budget. A single target, or any
    with `share=1`, runs its whole budget. The defaults are those of the authors' program, except
    for `share`: their budget is one number for all models.

    - `share`: Items of all targets together divided by the sum of their budgets.
    - `batch`: Items per round.
    - `warmup`: Random items that each target runs first, as a share of all items.
    - `exploration`: Weight of the standard deviation in the bound (eta).
    - `rank`: Rank of the factorizations.
    - `members`: Number of factorizations.
    - `dropped`: Share of the cells that each factorization leaves out.
    - `penalty`: Ridge penalty.
    - `steps`: Alternations of the fit.
    """

    share: float = 0.5
    batch: int = 32
    warmup: float = 0.05
    exploration: float = 5.0
    rank: int = 1
    members: int = 64
    dropped: float = 0.05
    penalty: float = 0.1
    steps: int = 10
    needs: ClassVar[tuple[Need, ...]] = (
        Need("distinct sources", 10, "few sources tell little of how items relate"),
    )
    costly: ClassVar[bool] = True

    @property
    def whole_budget(self) -> bool:
        """Whether each target runs the whole budget."""
        return self.share == 1.0

    @property
    def targets_apart(self) -> bool:
        """Whether a target's items are independent of the other targets."""
        return self.share == 1.0

    def start(
        self, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> "UcbeSession":
        """Open a session; MethodError if a setting is out of range."""
        check_number("share", self.share, 0.001, 1)
        check_number("warmup", self.warmup, 0, 1)
        check_number("exploration", self.exploration, 0)
        check_number("dropped", self.dropped, 0, 0.9)
        check_number("penalty", self.penalty, 1e-6)
        check_number("batch", self.batch, 1, 1_000_000)
        check_number("rank", self.rank, 1, 50)
        for name in ("members", "steps"):
            check_number(name, getattr(self, name), 1, 1000)
        return UcbeSession(self, scores, budget, seed, targets)

    def describe(self) -> str:
        """Return the method and its changed settings as the command line writes them."""
        return write("ucbe-lrf", self)


class UcbeSession(Session):
    """Asks all targets the same random items, then one target at a time, or each on its own."""

    def __init__(
        self, method: Ucbe, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> None:
        super().__init__(targets, scores.n_items)
        self._method, self._scores, self._seed = method, scores, seed
        self._most = min(budget, scores.n_items)
        warm = min(self._most, max(1, round(method.warmup * scores.n_items)))
        self._order = np.random.default_rng(seed).permutation(scores.n_items)
        self._first = self._order[:warm]
        self._alone = method.share == 1.0 or len(targets) == 1
        spent = self._most if self._alone else round(method.share * self._most)
        self._total = len(targets) * max(spent, warm)
        self._bounds: dict[str, tuple[bytes, float]] = {}  # by the answers that they rest on

    def choose(self, targets: Sequence[str]) -> dict[str, IntArray]:
        """Return the first items of new targets, or a batch of the target of highest bound."""
        new = {name: self._first for name in targets if not len(self.record.asked(name))}
        if new:
            return new
        asked = {name: len(self.record.asked(name)) for name in self.record.targets}
        left = self._total - sum(asked.values())
        wanting = [name for name in targets if asked[name] < self._most]
        if left <= 0 or not wanting:
            return {}
        if self._alone:
            return {name: self._uncertain(name, left) for name in wanting}
        waiting = dict.fromkeys(wanting, self._order[:0])
        if len(targets) < len(self.record.targets):  # a batch is open
            return waiting
        best = min(wanting, key=lambda name: (-self._bound(name), name))
        items = self._uncertain(best, left)
        return {**(waiting if len(items) < left else {}), best: items}

    def predict(self, targets: Sequence[str], *, tasks: bool = True) -> Prediction:
        """Predict all items of each target by the factorizations' mean; scores are their means."""
        items = np.array([self._expected(target)[0] for target in targets])
        full = np.clip(items @ self._scores.item_weights, 0.0, 1.0)
        of_tasks = np.clip(self._scores.task_means(items), 0.0, 1.0) if tasks else None
        return Prediction(full, of_tasks, np.clip(items, 0.0, 1.0))

    def _uncertain(self, target: str, left: int) -> IntArray:
        """Return the most uncertain items that the target was not asked."""
        asked = self.record.asked(target)
        _, spread = self._expected(target)
        spread[asked] = -1.0
        n = min(self._method.batch, self._most - len(asked), left)
        return self._order[np.argsort(-spread[self._order], kind="stable")][:n]

    def _bound(self, target: str) -> float:
        """Return the upper confidence bound of a target's full score."""
        key = self.record.scores(target).tobytes()
        if self._bounds.get(target, (b"", 0.0))[0] != key:
            expected, spread = self._expected(target)
            high = expected + self._method.exploration * spread
            self._bounds[target] = key, float(high @ self._scores.item_weights)
        return self._bounds[target][1]

    def _expected(self, target: str) -> tuple[FloatArray, FloatArray]:
        """Return a target's answers, elsewhere expected scores, and standard deviations."""
        run = self.record.answered(target)
        answers = self.record.scores(target)[run]
        made = self._ensemble.complete(run, answers)
        expected, spread = made.mean(axis=0), made.std(axis=0)
        expected[run], spread[run] = answers, 0.0
        return expected, spread

    @cached_property
    def _ensemble(self) -> Ensemble:
        one, rng = self._method, np.random.default_rng(child_seed(self._seed, 1))
        settings = (one.rank, one.members, one.dropped, one.penalty, one.steps)
        return fit_ensemble(self._scores.filled, *settings, rng)
