"""fewbench's own method: a Gaussian process over items, inside and beyond the sources.

Items are chosen to lower the posterior variance of the full score most (optimal design), by a
Gaussian process on the covariance of sources that answer as the target does (kriging, adaptive
testing), and by item characteristic curves that go on beyond the strongest source. The two are
averaged by how likely the target is beyond the sources (Bayesian model averaging). See
`fewbench.algorithms.kriging` for the mathematics and docs/methods/fewbench.md for what it reaches.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench._seeds import child_seed
from fewbench._types import IntArray
from fewbench.algorithms.kriging import KrigingModel, Run, next_together, pool_size
from fewbench.methods.base import Method, Prediction, Session
from fewbench.methods.kriging import NEEDS, item_costs, prediction_of, source_kriging
from fewbench.methods.needs import Need
from fewbench.methods.written import check_number, write
from fewbench.scores import Scores


@dataclass(frozen=True)
class Fewbench(Method):
    """Items that tell most of the full score, in rounds; inside and beyond the sources.

    The first rounds are small, as each shows which sources answer alike; each round brings the
    number of answers to `growth` times what it was: 5, 10, 20, 40, 80 ...

    - `first`: Items of the first round, the same for every target.
    - `growth`: How much each round adds; 1 asks item by item.
    - `cost`: Column of the items' attributes with what running each costs. Items then count by
      what they tell per unit of cost. The budget still counts items.
    - `together`: So many targets, in their order, run the same items, chosen to lower the sum of
      their variances: differences of their scores are more precise. They wait for one another.

    With fewer than 20 distinct sources items are a systematic sample by difficulty, costs do not
    count, and the estimate is pulled to the sample's mean.

    >>> Fewbench(first=8).describe()
    'fewbench(first=8)'
    """

    first: int = 5
    growth: float = 2.0
    cost: str | None = None
    together: int = 1
    needs: ClassVar[tuple[Need, ...]] = NEEDS
    extends: ClassVar[bool] = True

    @property
    def targets_apart(self) -> bool:
        """Whether a target's items are independent of the other targets."""
        return self.together == 1

    def start(
        self, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> "FewbenchSession":
        """Fit the sources; MethodError if a setting is out of range or there are too few."""
        check_number("first", self.first, 1)
        check_number("growth", self.growth, 1, 100)
        check_number("together", self.together, 1)
        return FewbenchSession(self, scores, budget, seed, targets)

    def describe(self) -> str:
        """Return the method and its settings as the command line writes them."""
        return write("fewbench", self)


class FewbenchSession(Session):
    """Asks each target in rounds for the items that tell most of its score."""

    def __init__(
        self, method: Fewbench, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> None:
        super().__init__(targets, scores.n_items)
        self._method, self._scores, self._budget, self._seed = method, scores, budget, seed
        self._costs = item_costs(scores, method.cost)
        self._models: dict[int, KrigingModel] = {}  # by size of the pool
        self._model(0)
        self._runs: dict[str, tuple[list[bytes], Run]] = {}  # with the rounds that it heard

    def choose(self, targets: Sequence[str]) -> dict[str, IntArray]:
        """Return each target's next round."""
        chosen: dict[str, IntArray] = {}
        if (size := self._method.together) > 1:
            every = self.record.targets
            for at in range(0, len(every), size):
                chosen |= self._choose_together(every[at : at + size], targets)
            return chosen
        for name in targets:
            asked = self.record.asked(name)
            n = min(self._round(len(asked)), self._budget - len(asked))
            if n > 0:
                run = self._run(name)
                candidates = run.model.candidates
                costs = None if self._costs is None else self._costs[candidates]
                places = np.searchsorted(candidates, asked)
                chosen[name] = candidates[run.next(n, places, costs)]
        return {name: items for name, items in chosen.items() if len(items)}

    def _choose_together(self, group: Sequence[str], ready: Sequence[str]) -> dict[str, IntArray]:
        """Return one round for a group; those that answered first wait for the others."""
        asked = np.unique(np.concatenate([self.record.asked(name) for name in group]))
        n = min(self._round(len(asked)), self._budget - len(asked))
        if n <= 0:
            return {}
        if not set(group) <= set(ready):
            return {name: np.empty(0, dtype=np.intp) for name in group if name in ready}
        runs = [self._run(name) for name in group]
        candidates = runs[0].model.candidates
        costs = None if self._costs is None else self._costs[candidates]
        places = np.searchsorted(candidates, asked)
        items = candidates[next_together(runs, n, places, costs)]
        return {name: items for name in group if len(items)}

    def predict(self, targets: Sequence[str], *, tasks: bool = True) -> Prediction:
        """Predict from both models, averaged."""
        runs = [self._run(name) for name in targets]
        return prediction_of(runs[0].model, runs, tasks)

    def _round(self, done: int) -> int:
        """Return how many items the round after so many answers has."""
        if not done:
            return self._method.first
        return max(1, int(np.ceil(done * self._method.growth - 1e-9)) - done)

    def _model(self, asked: int) -> KrigingModel:
        """Return the sources' models with as many candidates as so many items need."""
        size = pool_size(asked, self._scores.n_items)
        if size not in self._models:
            self._models[size] = source_kriging(self._scores, self._seed, asked)
        return self._models[size]

    def _run(self, target: str) -> Run:
        """Return what the target's answers say; rounds heard before are not heard again."""
        record = self.record
        asked, scores = record.asked(target), record.scores(target)
        model = self._model(len(asked))
        if not np.isin(asked, model.candidates).all():  # an older release asked for them
            model = source_kriging(self._scores, self._seed, len(asked), asked)
            self._models[pool_size(len(asked), self._scores.n_items)] = model
        rounds = [items[np.isfinite(scores[items])] for items in record.rounds(target)]
        told = [items.tobytes() + scores[items].tobytes() for items in rounds]
        known, run = self._runs.get(target, ([], None))
        if run is None or run.model is not model or told[: len(known)] != known:
            known, run = [], self._new(target, model)
        for items in rounds[len(known) :]:
            run.hear(np.searchsorted(model.candidates, items), scores[items])
        self._runs[target] = told, run
        return run

    def _new(self, target: str, model: KrigingModel) -> Run:
        """Return a run without answers; each target, or group, has its own random start."""
        size, names = self._method.together, self.record.targets
        first = names[names.index(target) // size * size]
        key = int.from_bytes(hashlib.sha256(first.encode()).digest()[:4], "big")
        start = np.random.default_rng(child_seed(self._seed, 7, key)).random()
        return Run(model, float(start))
