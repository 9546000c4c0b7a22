"""Stage 1 of two-stage collaborative filtering: items asked for in rounds, by importance."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fewbench.methods.adaptive.past_tasks import Mixture, Past, PastTask
from fewbench.methods.base import Answers, Prediction
from fewbench.scores import Scores

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
ONE_TASK = (
    "this method is made for benchmarks of many tasks; on a single one plain random sampling is "
    "often closer: compare with random and greedy-ridge"
)


class ItemCompletion(Protocol):
    """Predicts what a target would score on the items that it was not run on."""

    def complete(self, chosen: list[IntArray], answers: FloatArray) -> FloatArray:
        """Return the expected score of every item, shape (items,), answers where there are any.

        What comes out below 0 or above 1 counts so in the means.

        Parameters
        ----------
        chosen : list of ndarray of int, one a task
            The items run, as positions within their task, in the order they were asked.
        answers : ndarray, shape (items,)
            The target's scores there; NaN elsewhere.
        """


class ImportanceSession:
    """Asks every target in rounds, independently of the others.

    The first round is the probe set, the items most important to all sources. Each later one asks
    for those most important to all sources and to the ones that answered a task as the target did.

    Parameters
    ----------
    scores : Scores
    past : Past
        The same by task.
    rounds : ndarray of int, shape (rounds, tasks)
        How many items to ask.
    mixture : Mixture
    n_similar : int
        How many sources are similar.
    completion : ItemCompletion
    targets : sequence of str
    """

    def __init__(
        self,
        scores: Scores,
        past: Past,
        rounds: IntArray,
        mixture: Mixture,
        n_similar: int,
        completion: ItemCompletion,
        targets: Sequence[str],
    ) -> None:
        self._scores, self._past, self._tasks, self._rounds = scores, past, past.tasks, rounds
        self._mixture, self._n_similar = mixture, n_similar
        self._completion = completion
        none = np.empty(0, dtype=np.intp)
        self._chosen = {target: [none] * len(past.tasks) for target in targets}
        self._answers = {target: np.full(scores.n_items, np.nan) for target in targets}
        self._done = dict.fromkeys(targets, 0)
        self._next: dict[str, list[IntArray]] = {}

    def ask(self) -> dict[str, IntArray]:
        """Return the next round's items of every target that has one, task by task."""
        wanted = {}
        for target, done in self._done.items():
            if done < len(self._rounds):
                coming = zip(self._tasks, self._coming(target), strict=True)
                wanted[target] = np.concatenate([task.items[new] for task, new in coming])
        return wanted

    def tell(self, target: str, answers: Answers) -> None:
        """Take a target's answers to its round."""
        coming = zip(self._chosen[target], self._coming(target), strict=True)
        self._chosen[target] = [np.append(before, new) for before, new in coming]
        self._answers[target][answers.items] = answers.scores[0]
        self._done[target] += 1
        del self._next[target]

    def predict(self, targets: Sequence[str], *, tasks: bool = True) -> Prediction:
        """Predict every item of every target; scores are their means."""
        items = np.array(
            [self._completion.complete(self._chosen[t], self._answers[t]) for t in targets]
        )
        of_tasks = None
        if tasks:
            of_tasks = np.clip(self._scores.task_means(items), 0.0, 1.0)
        full = np.clip(items @ self._scores.item_weights, 0.0, 1.0)
        notes = (ONE_TASK,) if len(self._tasks) == 1 else ()
        return Prediction(full, of_tasks, np.clip(items, 0.0, 1.0), notes=notes)

    def _coming(self, target: str) -> list[IntArray]:
        """Return the next round's items of each task, as positions within it."""
        if target not in self._next:
            counts = self._rounds[self._done[target]].tolist()
            parts = zip(self._tasks, self._chosen[target], counts, strict=True)
            answers = self._answers[target]
            self._next[target] = [self._choose(*part, answers) for part in parts]
        return self._next[target]

    def _choose(self, task: PastTask, seen: IntArray, n: int, answers: FloatArray) -> IntArray:
        if not n:
            return seen[:0]
        importance = task.importance
        if len(seen):
            similar = self._past.similar(task.items[seen], answers, self._n_similar)
            importance = self._mixture.of(task.values, similar, task.importance)
        return task.most_important(importance, seen, n)
