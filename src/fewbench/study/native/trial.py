"""One division of the models and one seed: what the probe set told, and natives of one's choice."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fewbench._threads import one_thread
from fewbench.algorithms.clustering.distances import item_distances
from fewbench.algorithms.natives import nearest_first
from fewbench.evaluation.opening import check_budget
from fewbench.evaluation.replay import replay
from fewbench.methods import Answers, Method
from fewbench.methods.adaptive.tailored import Tailored, TailoredSession
from fewbench.scores import Scores
from fewbench.study.splits import Split

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Trial:
    """Sources and targets as TailoredBench sees them once the probe set is answered.

    Attributes
    ----------
    sources, targets : Scores
    method : Tailored
    budget, seed : int
    probe : ndarray of int
        Positions of the probe items.
    natives : tuple of ndarray of int, one a target
        The native sources that the method chooses, positions ascending.
    order : ndarray of int, shape (targets, sources)
        The sources by their distance to each target on the probe items, the nearest first. The
        method's natives are the first of each row.
    """

    sources: Scores
    targets: Scores
    method: Tailored
    budget: int
    seed: int
    probe: IntArray
    natives: tuple[IntArray, ...]
    order: IntArray

    def nearest(self, count: int) -> list[IntArray]:
        """Each target's `count` nearest sources, positions ascending."""
        return [np.sort(row[:count]) for row in self.order]

    def run(self, step: str, natives: Sequence[IntArray]) -> pd.DataFrame:
        """Estimate the targets by native sources of one's choice.

        Parameters
        ----------
        step : str
            What to call these sources.
        natives : sequence of ndarray of int, one a target

        Returns
        -------
        DataFrame
            One row a target: step, natives (how many), agreement (with the target, on all items:
            1 less the mean difference of scores), target, truth, estimate; scores in [0, 1].
        """
        given = dict(zip(self.targets.model_ids, natives, strict=True))
        said = replay(
            _Chosen(self.method, given), self.sources, self.targets, self.budget, self.seed
        )
        known = self.sources.filled
        agreement = [
            1.0 - float(np.abs(known[of] - own).mean())
            for of, own in zip(natives, self.targets.values, strict=True)
        ]
        return pd.DataFrame(
            {
                "step": step,
                "natives": [len(of) for of in natives],
                "agreement": agreement,
                "target": self.targets.model_ids,
                "truth": self.targets.full_scores(),
                "estimate": said.scores,
            }
        )


def open_trial(scores: Scores, split: Split, method: Tailored, budget: int, seed: int) -> Trial:
    """Divide the models, and ask the targets for the probe set.

    Parameters
    ----------
    scores : Scores
        All models; missing cells of sources are filled (see `Scores.filled`).
    split : Split
        Its targets must have answered every item, as `make_split` sees to.
    method : Tailored
    budget : int
        Items for each target, those of the probe set among them.
    seed : int
        What the method's own randomness follows from.

    Raises
    ------
    MethodError
        If the budget or a setting of the method does not fit.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> trial = open_trial(simulate(30, 80), Split(np.arange(24), np.arange(24, 30)),
    ...                    Tailored(), budget=15, seed=0)
    >>> len(trial.probe), trial.order.shape
    (10, (6, 24))
    >>> [set(own) <= set(row[:len(own)]) for own, row in zip(trial.natives, trial.order)]
    [True, True, True, True, True, True]
    """
    check_budget(budget, scores.n_items)
    sources, targets = scores.take(split.sources), scores.take(split.targets)
    with one_thread():
        session = method.start(sources, budget, seed, targets.model_ids)
        session.ask()
        answers = targets.values[:, session.probe]
        for row, target in enumerate(targets.model_ids):
            session.tell(target, Answers(session.probe, answers[[row]]))
        alone = [np.array([row]) for row in range(len(answers))]
        groups = alone if method.targets_apart else [np.arange(len(answers))]
        known = sources.filled[:, session.probe]
        order = np.concatenate([_by_distance(known, answers[rows], method) for rows in groups])
    found = [session.natives_of(target) for target in targets.model_ids]
    natives = tuple(one for one in found if one is not None)
    return Trial(sources, targets, method, budget, seed, session.probe, natives, order)


def _by_distance(sources: FloatArray, targets: FloatArray, method: Tailored) -> IntArray:
    both = np.concatenate([sources, targets])
    distances = item_distances(both, method.metric, method.standardise)
    return nearest_first(distances, len(sources))


@dataclass(frozen=True, eq=False)
class _Chosen(Method):
    """TailoredBench with the native sources given instead of found."""

    method: Tailored
    natives: dict[str, IntArray]

    def start(
        self, scores: Scores, budget: int, seed: int, targets: Sequence[str]
    ) -> "_ChosenSession":
        session = _ChosenSession(self.method, scores, budget, seed, targets)
        session.given = self.natives
        return session

    def describe(self) -> str:
        return f"{self.method.describe()} with native sources given"


class _ChosenSession(TailoredSession):
    given: dict[str, IntArray]

    def natives_of(self, target: str) -> IntArray | None:
        return None if super().natives_of(target) is None else self.given[target]
