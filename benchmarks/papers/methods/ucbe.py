"""UCB-E-LRF: a bandit that runs the most promising target on its most uncertain items.

Zhou et al. 2025, "On Speeding Up Language Model Evaluation" (ICLR, arXiv 2407.06172), which
two-stage collaborative filtering compares with in Table 5. Low-rank factorizations say what a
target would score on items that were not run, and how sure that is: a table of scores is about
U Vᵀ, fitted by alternating ridge regressions. Each member of an ensemble leaves out other cells;
where members differ, a value is uncertain.

What differs from the paper: it factorizes the sources and the target together in each round. Here
the loadings V come from the complete sources alone, so that one fit serves all targets and rounds,
and no target affects another one. The program spends one budget on all models; `share` states it
for each target. All targets start with the same random items. Scores are not centered: at rank 1,
an expected score is the model's ability times the item's easiness.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fewbench._seeds import child_seed
from fewbench._types import BoolArray, FloatArray, IntArray
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
        Need("independent sources", 10, "few sources tell little of how items relate"),
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
        """Return the most uncertain items that the target does not have yet."""
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
    def _ensemble(self) -> "Ensemble":
        one, rng = self._method, np.random.default_rng(child_seed(self._seed, 1))
        settings = (one.rank, one.members, one.dropped, one.penalty, one.steps)
        return fit_ensemble(self._scores.filled, *settings, rng)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Fitted loadings, shape (members, items, rank), and the cells of a new row that count.

    `kept`, shape (members, items), is false where a member leaves out a cell of a new row.
    """

    loadings: FloatArray
    kept: BoolArray
    penalty: float

    def complete(self, items: IntArray, answers: FloatArray) -> FloatArray:
        """Return each member's values of a new row, shape (members, all items), not clipped.

        `answers`, shape (n,), are the known values at the positions `items`.
        """
        known = self.loadings[:, items] * self.kept[:, items, None]
        squares = known.transpose(0, 2, 1) @ known + self.penalty * np.eye(known.shape[2])
        factors = np.linalg.solve(squares, known.transpose(0, 2, 1) @ answers[:, None])
        return np.asarray((self.loadings @ factors)[..., 0])


def fit_ensemble(
    values: FloatArray,
    rank: int,
    members: int,
    dropped: float,
    penalty: float,
    steps: int,
    rng: np.random.Generator,
) -> Ensemble:
    """Fit an ensemble of factorizations to complete rows.

    - `values`, shape (models, items).
    - `dropped`: Share of the cells that each member leaves out, in [0, 1).
    - `penalty`: Ridge penalty of each regression, above 0.
    - `steps`: Alternations, from random loadings.

    >>> rows = np.outer([0.5, 0.7, 1.0], [0.2, 0.4, 0.8])
    >>> ensemble = fit_ensemble(rows, 1, 4, 0.0, 1e-6, 5, np.random.default_rng(0))
    >>> ensemble.complete(np.array([0]), np.array([0.1])).mean(axis=0).round(2).tolist()
    [0.1, 0.2, 0.4]
    """
    n_items = values.shape[1]
    loadings = np.empty((members, n_items, rank))
    for member in loadings:
        kept = (rng.random(values.shape) >= dropped).astype(np.float64)
        known = values * kept
        member[:] = rng.random((n_items, rank))
        for _ in range(steps):
            models = _ridge(known, kept, member, penalty)
            member[:] = _ridge(known.T, kept.T, models, penalty)
    return Ensemble(loadings, rng.random((members, n_items)) >= dropped, penalty)


def _ridge(known: FloatArray, kept: FloatArray, by: FloatArray, penalty: float) -> FloatArray:
    """Regress each row on `by`, shape (columns, rank), over the cells that are kept."""
    rank = by.shape[1]
    pairs = (by[:, :, None] * by[:, None, :]).reshape(len(by), -1)
    squares = (kept @ pairs).reshape(-1, rank, rank) + penalty * np.eye(rank)
    return np.asarray(np.linalg.solve(squares, (known @ by)[..., None])[..., 0])
